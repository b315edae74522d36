// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that leave connections behind, for scenarios that kill them.
 *
 *	hold_peer serve ADDRESS PORT MODE
 *		answer	accepts all, answers a disconnect
 *		mute	accepts all, answers nothing after that
 *		ignore	accepts nothing
 *		prepare	accepts nothing, but makes a QP
 *	hold_peer client ADDRESS PORT MODE [COUNT [ACK-TIMEOUT]]
 *		stay	makes COUNT connections
 *		exit	makes COUNT connections and ends without a word
 *		request	calls rdma_connect and waits for no answer
 *		half	gets the REP and sends no RTU; its QP is ready to receive
 *		leave	connects and disconnects, keeps everything
 *		orphan	connects, then gives up its ids, but keeps the QPs
 *		abandon	connects, disconnects, and gives up its ids at once, but keeps the QPs
 *		fork	connects; a child has the same files
 *		pass	connects; hands the device's file to another process
 *		many	COUNT processes with one connection each
 *		flood	connects and sends what it can
 *	hold_peer bare ADDRESS [GID]
 *		a QP without the connection manager, ready to receive from itself, or from GID
 *	hold_peer claim ADDRESS PORT QPN
 *		connects, and names QPN as its own
 *
 * Each prints what happens to it, "ready" when it has come so far, and waits for its end.
 * ACK-TIMEOUT is the exponent of the IBA's time format; TimeWait follows it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define RESOLVE_MS	10000
/* How many sends are on their way. */
#define SENDS		64
/* Of the first IPv4 address; before it is the link local one. */
#define SGID_INDEX	1

static struct ibv_cq *shared_cq;
static struct ibv_pd *shared_pd;
static uint8_t ack_timeout;

static void die(const char *what)
{
	fprintf(stderr, "hold_peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void wait_for_end(void)
{
	for (;;)
		pause();
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void told(struct rdma_cm_event *event)
{
	printf("%ld %s %d\n", now_ms(), rdma_event_str(event->event), event->status);
}

static void share(struct ibv_context *context)
{
	if (shared_pd)
		return;
	shared_pd = ibv_alloc_pd(context);
	shared_cq = ibv_create_cq(context, SENDS, NULL, NULL, 0);
	if (!shared_pd || !shared_cq)
		die("no protection domain or completion queue");
}

static struct ibv_qp_init_attr qp_attributes(void)
{
	return (struct ibv_qp_init_attr) {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = SENDS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
		},
		.send_cq = shared_cq,
		.recv_cq = shared_cq,
	};
}

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr;

	share(id->verbs);
	attr = qp_attributes();
	if (rdma_create_qp(id, shared_pd, &attr))
		die("rdma_create_qp");
	printf("qpn %u\n", id->qp->qp_num);
}

/* Takes the QP to where the connection is, as librdmacm does for QPs that it knows. */
static void modify(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(id, &attr, &mask) || ibv_modify_qp(qp, &attr, mask))
		die("the QP does not follow");
}

static struct rdma_event_channel *channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel)
		die("rdma_create_event_channel");
	return channel;
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *from)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(from, &event))
		die("rdma_get_cm_event");
	told(event);
	return event;
}

static void expect(struct rdma_event_channel *from, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event = next_event(from);

	if (event->event != want) {
		fprintf(stderr, "hold_peer: expected %s\n", rdma_event_str(want));
		exit(1);
	}
	rdma_ack_cm_event(event);
}

static struct sockaddr_in parse(const char *address, const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		die("the address is no IPv4 address");
	return to;
}

static void serve(struct sockaddr_in *at, const char *mode)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_event_channel *from = channel();
	struct rdma_cm_id *listener;

	if (rdma_create_id(from, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)at) || rdma_listen(listener, 1024))
		die("cannot listen");
	for (;;) {
		struct rdma_cm_event *event = next_event(from);
		enum rdma_cm_event_type type = event->event;
		struct rdma_cm_id *id = event->id;

		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST && strcmp(mode, "ignore")) {
			create_qp(id);
			/* The peer may be gone by now. */
			if (strcmp(mode, "prepare") && rdma_accept(id, &param))
				printf("not accepted: %s\n", strerror(errno));
		}
		if (type == RDMA_CM_EVENT_DISCONNECTED && !strcmp(mode, "answer"))
			rdma_disconnect(id);
		if (type == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			if (id->qp)
				rdma_destroy_qp(id);
			rdma_destroy_id(id);
		}
	}
}

