// SPDX-License-Identifier: GPL-2.0
/*
 * A request for a queue pair that still has a connection here: the peer has lost that connection
 * (IBA 12.9.8.3.1). The newcomer is told so, the old connection ends in whatever state it is, and
 * the newcomer's next request is accepted.
 */

#include <linux/delay.h>

#include "wire.h"

#define MAX_TRIES	100

/* What the consumer of the stale connection gets, and what its state is then. */
static const struct stale {
	enum ib_cm_state state;
	bool rejected;		/* REJ_RECEIVED with reason 10 */
	bool timewait;		/* and TIMEWAIT_EXIT at the end */
	bool c_too;		/* the C module does the same */
} stales[] = {
	{ IB_CM_REQ_RCVD, true, false },
	{ IB_CM_MRA_REQ_SENT, true, false },
	{ IB_CM_REP_SENT, true, true },
	{ IB_CM_MRA_REP_RCVD, true, true },
	{ IB_CM_REP_RCVD, true, true },
	{ IB_CM_MRA_REP_SENT, true, true },
	{ IB_CM_ESTABLISHED, false, true, true },
	{ IB_CM_DREQ_SENT, false, true },
	{ IB_CM_DREQ_RCVD, false, true },
};

/* As a consumer that answers every DREQ. */
static int answer_dreq(struct api_id *id, const struct ib_cm_event *event)
{
	if (event->event == IB_CM_DREQ_RECEIVED)
		ib_send_cm_drep(id->cm_id, NULL, 0);
	return 0;
}

/* One request; the reason when it is rejected, 0 when it is shown to a listener. */
static int try_request(struct api_test *t, u32 qp_num)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(API_WAIT_MS);
	struct api_event *event = NULL;
	struct api_conn conn;
	int reason = 0;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.qp_num = qp_num;
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return -ENOMEM;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	while (list_empty(&conn.listener->children)) {
		event = api_wait_ms(conn.active, 1);
		if (event || !api_check(t, time_before(jiffies, deadline), "no answer"))
			break;
	}
	if (event && event->event.event == IB_CM_REJ_RECEIVED)
		reason = event->event.param.rej_rcvd.reason;
	/* Gone again, with its queue pair. */
	if (!list_empty(&conn.listener->children))
		api_destroy(api_wait_child(t, conn.listener));
	api_destroy(conn.active);
	api_destroy(conn.listener);
	return reason;
}

static void check_events(struct api_test *t, struct api_id *id, const struct stale *stale)
{
	enum ib_cm_state then = stale->timewait ? IB_CM_TIMEWAIT : IB_CM_IDLE;
	const struct ib_cm_rej_event_param *rej;
	struct api_event *event;

	if (stale->rejected) {
		event = api_wait(t, id, IB_CM_REJ_RECEIVED);
		if (!event)
			return;
		rej = &event->event.param.rej_rcvd;
		api_eq(t, rej->reason, IB_CM_REJ_STALE_CONN, "reason");
		api_eq(t, rej->ari_length, 0, "length of the information");
		api_check(t, !memchr_inv(event->info, 0, sizeof(event->info)), "information");
		api_check(t, !memchr_inv(event->private_data, 0, IB_CM_REJ_PRIVATE_DATA_SIZE),
			  "private data");
		/* While the DREQ waits for its answer the state can be the one of a DREQ. */
		if (!stale->timewait)
			api_check(t, event->state == then, "the state is %s",
				  api_state_name(event->state));
	}
	if (stale->state == IB_CM_ESTABLISHED || stale->state == IB_CM_DREQ_SENT)
		api_wait(t, id, IB_CM_DREP_RECEIVED);
	if (stale->timewait)
		api_wait(t, id, IB_CM_TIMEWAIT_EXIT);
}

