// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of librdmacm whose memory allocations fail, one after the other:
 *
 *	failslab ADDRESS PORT rc|ud CALL...
 *
 * For each CALL of the list below a connection of this process with itself is brought to the
 * point where the call is due. In it the first allocation fails, in the next connection the
 * second one, until the call comes through without a failure. Which allocations count is set
 * up in debugfs failslab before. The call "none" is one connection without failures from here.
 * Whatever the call returns, both ends must come to a conclusion
 * in time, and destroying them must free everything (which others look at).
 *
 * Prints "CALL: N failed allocations, M errors".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define RESOLVE_MS	20000
/* A REQ whose answer got lost is repeated about every 4 s; the slowest of all ends is meant. */
#define CONCLUSION_MS	180000
/* No call allocates more often than that. */
#define MOST		64

enum call { LISTEN, CONNECT, ACCEPT, REJECT, DISCONNECT, DESTROY_LISTENER, DESTROY_CONNECTING,
	    DESTROY_REQUESTED, DESTROY_CONNECTED, NONE };

static const char * const names[] = {
	"listen", "connect", "accept", "reject", "disconnect", "destroy-listener",
	"destroy-connecting", "destroy-requested", "destroy-connected", "none",
};

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
};

static struct sockaddr_in address;
static enum rdma_port_space space;
static enum call call;
static unsigned int nth;
static bool reached, failed;

static void die(const char *what)
{
	fprintf(stderr, "failslab: %s, allocation %u: %s: %s\n", names[call], nth, what,
		strerror(errno));
	exit(1);
}

static int write_nth(unsigned int value)
{
	char text[16];
	int file = open("/proc/thread-self/fail-nth", O_WRONLY);
	int length = snprintf(text, sizeof(text), "%u", value);
	bool good = file >= 0 && write(file, text, length) == length;

	close(file);
	return good ? 0 : -1;
}

static unsigned int read_nth(void)
{
	char text[16] = "";
	int file = open("/proc/thread-self/fail-nth", O_RDONLY);

	if (file < 0 || read(file, text, sizeof(text) - 1) <= 0)
		die("fail-nth cannot be read");
	close(file);
	return atoi(text);
}

/* Runs EXPRESSION, with the nth allocation failing when it is the call of this round. */
#define injected(this_call, expression) ({			\
	int result_;						\
								\
	if (call == (this_call) && write_nth(nth))		\
		die("fail-nth cannot be written");		\
	result_ = (expression);					\
	if (call == (this_call))				\
		injection_ended(result_);			\
	result_;						\
})

static void injection_ended(int result)
{
	int error = errno;

	reached = read_nth() == 0;
	failed = result != 0;
	if (write_nth(0))
		die("fail-nth cannot be written");
	errno = error;
	if (failed && error != ENOMEM)
		die("it fails with another error than ENOMEM");
	if (failed && !reached)
		die("it fails without an injected failure");
}

static void open_end(struct end *end)
{
	memset(end, 0, sizeof(*end));
	end->channel = rdma_create_event_channel();
	if (!end->channel)
		die("rdma_create_event_channel");
	fcntl(end->channel->fd, F_SETFL, O_NONBLOCK);
	if (rdma_create_id(end->channel, &end->id, NULL, space))
		die("rdma_create_id");
}

static void create_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = space == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	end->cq = ibv_create_cq(end->id->verbs, 4, NULL, NULL, 0);
	if (!end->cq)
		die("ibv_create_cq");
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	if (rdma_create_qp(end->id, NULL, &attr))
		die("rdma_create_qp");
}

static void destroy_id(struct end *end)
{
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->cq)
		ibv_destroy_cq(end->cq);
	if (end->id && rdma_destroy_id(end->id))
		die("rdma_destroy_id");
	end->id = NULL;
	end->cq = NULL;
}

static void close_end(struct end *end)
{
	destroy_id(end);
	if (end->channel)
		rdma_destroy_event_channel(end->channel);
	end->channel = NULL;
}

/* The next event of this end, or -1 when there is none in time. */
static int next_event(struct end *end, struct end *accepted, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = end->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int type;

	/* The library keeps some events to itself. */
	do {
		if (poll(&poll_fd, 1, timeout_ms) != 1)
			return -1;
	} while (rdma_get_cm_event(end->channel, &event) && errno == EAGAIN);
	type = event->event;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && accepted)
		accepted->id = event->id;
	rdma_ack_cm_event(event);
	return type;
}

static void want(struct end *end, enum rdma_cm_event_type type, int timeout_ms)
{
	int got = next_event(end, NULL, timeout_ms);

	if (got != (int)type) {
		fprintf(stderr, "failslab: got %s, wanted %s\n",
			got < 0 ? "nothing" : rdma_event_str(got), rdma_event_str(type));
		die("resolution");
	}
}

static int connect_end(struct end *client)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	return rdma_connect(client->id, &param);
}

static int accept_end(struct end *accepted)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	if (space == RDMA_PS_UDP)
		param.qp_num = accepted->id->qp->qp_num;
	return rdma_accept(accepted->id, &param);
}

/* Any end will do, but there must be one. Returns whether it is a connection. */
static bool conclude(struct end *client)
{
	int event = next_event(client, NULL, CONCLUSION_MS);

	switch (event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		return true;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return false;
	default:
		if (event < 0)
			die("the connecting end comes to no conclusion");
		fprintf(stderr, "failslab: event %s\n", rdma_event_str(event));
		die("an event that is no conclusion");
	}
	return false;
}