/* An id whose route is known. */
static struct rdma_cm_id *resolve(struct sockaddr_in *to)
{
	static struct rdma_event_channel *events;
	struct rdma_cm_id *id;

	/* One for all: a process's files are closed from the last one opened to the first. */
	if (!events)
		events = channel();
	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (ack_timeout && rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					   &ack_timeout, sizeof(ack_timeout)))
		die("rdma_set_option");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)to, RESOLVE_MS))
		die("rdma_resolve_addr");
	expect(events, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		die("rdma_resolve_route");
	expect(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static void request(struct rdma_cm_id *id, uint32_t qpn)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .qp_num = qpn,
	};

	if (rdma_connect(id, &param))
		die("rdma_connect");
}

static struct rdma_cm_id *connected(struct sockaddr_in *to)
{
	struct rdma_cm_id *id = resolve(to);

	create_qp(id);
	request(id, 0);
	expect(id->channel, RDMA_CM_EVENT_ESTABLISHED);
	return id;
}

static void half_open(struct sockaddr_in *to)
{
	struct rdma_cm_id *id = resolve(to);
	struct ibv_qp_init_attr attr;
	struct ibv_qp *qp;

	share(id->verbs);
	attr = qp_attributes();
	/* librdmacm does not know it, so it leaves the RTU to its user. */
	qp = ibv_create_qp(shared_pd, &attr);
	if (!qp)
		die("ibv_create_qp");
	printf("qpn %u\n", qp->qp_num);
	modify(id, qp, IBV_QPS_INIT);
	request(id, qp->qp_num);
	expect(id->channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	modify(id, qp, IBV_QPS_RTR);
}

/* Names a QPN that may be anyone's. */
static void claim(struct sockaddr_in *to, uint32_t qpn)
{
	struct rdma_cm_id *id = resolve(to);

	request(id, qpn);
	expect(id->channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (rdma_establish(id))
		die("rdma_establish");
	puts("ready");
	for (;;)
		rdma_ack_cm_event(next_event(id->channel));
}

static void child_waits(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (!child)
		wait_for_end();
	printf("child %d\n", child);
}

/* Another process, made before, gets the file of the device. */
static void pass_file(int to, int file)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &file, sizeof(file));
	if (sendmsg(to, &message, 0) != 1)
		die("sendmsg");
}

