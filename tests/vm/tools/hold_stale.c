// SPDX-License-Identifier: GPL-2.0
/*
 * Connections whose peer says, by using its QPN again, that it knows nothing of them any more:
 *
 *	hold_stale ADDRESS PORT rust|c
 *
 * Both ends are here, without QPs: the QPNs are invented. For each state of the old connection the
 * newcomer has to be refused once, with the old one ended, and accepted then; for the C module
 * what it does instead is what is expected. rdma_cm asks for time by itself as soon as its user is
 * told of a REQ or a REP, so REQ_RCVD and REP_RCVD are MRA_REQ_SENT and MRA_REP_SENT here.
 * Prints "ok TEXT" and "not ok TEXT".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/rdma_cma.h>

#define WAIT_MS		10000
/* Long enough for what would come at once, under emulation. */
#define SILENCE_MS	1000
#define STALE		10
#define EVENTS		(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1)

/* One end of a connection, and what it was told. */
struct end {
	struct rdma_cm_id *id;
	int count[EVENTS];
	int status[EVENTS];
};

static struct rdma_event_channel *channel;
static struct sockaddr_in address;
static struct end *arrived;
static bool is_c;
static uint32_t next_qpn = 0x500000;

static void die(const char *what)
{
	fprintf(stderr, "hold_stale: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void result(bool good, const char *state, const char *text)
{
	printf("%s %s: %s\n", good ? "ok" : "not ok", state, text);
	fflush(stdout);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void take_event(void)
{
	struct rdma_cm_event *event;
	struct end *end;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		arrived = calloc(1, sizeof(*arrived));
		if (!arrived)
			die("calloc");
		arrived->id = event->id;
		event->id->context = arrived;
	}
	end = event->id->context;
	printf("# %p %s %d\n", (void *)end, rdma_event_str(event->event), event->status);
	end->count[event->event]++;
	end->status[event->event] = event->status;
	rdma_ack_cm_event(event);
}

/* Takes events until the end was told, or the time is over. */
static bool told_within(struct end *end, enum rdma_cm_event_type type, int limit_ms)
{
	long deadline = now_ms() + limit_ms;

	while (!end->count[type]) {
		struct pollfd from = { .fd = channel->fd, .events = POLLIN };
		long left = deadline - now_ms();

		if (left <= 0)
			return false;
		if (poll(&from, 1, left) > 0)
			take_event();
	}
	return true;
}

static bool told(struct end *end, enum rdma_cm_event_type type)
{
	return told_within(end, type, WAIT_MS);
}

static bool refused(struct end *end)
{
	return told(end, RDMA_CM_EVENT_REJECTED) && end->status[RDMA_CM_EVENT_REJECTED] == STALE;
}

static void must(struct end *end, enum rdma_cm_event_type type)
{
	if (!told(end, type)) {
		fprintf(stderr, "hold_stale: no %s\n", rdma_event_str(type));
		exit(1);
	}
}

static struct end *new_end(void)
{
	struct end *end = calloc(1, sizeof(*end));

	if (!end || rdma_create_id(channel, &end->id, end, RDMA_PS_TCP))
		die("rdma_create_id");
	return end;
}

static struct rdma_conn_param parameters(uint32_t qpn)
{
	return (struct rdma_conn_param) {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .qp_num = qpn,
	};
}

/* A REQ that names `qpn` as its sender's. */
static struct end *request(uint32_t qpn)
{
	struct rdma_conn_param param = parameters(qpn);
	struct end *end = new_end();

	if (rdma_resolve_addr(end->id, NULL, (struct sockaddr *)&address, WAIT_MS))
		die("rdma_resolve_addr");
	must(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(end->id, WAIT_MS))
		die("rdma_resolve_route");
	must(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
	arrived = NULL;
	if (rdma_connect(end->id, &param))
		die("rdma_connect");
	return end;
}

/* The other end of the last REQ. */
static struct end *passive(void)
{
	long deadline = now_ms() + WAIT_MS;

	while (!arrived && now_ms() < deadline) {
		struct pollfd from = { .fd = channel->fd, .events = POLLIN };

		if (poll(&from, 1, WAIT_MS) > 0)
			take_event();
	}
	if (!arrived) {
		fprintf(stderr, "hold_stale: the REQ does not arrive\n");
		exit(1);
	}
	return arrived;
}

static void accept_with(struct end *end, uint32_t qpn)
{
	struct rdma_conn_param param = parameters(qpn);

	if (rdma_accept(end->id, &param))
		die("rdma_accept");
}

static void establish(struct end *active, struct end *other)
{
	must(active, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (rdma_establish(active->id))
		die("rdma_establish");
	must(other, RDMA_CM_EVENT_ESTABLISHED);
}

static void forget(struct end *end)
{
	rdma_destroy_id(end->id);
	free(end);
}

/* Whether a REJ comes, and not the REQ to the listener. */
static bool is_refused_at_once(struct end *newcomer)
{
	while (!arrived && !newcomer->count[RDMA_CM_EVENT_REJECTED])
		take_event();
	return !arrived;
}

/* The next attempt of a newcomer, which must be accepted (or must not). */
static void attempt(const char *state, uint32_t qpn, bool accepted)
{
	/* Long before anything is repeated, and longer than an answer to a DREQ is on its way. */
	long deadline = now_ms() + SILENCE_MS;
	struct end *newcomer = request(qpn), *other;

	if (!accepted) {
		result(refused(newcomer), state,
		       "as expected, the C module refuses the next attempt too");
		forget(newcomer);
		return;
	}
	while (is_refused_at_once(newcomer) && now_ms() < deadline) {
		forget(newcomer);
		newcomer = request(qpn);
	}
	other = passive();
	accept_with(other, next_qpn++);
	establish(newcomer, other);
	result(true, state, "the next attempt is accepted");
	forget(newcomer);
	/* Nobody is left to answer its user. */
	must(other, RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(other->id);
	forget(other);
}

/* The first attempt. */
static void newcomer_refused(const char *state, uint32_t qpn)
{
	struct end *newcomer = request(qpn);

	result(refused(newcomer), state, "the newcomer gets REJ 10");
	forget(newcomer);
}

/* An end that is stale before ESTABLISHED: told by a reject. */
static void ended_by_reject(const char *state, struct end *end, const char *who)
{
	char text[100];

	if (is_c) {
		snprintf(text, sizeof(text), "as expected, the C module says nothing to the %s", who);
		result(!told_within(end, RDMA_CM_EVENT_REJECTED, SILENCE_MS), state, text);
		return;
	}
	snprintf(text, sizeof(text), "the %s is told REJ 10", who);
	result(refused(end), state, text);
}

static void stale_mra_req_sent(void)
{
	const char *state = "MRA_REQ_SENT";
	uint32_t qpn = next_qpn++;
	struct end *old = request(qpn), *stale = passive();

	newcomer_refused(state, qpn);
	/*
	 * rdma_ucm tells its user nothing of an id that was not accepted yet. That the stale one
	 * was ended shows here, before the next REQ of the old peer, some seconds away.
	 */
	attempt(state, qpn, !is_c);
	forget(old);
	forget(stale);
}

static void stale_rep_sent(void)
{
	const char *state = "REP_SENT";
	uint32_t qpn = next_qpn++;
	struct end *old = request(qpn), *stale = passive();

	accept_with(stale, next_qpn++);
	must(old, RDMA_CM_EVENT_CONNECT_RESPONSE);
	newcomer_refused(state, qpn);
	ended_by_reject(state, stale, "stale end's user");
	ended_by_reject(state, old, "peer");
	attempt(state, qpn, !is_c);
	forget(old);
	forget(stale);
}

static void stale_established(void)
{
	const char *state = "ESTABLISHED";
	uint32_t qpn = next_qpn++;
	struct end *old = request(qpn), *stale = passive();

	accept_with(stale, next_qpn++);
	establish(old, stale);
	newcomer_refused(state, qpn);
	result(told(old, RDMA_CM_EVENT_DISCONNECTED), state, "the peer gets a DREQ");
	/* Its answer is what ends the wait for one. */
	rdma_disconnect(old->id);
	result(told(stale, RDMA_CM_EVENT_DISCONNECTED), state, "the stale end's user is told");
	attempt(state, qpn, true);
	result(told(stale, RDMA_CM_EVENT_TIMEWAIT_EXIT), state,
	       "and that its TimeWait is over");
	forget(old);
	forget(stale);
}

static int dreqs_sent(struct end *end)
{
	char path[200];
	int count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/cm_tx_msgs/dreq",
		 ibv_get_device_name(end->id->verbs->device), end->id->port_num);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%d", &count) != 1)
		die(path);
	fclose(file);
	return count;
}

static void stale_dreq_sent(void)
{
	const char *state = "DREQ_SENT";
	long deadline;
	int sent;
	uint32_t qpn = next_qpn++;
	struct end *old = request(qpn), *stale = passive();

	accept_with(stale, next_qpn++);
	establish(old, stale);
	rdma_disconnect(stale->id);
	must(old, RDMA_CM_EVENT_DISCONNECTED);
	sent = dreqs_sent(old);
	newcomer_refused(state, qpn);
	/* The next one by the timer is seconds away. */
	deadline = now_ms() + SILENCE_MS;
	while (dreqs_sent(old) == sent && now_ms() < deadline)
		poll(NULL, 0, 10);
	if (is_c)
		result(dreqs_sent(old) == sent, state,
		       "as expected, the C module sends no other DREQ");
	else
		result(dreqs_sent(old) == sent + 1, state, "the DREQ is sent again at once");
	rdma_disconnect(old->id);
	result(told(stale, RDMA_CM_EVENT_DISCONNECTED), state, "a late answer is enough");
	attempt(state, qpn, true);
	forget(old);
	forget(stale);
}

static void stale_dreq_rcvd(void)
{
	const char *state = "DREQ_RCVD";
	uint32_t qpn = next_qpn++;
	struct end *old = request(qpn), *stale = passive();

	accept_with(stale, next_qpn++);
	establish(old, stale);
	rdma_disconnect(old->id);
	must(stale, RDMA_CM_EVENT_DISCONNECTED);
	newcomer_refused(state, qpn);
	if (is_c)
		result(!told_within(old, RDMA_CM_EVENT_DISCONNECTED, SILENCE_MS), state,
		       "as expected, the C module does not answer the DREQ");
	else
		result(told(old, RDMA_CM_EVENT_DISCONNECTED), state, "the DREQ is answered");
	attempt(state, qpn, !is_c);
	forget(old);
	forget(stale);
}

/* A REP that names a QPN which another connection knows as its peer's. */
static void stale_by_rep(bool established)
{
	const char *state = established ? "REP, ESTABLISHED" : "REP, MRA_REP_SENT";
	uint32_t qpn = next_qpn++;
	struct end *stale = request(next_qpn++), *other = passive(), *connecting, *second;

	accept_with(other, qpn);
	if (established)
		establish(stale, other);
	else
		must(stale, RDMA_CM_EVENT_CONNECT_RESPONSE);
	connecting = request(next_qpn++);
	second = passive();
	accept_with(second, qpn);
	result(refused(second), state, "the sender of the REP gets REJ 10");
	ended_by_reject(state, connecting, "connecting end's user");
	if (established)
		result(told(other, RDMA_CM_EVENT_DISCONNECTED), state, "the stale peer gets a DREQ");
	else
		ended_by_reject(state, stale, "stale end's user");
	forget(connecting);
	forget(second);
	forget(stale);
	forget(other);
}

/* A connection that was ended does not stand in the way of the next one. */
static void leaves_at_timewait(void)
{
	uint32_t qpn = next_qpn++;
	struct end *old = request(qpn), *other = passive();

	accept_with(other, next_qpn++);
	establish(old, other);
	rdma_disconnect(old->id);
	must(other, RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(other->id);
	must(old, RDMA_CM_EVENT_DISCONNECTED);
	attempt("TIMEWAIT", qpn, true);
	forget(old);
	forget(other);
}

int main(int argc, char **argv)
{
	struct end *listener;

	if (argc != 4) {
		fprintf(stderr, "usage: hold_stale ADDRESS PORT rust|c\n");
		return 2;
	}
	address.sin_family = AF_INET;
	address.sin_port = htons(atoi(argv[2]));
	if (inet_pton(AF_INET, argv[1], &address.sin_addr) != 1)
		die("the address is no IPv4 address");
	is_c = !strcmp(argv[3], "c");
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	listener = new_end();
	if (rdma_bind_addr(listener->id, (struct sockaddr *)&address) ||
	    rdma_listen(listener->id, 64))
		die("cannot listen");
	stale_mra_req_sent();
	stale_rep_sent();
	stale_established();
	stale_dreq_sent();
	stale_dreq_rcvd();
	stale_by_rep(true);
	stale_by_rep(false);
	leaves_at_timewait();
	forget(listener);
	return 0;
}
