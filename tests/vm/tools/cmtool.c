// SPDX-License-Identifier: GPL-2.0
/*
 * A small consumer of librdmacm for what the packaged tools cannot do:
 *
 *	cmtool serve ADDRESS PORT COUNT [TEXT]
 *		accepts COUNT connections and waits until each is disconnected;
 *		with TEXT it rejects each with that as private data
 *	cmtool cycle ADDRESS PORT COUNT
 *		connects and disconnects COUNT times, one after the other
 *	cmtool hold ADDRESS PORT COUNT FILE
 *		makes COUNT connections, prints "held", and ends them when FILE appears
 *	cmtool reject ADDRESS PORT COUNT
 *		connects COUNT times, expects to be rejected, prints "rejected STATUS TEXT"
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define RESOLVE_MS 10000

static struct ibv_cq *shared_cq;

static void die(const char *what)
{
	fprintf(stderr, "cmtool: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* One completion queue serves all: nothing is ever posted. */
static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!shared_cq)
		shared_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	if (!shared_cq)
		die("ibv_create_cq");
	attr.send_cq = shared_cq;
	attr.recv_cq = shared_cq;
	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
}

/* The next event; the caller acknowledges it. */
static struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	return event;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event = next_event(channel);

	if (event->event != want) {
		fprintf(stderr, "cmtool: got %s, status %d, expected %s\n",
			rdma_event_str(event->event), event->status, rdma_event_str(want));
		exit(1);
	}
	rdma_ack_cm_event(event);
}

static void resolve(const char *address, const char *port, struct sockaddr_in *to)
{
	memset(to, 0, sizeof(*to));
	to->sin_family = AF_INET;
	to->sin_port = htons(atoi(port));
	if (inet_pton(AF_INET, address, &to->sin_addr) != 1)
		die("the address is no IPv4 address");
}

static int serve(struct sockaddr_in *at, int count, const char *text)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *listener, *id;
	int ended = 0;

	if (!channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_bind_addr(listener, (struct sockaddr *)at) || rdma_listen(listener, 1024))
		die("rdma_listen");

	while (ended < count) {
		struct rdma_cm_event *event = next_event(channel);
		enum rdma_cm_event_type type = event->event;

		id = event->id;
		rdma_ack_cm_event(event);
		switch (type) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			if (text) {
				if (rdma_reject(id, text, strlen(text) + 1))
					die("rdma_reject");
				rdma_destroy_id(id);
				ended++;
				break;
			}
			create_qp(id);
			if (rdma_accept(id, &param))
				die("rdma_accept");
			break;
		case RDMA_CM_EVENT_DISCONNECTED:
			rdma_disconnect(id);
			rdma_destroy_qp(id);
			rdma_destroy_id(id);
			ended++;
			break;
		case RDMA_CM_EVENT_ESTABLISHED:
		case RDMA_CM_EVENT_TIMEWAIT_EXIT:
			break;
		default:
			fprintf(stderr, "cmtool: unexpected %s\n", rdma_event_str(type));
			return 1;
		}
	}
	rdma_destroy_id(listener);
	printf("served %d\n", ended);
	return 0;
}

/* An id that has called rdma_connect. */
static struct rdma_cm_id *start(struct rdma_event_channel *channel, struct sockaddr_in *to)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
	};
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)to, RESOLVE_MS))
		die("rdma_resolve_addr");
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		die("rdma_resolve_route");
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	create_qp(id);
	if (rdma_connect(id, &param))
		die("rdma_connect");
	return id;
}

static void end(struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	if (rdma_disconnect(id))
		die("rdma_disconnect");
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static int cycle(struct sockaddr_in *to, int count)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int i;

	for (i = 0; i < count; i++) {
		struct rdma_cm_id *id = start(channel, to);

		expect(channel, RDMA_CM_EVENT_ESTABLISHED);
		end(channel, id);
	}
	printf("cycled %d\n", count);
	return 0;
}

static int hold(struct sockaddr_in *to, int count, const char *file)
{
	struct rdma_cm_id **ids = calloc(count, sizeof(*ids));
	struct rdma_event_channel **channels = calloc(count, sizeof(*channels));
	int i;

	if (!ids || !channels)
		die("calloc");
	/* A channel for each, so that the events of one id never mix with another's. */
	for (i = 0; i < count; i++) {
		channels[i] = rdma_create_event_channel();
		if (!channels[i])
			die("rdma_create_event_channel");
		ids[i] = start(channels[i], to);
		expect(channels[i], RDMA_CM_EVENT_ESTABLISHED);
	}
	printf("held %d\n", count);
	fflush(stdout);
	while (access(file, F_OK))
		usleep(20000);
	for (i = 0; i < count; i++)
		end(channels[i], ids[i]);
	return 0;
}

static int rejected(struct sockaddr_in *to, int count)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int i;

	for (i = 0; i < count; i++) {
		struct rdma_cm_id *id = start(channel, to);
		struct rdma_cm_event *event = next_event(channel);

		if (event->event != RDMA_CM_EVENT_REJECTED) {
			fprintf(stderr, "cmtool: got %s, expected to be rejected\n",
				rdma_event_str(event->event));
			return 1;
		}
		printf("rejected %d %.*s\n", event->status, event->param.conn.private_data_len,
		       event->param.conn.private_data ?
		       (const char *)event->param.conn.private_data : "");
		rdma_ack_cm_event(event);
		rdma_destroy_qp(id);
		rdma_destroy_id(id);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address;
	const char *extra;
	int count;

	if (argc < 5) {
		fprintf(stderr, "usage: cmtool serve|cycle|hold|reject ADDRESS PORT COUNT [...]\n");
		return 2;
	}
	resolve(argv[2], argv[3], &address);
	count = atoi(argv[4]);
	extra = argc > 5 ? argv[5] : NULL;
	if (!strcmp(argv[1], "serve"))
		return serve(&address, count, extra);
	if (!strcmp(argv[1], "cycle"))
		return cycle(&address, count);
	if (!strcmp(argv[1], "hold") && extra)
		return hold(&address, count, extra);
	if (!strcmp(argv[1], "reject"))
		return rejected(&address, count);
	fprintf(stderr, "cmtool: no such command: %s\n", argv[1]);
	return 2;
}