static void stale_in(struct api_test *t, const struct stale *stale)
{
	struct api_conn conn;
	struct api_id *id;
	u32 remote_qpn;
	int i, reason;

	api_conn_init(&conn, API_LIFE_TIME);
	id = api_reach(t, &conn, stale->state);
	if (!id)
		return;
	/* The other end has the connection still, and lets it go. */
	conn.active->hook = answer_dreq;
	conn.passive->hook = answer_dreq;
	remote_qpn = id == conn.active ? conn.rep.qp_num : conn.req.qp_num;

	reason = try_request(t, remote_qpn);
	api_eq(t, reason, IB_CM_REJ_STALE_CONN, "reason for the newcomer");
	if (stale->state == IB_CM_DREQ_SENT)
		/* The DREQ of before has its answer still to come. */
		ib_send_cm_drep(conn.passive->cm_id, NULL, 0);
	check_events(t, id, stale);
	for (i = 0; i < MAX_TRIES; i++) {
		reason = try_request(t, remote_qpn);
		if (reason != IB_CM_REJ_STALE_CONN)
			break;
		usleep_range(10000, 20000);
	}
	api_eq(t, reason, 0, "reason for the newcomer afterwards");
}

static void each_state(struct api_test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(stales); i++) {
		unsigned int failures = t->failures;

		if (api_on_c() && !stales[i].c_too) {
			api_expected_difference("a stale connection in %s",
						api_state_name(stales[i].state));
			continue;
		}
		stale_in(t, &stales[i]);
		if (t->failures > failures)
			api_note("stale in %s", api_state_name(stales[i].state));
		api_end_case(t);
	}
}

/* A REP whose queue pair has a connection already. */
static void stale_rep(struct api_test *t)
{
	struct api_conn old, conn;
	struct api_event *event;

	api_conn_init(&old, API_LIFE_TIME);
	if (!api_connect(t, &old))
		return;
	old.passive->hook = answer_dreq;
	api_conn_init(&conn, API_LIFE_TIME);
	conn.rep.qp_num = old.rep.qp_num;
	if (!api_request(t, &conn))
		return;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	event = api_wait(t, conn.passive, IB_CM_REJ_RECEIVED);
	if (event)
		api_eq(t, event->event.param.rej_rcvd.reason, IB_CM_REJ_STALE_CONN,
		       "reason for the REP");
	api_wait(t, conn.passive, IB_CM_TIMEWAIT_EXIT);
	/* The connection that stood is ended. */
	api_wait(t, old.active, IB_CM_DREP_RECEIVED);
	api_wait(t, old.active, IB_CM_TIMEWAIT_EXIT);
	if (api_on_c()) {
		api_expected_difference("the end of the one that connects with a stale queue pair");
		return;
	}
	event = api_wait(t, conn.active, IB_CM_REJ_RECEIVED);
	if (event)
		api_eq(t, event->event.param.rej_rcvd.reason, IB_CM_REJ_STALE_CONN,
		       "reason for the one that connects");
	api_wait(t, conn.active, IB_CM_TIMEWAIT_EXIT);
}

static long dreqs(enum wire_group group)
{
	return wire_counter(&api_device, group, WIRE_DREQ);
}

/* The DREQ of a stale connection is repeated as often as the REQ of that one has allowed. */
static void unanswered(struct api_test *t)
{
	const unsigned int retries = 3;
	struct api_conn conn;
	long sent, repeated;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.max_cm_retries = retries;
	/* 64 ms each */
	conn.req.local_cm_response_timeout = 14;
	if (!api_connect(t, &conn))
		return;
	sent = dreqs(WIRE_TX);
	repeated = dreqs(WIRE_TX_RETRIES);
	api_eq(t, try_request(t, conn.req.qp_num), IB_CM_REJ_STALE_CONN,
	       "reason for the newcomer");
	api_wait(t, conn.active, IB_CM_DREQ_RECEIVED);
	api_wait(t, conn.passive, IB_CM_DREQ_ERROR);
	api_wait(t, conn.passive, IB_CM_TIMEWAIT_EXIT);
	api_eq(t, dreqs(WIRE_TX) - sent, retries + 1, "DREQs");
	api_eq(t, dreqs(WIRE_TX_RETRIES) - repeated, retries, "repeated DREQs");
	api_eq(t, try_request(t, conn.req.qp_num), 0, "reason for the newcomer afterwards");
}

static const struct api_case cases[] = {
	{ "a REQ, in each state", each_state },
	{ "a REQ, and nobody answers the DREQ", unanswered },
	{ "a REP", stale_rep },
};

const struct api_suite api_suite_stale = API_SUITE("stale", cases);
