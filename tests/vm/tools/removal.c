// SPDX-License-Identifier: GPL-2.0
/*
 * Identifiers in one state of a connection, both ends in this process, while their device goes:
 *
 *	removal STATE COUNT ADDRESS PORT TO COMMAND
 *
 * It listens on ADDRESS and makes COUNT connections to TO. When all are in STATE it runs COMMAND,
 * which must remove the device, and expects that each identifier is told so and answers with an
 * error from then on. (rdma_cm tells nothing to a passive one that nobody has accepted yet.)
 * STATE is one of
 *
 *	sent		nobody answers: TO is absent
 *	request		the passive side has the request and does nothing
 *	reply		the active side has the reply and does nothing
 *	established
 *	timewait	both sides have just disconnected
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define RESOLVE_MS 10000
#define EVENT_MS 20000

enum state { SENT, REQUEST, REPLY, ESTABLISHED, TIMEWAIT };

static const char *const state_names[] = {
	"sent", "request", "reply", "established", "timewait",
};

/* What belongs to one identifier; its context. */
struct end {
	struct ibv_qp *qp;
	int passive;
};

static enum state state;
static struct rdma_event_channel *channel;
static struct ibv_cq *shared_cq;
static struct ibv_pd *shared_pd;
static struct rdma_cm_id **unanswered; /* passive identifiers that rdma_cm reports nothing for */
static int seen[16]; /* events, by type */
static int live;     /* identifiers that were not yet told that their device is gone */
static int answered; /* calls after the removal that did not fail */

static void die(const char *what)
{
	fprintf(stderr, "removal: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;
	struct end *end = calloc(1, sizeof(*end));

	if (!end || rdma_create_id(channel, &id, end, RDMA_PS_TCP))
		die("rdma_create_id");
	live++;
	return id;
}

/* A QP that librdmacm does not know: only so does it report the reply. */
static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct end *end = id->context;

	if (!shared_cq) {
		shared_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
		shared_pd = ibv_alloc_pd(id->verbs);
	}
	if (!shared_cq || !shared_pd)
		die("ibv_create_cq");
	attr.send_cq = shared_cq;
	attr.recv_cq = shared_cq;
	end->qp = ibv_create_qp(shared_pd, &attr);
	if (!end->qp)
		die("ibv_create_qp");
}

static struct rdma_conn_param parameters(struct rdma_cm_id *id)
{
	struct end *end = id->context;
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
		.qp_num = end->qp->qp_num,
	};

	return param;
}

static void accept_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param param;

	create_qp(id);
	param = parameters(id);
	if (rdma_accept(id, &param))
		die("rdma_accept");
}

/* The device is gone: what a consumer may still call must fail and must return. */
static void removed(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .qp_num = 1 };
	struct end *end = id->context;

	answered += !rdma_accept(id, &param);
	answered += !rdma_connect(id, &param);
	answered += !rdma_disconnect(id);
	if (end->qp)
		ibv_destroy_qp(end->qp);
	rdma_destroy_id(id);
}

/* Takes one event and does what STATE asks for. */
static void step(void)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	struct end *end;

	errno = ETIMEDOUT;
	if (poll(&ready, 1, EVENT_MS) != 1) {
		fprintf(stderr, "removal: %d identifiers are left\n", live);
		die("no event");
	}
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	id = event->id;
	type = event->event;
	rdma_ack_cm_event(event);
	seen[type]++;

	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		end = calloc(1, sizeof(*end));
		if (!end)
			die("calloc");
		end->passive = 1;
		id->context = end;
		if (state == REQUEST) {
			unanswered[seen[type] - 1] = id;
			break;
		}
		live++;
		accept_request(id);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (state != REPLY && rdma_establish(id))
			die("rdma_establish");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* Fails when the device goes meanwhile. */
		end = id->context;
		if (end->passive)
			rdma_disconnect(id);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		removed(id);
		live--;
		break;
	default:
		break;
	}
}

static void wait_for(enum rdma_cm_event_type type, int count)
{
	while (seen[type] < count)
		step();
}

static struct rdma_cm_id *start_connection(struct sockaddr_in *to, int number)
{
	struct rdma_conn_param param;
	struct rdma_cm_id *id = new_id();

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)to, RESOLVE_MS))
		die("rdma_resolve_addr");
	wait_for(RDMA_CM_EVENT_ADDR_RESOLVED, number);
	if (rdma_resolve_route(id, RESOLVE_MS))
		die("rdma_resolve_route");
	wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED, number);
	create_qp(id);
	param = parameters(id);
	if (rdma_connect(id, &param))
		die("rdma_connect");
	return id;
}

static void reach_state(struct rdma_cm_id **ids, int count)
{
	int i;

	switch (state) {
	case SENT:
		return;
	case REQUEST:
		wait_for(RDMA_CM_EVENT_CONNECT_REQUEST, count);
		return;
	case REPLY:
		wait_for(RDMA_CM_EVENT_CONNECT_RESPONSE, count);
		return;
	case ESTABLISHED:
	case TIMEWAIT:
		/* rdma_establish reports nothing: these come to the passive side. */
		wait_for(RDMA_CM_EVENT_ESTABLISHED, count);
		break;
	}
	if (state != TIMEWAIT)
		return;
	for (i = 0; i < count; i++)
		if (rdma_disconnect(ids[i]))
			die("rdma_disconnect");
	wait_for(RDMA_CM_EVENT_DISCONNECTED, 2 * count);
}

static void parse(const char *address, const char *port, struct sockaddr_in *to)
{
	memset(to, 0, sizeof(*to));
	to->sin_family = AF_INET;
	to->sin_port = htons(atoi(port));
	if (inet_pton(AF_INET, address, &to->sin_addr) != 1)
		die("the address is no IPv4 address");
}

int main(int argc, char **argv)
{
	struct sockaddr_in at, to;
	struct rdma_cm_id *listener, **ids;
	int count, i;

	for (i = 0; argc == 7 && i <= TIMEWAIT; i++)
		if (!strcmp(argv[1], state_names[i]))
			break;
	if (argc != 7 || i > TIMEWAIT) {
		fprintf(stderr, "usage: removal STATE COUNT ADDRESS PORT TO COMMAND\n");
		return 2;
	}
	state = i;
	count = atoi(argv[2]);
	parse(argv[3], argv[4], &at);
	parse(argv[5], argv[4], &to);

	ids = calloc(count, sizeof(*ids));
	unanswered = calloc(count, sizeof(*unanswered));
	channel = rdma_create_event_channel();
	if (!ids || !unanswered || !channel)
		die("rdma_create_event_channel");
	listener = new_id();
	if (rdma_bind_addr(listener, (struct sockaddr *)&at) || rdma_listen(listener, 1024))
		die("rdma_listen");
	for (i = 0; i < count; i++)
		ids[i] = start_connection(&to, i + 1);
	reach_state(ids, count);
	if (live != 1 + count + (state == SENT || state == REQUEST ? 0 : count)) {
		fprintf(stderr, "removal: %d identifiers before the removal\n", live);
		return 1;
	}
	if (system(argv[6]))
		die(argv[6]);
	while (live)
		step();
	for (i = 0; state == REQUEST && i < count; i++)
		removed(unanswered[i]);
	if (answered) {
		fprintf(stderr, "removal: %d calls on a removed device did not fail\n", answered);
		return 1;
	}
	return 0;
}