/* Waits until one of them is told something. Returns whether that is the listener alone. */
static bool listener_first(struct end *listener, struct end *client)
{
	struct pollfd either[] = {
		{ .fd = client->channel->fd, .events = POLLIN },
		{ .fd = listener->channel->fd, .events = POLLIN },
	};

	return poll(either, 2, CONCLUSION_MS) > 0 && !either[0].revents;
}

/* Who ended it without a word for want of memory is asked again, and has memory then. */
static void conclude_when_asked_again(struct end *listener, struct end *client)
{
	while (listener_first(listener, client)) {
		struct end again = {};

		if (next_event(listener, &again, 0) == RDMA_CM_EVENT_CONNECT_REQUEST)
			rdma_destroy_id(again.id);
	}
	conclude(client);
}

static void serve(struct end *listener, struct end *client)
{
	struct end accepted = {};
	int event;

	/* The kernel may lack the memory to tell of a request, and rejects it then. */
	if (call == NONE && !listener_first(listener, client)) {
		if (conclude(client))
			die("a connection that nobody has accepted");
		return;
	}
	event = next_event(listener, &accepted, CONCLUSION_MS);
	if (event != RDMA_CM_EVENT_CONNECT_REQUEST)
		die("no request arrives");
	/* Events of the new id come on the listener's channel. */
	if (call == DESTROY_REQUESTED) {
		injected(DESTROY_REQUESTED, rdma_destroy_id(accepted.id));
		conclude_when_asked_again(listener, client);
		return;
	}
	if (call == REJECT) {
		/* A REJ takes effect even if it cannot be sent, a SIDR_REP does not. */
		if (injected(REJECT, rdma_reject(accepted.id, "no", 2)) && space == RDMA_PS_UDP)
			rdma_reject(accepted.id, "no", 2);
		conclude_when_asked_again(listener, client);
		destroy_id(&accepted);
		return;
	}
	create_qp(&accepted);
	if (injected(ACCEPT, accept_end(&accepted))) {
		/* rdma_cm has rejected by itself, for which memory sufficed. */
		conclude(client);
	} else {
		bool connected = conclude(client);

		/* Who has failed to connect gives up, which the peer hears of. */
		if (!connected)
			destroy_id(client);
		if (space == RDMA_PS_TCP) {
			if (next_event(listener, NULL, CONCLUSION_MS) < 0)
				die("the accepting end comes to no conclusion");
			if (connected && call == DESTROY_CONNECTED) {
				rdma_destroy_qp(client->id);
				if (!injected(DESTROY_CONNECTED, rdma_destroy_id(client->id)))
					client->id = NULL;
			} else if (connected) {
				injected(DISCONNECT, rdma_disconnect(client->id));
				/* The peer of an end that could not say it hears of it later. */
				if (call < NONE && !reached &&
				    next_event(listener, NULL, CONCLUSION_MS) < 0)
					die("the peer hears of no disconnect");
			}
		}
	}
	destroy_id(&accepted);
}

static void round_of_call(void)
{
	struct end listener, client;

	open_end(&listener);
	if (rdma_bind_addr(listener.id, (struct sockaddr *)&address))
		die("rdma_bind_addr");
	if (injected(LISTEN, rdma_listen(listener.id, 8))) {
		close_end(&listener);
		return;
	}
	open_end(&client);
	if (rdma_resolve_addr(client.id, NULL, (struct sockaddr *)&address, RESOLVE_MS))
		die("rdma_resolve_addr");
	want(&client, RDMA_CM_EVENT_ADDR_RESOLVED, RESOLVE_MS);
	if (rdma_resolve_route(client.id, RESOLVE_MS))
		die("rdma_resolve_route");
	want(&client, RDMA_CM_EVENT_ROUTE_RESOLVED, RESOLVE_MS);
	create_qp(&client);
	if (call == DESTROY_LISTENER) {
		if (injected(DESTROY_LISTENER, rdma_destroy_id(listener.id)))
			die("rdma_destroy_id");
		listener.id = NULL;
	} else if (!injected(CONNECT, connect_end(&client))) {
		if (call == DESTROY_CONNECTING) {
			rdma_destroy_qp(client.id);
			if (injected(DESTROY_CONNECTING, rdma_destroy_id(client.id)))
				die("rdma_destroy_id");
			client.id = NULL;
		} else {
			serve(&listener, &client);
		}
	}
	close_end(&client);
	/* A request that nobody looked at is destroyed with its listener. */
	close_end(&listener);
}

static void sweep(void)
{
	unsigned int errors = 0;

	for (nth = 1; nth <= MOST; nth++) {
		reached = false;
		failed = false;
		round_of_call();
		errors += failed;
		if (!reached)
			break;
	}
	if (nth > MOST)
		die("it allocates without end");
	printf("%s %s: %u failed allocations, %u errors\n", space == RDMA_PS_TCP ? "rc" : "ud",
	       names[call], nth - 1, errors);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 5) {
		fprintf(stderr, "failslab: give ADDRESS, PORT, rc or ud, and calls\n");
		return 2;
	}
	address.sin_family = AF_INET;
	address.sin_port = htons(atoi(argv[2]));
	inet_pton(AF_INET, argv[1], &address.sin_addr);
	space = strcmp(argv[3], "ud") ? RDMA_PS_TCP : RDMA_PS_UDP;
	for (i = 4; i < argc; i++) {
		for (call = 0; call < NONE && strcmp(names[call], argv[i]); call++)
			;
		if (strcmp(names[call], argv[i])) {
			fprintf(stderr, "failslab: no call '%s'\n", argv[i]);
			return 2;
		}
		sweep();
	}
	return 0;
}
