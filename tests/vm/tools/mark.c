// SPDX-License-Identifier: GPL-2.0
/*
 * Gives a command to the plugin that counts instructions (tests/vm/count): mark TEXT
 *
 * The instruction does nothing on a processor; the plugin knows it and reads the text by RDI.
 */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	/* All of it in memory that is there: the plugin reads so many bytes. */
	static char text[128];

	if (argc != 2 || strlen(argv[1]) >= sizeof(text)) {
		fprintf(stderr, "usage: mark TEXT\n");
		return 2;
	}
	snprintf(text, sizeof(text), "%s", argv[1]);
	asm volatile("nopl 0x6d61726b(%%rax)" : : "D"(text) : "memory");
	return 0;
}