static void receive_file(int from)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};

	if (recvmsg(from, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
		die("recvmsg");
	printf("child %d\n", getpid());
	wait_for_end();
}

static void pass(struct sockaddr_in *to)
{
	struct rdma_cm_id *id;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		die("socketpair");
	switch (fork()) {
	case -1:
		die("fork");
		break;
	case 0:
		close(pair[0]);
		receive_file(pair[1]);
		break;
	default:
		id = connected(to);
		pass_file(pair[0], id->verbs->cmd_fd);
	}
}

static void many(struct sockaddr_in *to, int count)
{
	int ready[2], i;
	char byte;

	if (pipe(ready))
		die("pipe");
	for (i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (!child) {
			connected(to);
			if (write(ready[1], "", 1) != 1)
				die("write");
			wait_for_end();
		}
	}
	for (i = 0; i < count; i++)
		if (read(ready[0], &byte, 1) != 1)
			die("read");
}

/* Whether the peer has ended the connection; answers it. */
static int is_ended(struct rdma_cm_id *id)
{
	struct pollfd events = { .fd = id->channel->fd, .events = POLLIN };

	if (poll(&events, 1, 1) <= 0)
		return 0;
	expect(id->channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(id);
	return 1;
}

/* Writes of no bytes, which need no memory on either side. */
static void flood(struct rdma_cm_id *id)
{
	struct ibv_send_wr write = {
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	unsigned long completed = 0;
	struct ibv_wc done;
	int i;

	for (i = 0; i < SENDS; i++)
		if (ibv_post_send(id->qp, &write, &bad))
			die("ibv_post_send");
	for (;;) {
		int got = ibv_poll_cq(shared_cq, 1, &done);

		if (got < 0 || (got && done.status != IBV_WC_SUCCESS)) {
			printf("status %s\n", ibv_wc_status_str(done.status));
			break;
		}
		if (got && !completed++)
			puts("ready");
		if (got && ibv_post_send(id->qp, &write, &bad))
			break;
		if (!got && is_ended(id))
			break;
	}
	printf("the flood has ended after %lu\n", completed);
	wait_for_end();
}

/* The QPs are not destroyed with their ids. */
static void give_up_ids(struct rdma_cm_id **ids, int count)
{
	struct rdma_event_channel *events = ids[0]->channel;
	int i;

	for (i = 0; i < count; i++) {
		long start = now_ms();

		rdma_destroy_id(ids[i]);
		printf("destroyed in %ld\n", now_ms() - start);
	}
	rdma_destroy_event_channel(events);
}

static int client(struct sockaddr_in *to, const char *mode, int count)
{
	struct rdma_cm_id **ids = calloc(count, sizeof(*ids));
	int abandon = !strcmp(mode, "abandon");
	int i;

	if (!ids)
		die("calloc");
	if (!strcmp(mode, "request")) {
		ids[0] = resolve(to);
		create_qp(ids[0]);
		request(ids[0], 0);
	} else if (!strcmp(mode, "half")) {
		half_open(to);
	} else if (!strcmp(mode, "pass")) {
		pass(to);
	} else if (!strcmp(mode, "many")) {
		many(to, count);
	} else {
		for (i = 0; i < count; i++)
			ids[i] = connected(to);
		if (!strcmp(mode, "exit"))
			return 0;
		if (!strcmp(mode, "fork"))
			child_waits();
		if (!strcmp(mode, "flood"))
			flood(ids[0]);
		for (i = 0; i < count && (!strcmp(mode, "leave") || abandon); i++)
			if (rdma_disconnect(ids[i]))
				die("rdma_disconnect");
		if (!strcmp(mode, "orphan") || abandon)
			give_up_ids(ids, count);
	}
	puts("ready");
	wait_for_end();
	return 0;
}

/* A QP of the device that has the address. */
static int bare(struct sockaddr_in *at, const char *from_gid)
{
	struct rdma_event_channel *events = channel();
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
	};
	struct ibv_qp_init_attr init;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;

	at->sin_port = 0;
	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)at))
		die("no device has the address");
	share(id->verbs);
	init = qp_attributes();
	qp = ibv_create_qp(shared_pd, &init);
	if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				 IBV_QP_ACCESS_FLAGS))
		die("the QP does not come up");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .hop_limit = 64, .sgid_index = SGID_INDEX },
		},
	};
	if (from_gid && inet_pton(AF_INET6, from_gid, &attr.ah_attr.grh.dgid) != 1)
		die("that is no GID");
	if (!from_gid && ibv_query_gid(id->verbs, 1, SGID_INDEX, &attr.ah_attr.grh.dgid))
		die("ibv_query_gid");
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		die("the QP does not get ready to receive");
	printf("qpn %u\nready\n", qp->qp_num);
	wait_for_end();
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		goto usage;
	if (!strcmp(argv[1], "bare")) {
		address = parse(argv[2], "0");
		return bare(&address, argc > 3 ? argv[3] : NULL);
	}
	if (argc < 5)
		goto usage;
	address = parse(argv[2], argv[3]);
	ack_timeout = argc > 6 ? atoi(argv[6]) : 0;
	if (!strcmp(argv[1], "serve"))
		serve(&address, argv[4]);
	if (!strcmp(argv[1], "client"))
		return client(&address, argv[4], argc > 5 ? atoi(argv[5]) : 1);
	if (!strcmp(argv[1], "claim"))
		claim(&address, atoi(argv[4]));
usage:
	fprintf(stderr, "usage: hold_peer serve|client|bare|claim ADDRESS [PORT MODE [COUNT]]\n");
	return 2;
}
