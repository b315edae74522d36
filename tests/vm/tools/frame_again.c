// SPDX-License-Identifier: GPL-2.0
/*
 * Connection management frames of RoCE v2 over IPv4, kept and sent again.
 *
 *	frame_again keep INTERFACE ATTRIBUTE FILE
 *		keeps the next one of that kind (16 is a REQ) that leaves by the interface
 *	frame_again send INTERFACE FILE ATTRIBUTE DELAY-MS
 *		waits until a frame with that attribute comes in, and sends the one that was kept
 *		after that time
 *
 * The check sum over the frame stays valid, and the queue pair of the connection manager does not
 * look at the sequence number: to the peer it is a packet that took a long way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX	2048
#define IP_AT		ETH_HLEN
#define PROTOCOL_AT	(IP_AT + 9)
#define PROTOCOL_UDP	17
#define UDP_AT		(IP_AT + 20)
#define PORT_AT		(UDP_AT + 2)
#define PORT_ROCE	4791
/* Base and datagram transport headers of 12 and 8 bytes stand before the MAD. */
#define MAD_AT		(UDP_AT + 8 + 12 + 8)
#define CLASS_AT	(MAD_AT + 1)
#define CLASS_CM	7
#define ATTRIBUTE_AT	(MAD_AT + 16)

static void die(const char *what)
{
	fprintf(stderr, "frame_again: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_interface(const char *name)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	if (fd < 0 || !at.sll_ifindex || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		die(name);
	return fd;
}

static unsigned int two_bytes(const unsigned char *frame, size_t at)
{
	return frame[at] << 8 | frame[at + 1];
}

static int is_wanted(const unsigned char *frame, ssize_t length, unsigned int attribute)
{
	return length >= ATTRIBUTE_AT + 2 && two_bytes(frame, 12) == ETH_P_IP &&
	       frame[IP_AT] == 0x45 && frame[PROTOCOL_AT] == PROTOCOL_UDP &&
	       two_bytes(frame, PORT_AT) == PORT_ROCE && frame[CLASS_AT] == CLASS_CM &&
	       two_bytes(frame, ATTRIBUTE_AT) == attribute;
}

/* The next frame with that attribute, on its way out or in. */
static ssize_t next_frame(int from, unsigned char *frame, unsigned int attribute, int outgoing)
{
	struct sockaddr_ll source;
	socklen_t size;
	ssize_t length;

	puts("ready");
	fflush(stdout);
	do {
		size = sizeof(source);
		length = recvfrom(from, frame, FRAME_MAX, 0, (struct sockaddr *)&source, &size);
		if (length < 0)
			die("recvfrom");
	} while ((source.sll_pkttype == PACKET_OUTGOING) != outgoing ||
		 !is_wanted(frame, length, attribute));
	return length;
}

static int keep(int from, unsigned int attribute, const char *path)
{
	unsigned char frame[FRAME_MAX];
	ssize_t length = next_frame(from, frame, attribute, 1);
	FILE *file = fopen(path, "w");

	if (!file || fwrite(frame, 1, length, file) != (size_t)length || fclose(file))
		die(path);
	printf("kept %zd bytes\n", length);
	return 0;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int send_again(int by, const char *path, unsigned int attribute, unsigned int delay_ms)
{
	unsigned char frame[FRAME_MAX];
	size_t length;
	long start;
	FILE *file;

	next_frame(by, frame, attribute, 0);
	start = now_ms();
	/* The delay is what the network is said to have taken. */
	usleep(delay_ms * 1000);
	file = fopen(path, "r");
	if (!file)
		die(path);
	length = fread(frame, 1, sizeof(frame), file);
	if (!length || send(by, frame, length, 0) != (ssize_t)length)
		die("send");
	printf("sent after %ld\n", now_ms() - start);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "keep"))
		return keep(open_interface(argv[2]), atoi(argv[3]), argv[4]);
	if (argc == 6 && !strcmp(argv[1], "send"))
		return send_again(open_interface(argv[2]), argv[3], atoi(argv[4]), atoi(argv[5]));
	fprintf(stderr, "usage: frame_again keep|send INTERFACE ...\n");
	return 2;
}
