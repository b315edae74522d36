// SPDX-License-Identifier: GPL-2.0
/*
 * Tells a forger in another guest, over TCP, which identifiers live here:
 *
 *	forge_guide PORT
 *
 * The question "rows" is answered with the module's table of connections, if it has one, any other
 * with nothing but "end": then what was sent before the question has arrived. Prints "gone" when a
 * forger is.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS	"/sys/kernel/debug/ib_cm/connections"

static void die(const char *what)
{
	fprintf(stderr, "forge_guide: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void copy_table(FILE *to)
{
	FILE *table = fopen(CONNECTIONS, "r");
	char line[512];

	/* The C module has none. */
	if (!table)
		return;
	while (fgets(line, sizeof(line), table))
		fputs(line, to);
	fclose(table);
}

static void answer(int fd)
{
	FILE *from = fdopen(fd, "r"), *to = fdopen(dup(fd), "w");
	char question[16];

	while (fgets(question, sizeof(question), from)) {
		if (!strcmp(question, "rows\n"))
			copy_table(to);
		fputs("end\n", to);
		fflush(to);
	}
	fclose(from);
	fclose(to);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;

	if (argc != 2) {
		fprintf(stderr, "usage: forge_guide PORT\n");
		return 2;
	}
	any.sin_port = htons(atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 1))
		die("the port");
	setlinebuf(stdout);
	puts("ready");
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		answer(fd);
		puts("gone");
	}
	die("accept");
}
