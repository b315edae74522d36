// SPDX-License-Identifier: GPL-2.0
/*
 * Connections for forgers to hit:
 *
 *	forge_bait ADDRESS PORT COUNT
 *		listens to PORT, for connections and datagrams, keeps COUNT connections to itself, and
 *		makes a new one for each that ends. Others who ask for a connection are accepted,
 *		rejected, destroyed, or left alone until many more have come.
 *
 * It has no QPs: the QPNs are invented. Prints "ready" when all are connected for the first time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define RESOLVE_MS	10000
#define FIRST_QPN	0x500000
/* Those that others have asked for; the oldest makes room. */
#define GUESTS		96
#define BACKLOG		128

static struct rdma_event_channel *channel;
static struct sockaddr_in address;
static struct rdma_cm_id *guests[GUESTS];
static unsigned long next_guest;
static unsigned long requests;
static unsigned int connected;
static uint32_t next_qpn = FIRST_QPN;
/* What the context of an identifier says. */
static char mine;
static char mine_and_connected;
static char guest;
static char datagram;

static void die(const char *what)
{
	fprintf(stderr, "forge_bait: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct rdma_conn_param parameters(void)
{
	next_qpn = FIRST_QPN | (next_qpn + 1) % FIRST_QPN;
	return (struct rdma_conn_param) {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
		.qp_num = next_qpn,
	};
}

static void listen_to(enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, space) ||
	    rdma_bind_addr(id, (struct sockaddr *)&address) || rdma_listen(id, BACKLOG))
		die("the listener");
}

static void ask(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, &mine, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, RESOLVE_MS))
		die("a connection");
}

/* One of ours has ended. */
static void again(struct rdma_cm_id *id)
{
	if (id->context == &mine_and_connected)
		connected--;
	rdma_destroy_id(id);
	ask();
}

static void forget_guest(struct rdma_cm_id *id)
{
	int at;

	for (at = 0; at < GUESTS; at++)
		if (guests[at] == id)
			guests[at] = NULL;
	rdma_destroy_id(id);
}

static void keep_guest(struct rdma_cm_id *id)
{
	unsigned long at = next_guest++ % GUESTS;

	id->context = &guest;
	if (guests[at])
		rdma_destroy_id(guests[at]);
	guests[at] = id;
}

static int is_own(struct rdma_cm_id *id)
{
	struct sockaddr_in *from = (struct sockaddr_in *)rdma_get_peer_addr(id);

	return from->sin_family == AF_INET && from->sin_addr.s_addr == address.sin_addr.s_addr;
}

static void take_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = parameters();
	unsigned long turn = is_own(id) ? 7 : requests++ % 8;

	if (id->ps == RDMA_PS_UDP) {
		id->context = &datagram;
		if (turn < 4)
			rdma_accept(id, &param);
		else if (turn < 6)
			rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	if (turn == 0)
		rdma_reject(id, "no", 2);
	if (turn < 2) {
		rdma_destroy_id(id);
		return;
	}
	keep_guest(id);
	/* What cannot be accepted has ended meanwhile. */
	if (turn > 2 && rdma_accept(id, &param))
		forget_guest(id);
}

static void take_own(struct rdma_cm_id *id, enum rdma_cm_event_type event, unsigned int wanted)
{
	struct rdma_conn_param param = parameters();
	int ret = 0;

	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(id, RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = rdma_connect(id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		ret = rdma_establish(id);
		if (ret || id->context != &mine)
			break;
		id->context = &mine_and_connected;
		if (++connected == wanted) {
			puts("ready");
			fflush(stdout);
		}
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		again(id);
		return;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		again(id);
		return;
	}
	if (ret)
		again(id);
}

static void take_event(unsigned int wanted)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	id = event->id;
	type = event->event;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		take_request(id);
	} else if (id->context == &mine || id->context == &mine_and_connected) {
		take_own(id, type, wanted);
	} else if (id->context == &guest && type == RDMA_CM_EVENT_DISCONNECTED) {
		rdma_disconnect(id);
		forget_guest(id);
	} else if (id->context == &guest && type != RDMA_CM_EVENT_ESTABLISHED &&
		   type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		forget_guest(id);
	}
}

int main(int argc, char **argv)
{
	unsigned int count, at;

	if (argc != 4) {
		fprintf(stderr, "usage: forge_bait ADDRESS PORT COUNT\n");
		return 2;
	}
	address.sin_family = AF_INET;
	address.sin_port = htons(atoi(argv[2]));
	if (inet_pton(AF_INET, argv[1], &address.sin_addr) != 1)
		die(argv[1]);
	count = atoi(argv[3]);
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	listen_to(RDMA_PS_TCP);
	listen_to(RDMA_PS_UDP);
	for (at = 0; at < count; at++)
		ask();
	for (;;)
		take_event(count);
}
