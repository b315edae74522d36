// SPDX-License-Identifier: GPL-2.0
/* The end of an identifier in each state, as its peer sees it. SIDR. */

#include "api.h"

/* No event at all. */
#define NOTHING		((enum ib_cm_event_type)-1)

static const struct end {
	enum ib_cm_state state;
	enum ib_cm_event_type peer_gets;
	int reason;
} ends[] = {
	{ IB_CM_IDLE, NOTHING },
	{ IB_CM_LISTEN, NOTHING },
	/* The active side gave up before a REP. */
	{ IB_CM_REQ_SENT, IB_CM_REJ_RECEIVED, IB_CM_REJ_TIMEOUT },
	{ IB_CM_MRA_REQ_RCVD, IB_CM_REJ_RECEIVED, IB_CM_REJ_TIMEOUT },
	/* A side gave up before the connection was established. */
	{ IB_CM_REQ_RCVD, IB_CM_REJ_RECEIVED, IB_CM_REJ_CONSUMER_DEFINED },
	{ IB_CM_MRA_REQ_SENT, IB_CM_REJ_RECEIVED, IB_CM_REJ_CONSUMER_DEFINED },
	{ IB_CM_REP_SENT, IB_CM_REJ_RECEIVED, IB_CM_REJ_CONSUMER_DEFINED },
	{ IB_CM_MRA_REP_RCVD, IB_CM_REJ_RECEIVED, IB_CM_REJ_CONSUMER_DEFINED },
	{ IB_CM_REP_RCVD, IB_CM_REJ_RECEIVED, IB_CM_REJ_CONSUMER_DEFINED },
	{ IB_CM_MRA_REP_SENT, IB_CM_REJ_RECEIVED, IB_CM_REJ_CONSUMER_DEFINED },
	{ IB_CM_ESTABLISHED, IB_CM_DREQ_RECEIVED },
	/* The peer has the DREQ already. */
	{ IB_CM_DREQ_SENT, NOTHING },
	{ IB_CM_DREQ_RCVD, IB_CM_DREP_RECEIVED },
	{ IB_CM_TIMEWAIT, NOTHING },
	{ IB_CM_SIDR_REQ_SENT, NOTHING },
	{ IB_CM_SIDR_REQ_RCVD, IB_CM_SIDR_REP_RECEIVED },
};

static void check_rejection(struct api_test *t, const struct end *end, struct api_event *event)
{
	const struct ib_cm_rej_event_param *rej = &event->event.param.rej_rcvd;

	api_eq(t, rej->reason, end->reason, "reason from %s", api_state_name(end->state));
	if (end->reason != IB_CM_REJ_TIMEOUT)
		return;
	api_eq(t, rej->ari_length, 8, "length of the information of a timeout");
	api_check(t, !memcmp(event->info, &api_device.ib_device->node_guid, 8),
		  "the information of a timeout is no GUID");
}

/* A listener that is gone is no listener. */
static void check_no_listener(struct api_test *t, struct api_conn *conn)
{
	struct api_id *id = api_create(t);
	struct api_event *event;

	if (!id)
		return;
	api_eq(t, ib_send_cm_req(id->cm_id, &conn->req), 0, "ib_send_cm_req to no listener");
	event = api_wait(t, id, IB_CM_REJ_RECEIVED);
	if (!event)
		return;
	api_eq(t, event->event.param.rej_rcvd.reason, IB_CM_REJ_INVALID_SERVICE_ID, "reason");
	api_check(t, event->state == IB_CM_IDLE, "the state is %s", api_state_name(event->state));
}

static void destroy_in(struct api_test *t, const struct end *end)
{
	struct api_id *id, *peer;
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, api_life_time(end->state));
	id = api_reach(t, &conn, end->state);
	if (!id)
		return;
	peer = id == conn.active ? conn.passive : conn.active;
	api_destroy(id);
	if (end->state == IB_CM_LISTEN)
		check_no_listener(t, &conn);
	if (end->peer_gets == NOTHING)
		return;
	event = api_wait(t, peer, end->peer_gets);
	if (!event)
		return;
	if (end->peer_gets == IB_CM_REJ_RECEIVED)
		check_rejection(t, end, event);
	if (end->peer_gets == IB_CM_SIDR_REP_RECEIVED)
		api_eq(t, event->event.param.sidr_rep_rcvd.status, IB_SIDR_REJECT, "status");
	/* Where the peer's queue pair may have been used a TimeWait follows. */
	if (event->state == IB_CM_TIMEWAIT)
		api_wait(t, peer, IB_CM_TIMEWAIT_EXIT);
}

static void each_state(struct api_test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		unsigned int failures = t->failures;

		destroy_in(t, &ends[i]);
		if (t->failures > failures)
			api_note("destroyed in %s", api_state_name(ends[i].state));
		api_end_case(t);
	}
}

/* The target of XRC goes without a DREQ: what the peer hears first is the answer to its own. */
static void xrc_target(struct api_test *t)
{
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.qp_type = IB_QPT_XRC_INI;
	if (!api_connect(t, &conn))
		return;
	api_destroy(conn.passive);
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	api_wait(t, conn.active, IB_CM_DREP_RECEIVED);
}

/* In the very moment in which the other side goes on. */
static void at_once(struct api_test *t)
{
	int i;

	for (i = 0; i < 50; i++) {
		struct api_conn conn;

		api_conn_init(&conn, API_LIFE_TIME);
		if (!api_request(t, &conn))
			return;
		api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
		api_destroy(i & 1 ? conn.passive : conn.active);
		api_end_case(t);

		api_conn_init(&conn, API_LIFE_TIME);
		if (!api_connect(t, &conn))
			return;
		api_eq(t, ib_send_cm_dreq(conn.passive->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
		api_destroy(i & 1 ? conn.passive : conn.active);
		api_end_case(t);
	}
}

/* --- SIDR --- */

static u8 sidr_data[IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE];

static struct api_id *resolve(struct api_test *t, struct api_conn *conn, u8 len)
{
	struct ib_cm_sidr_req_param param = {
		.path = &conn->path,
		.sgid_attr = api_device.attr,
		.service_id = conn->req.service_id,
		.timeout_ms = 1000,
		.max_cm_retries = 15,
		.private_data = sidr_data,
		.private_data_len = len,
	};

	conn->active = api_create(t);
	if (!conn->active)
		return NULL;
	api_eq(t, ib_send_cm_sidr_req(conn->active->cm_id, &param), 0, "ib_send_cm_sidr_req");
	return conn->active;
}

static bool sidr_length(struct api_test *t, struct api_conn *conn, unsigned int len)
{
	u8 info_length = min_t(unsigned int, len, IB_CM_SIDR_REP_INFO_LENGTH);
	u8 rep_len = min_t(unsigned int, len, IB_CM_SIDR_REP_PRIVATE_DATA_SIZE);
	struct ib_cm_sidr_rep_param param = {
		.qp_num = 0x654321,
		.qkey = 0x80010203,
		.status = len % (IB_SIDR_UNSUPPORTED_VERSION + 1),
		.info = sidr_data,
		.info_length = info_length,
		.private_data = sidr_data,
		.private_data_len = rep_len,
		.ece = { .vendor_id = 0xabcd, .attr_mod = 0x12345678 },
	};
	const struct ib_cm_sidr_req_event_param *req;
	const struct ib_cm_sidr_rep_event_param *rep;
	struct api_event *event;
	unsigned int i;

	for (i = 0; i < sizeof(sidr_data); i++)
		sidr_data[i] = i * 5 + len + 1;
	if (!resolve(t, conn, len))
		return false;
	conn->passive = api_wait_child(t, conn->listener);
	event = conn->passive ? api_wait(t, conn->passive, IB_CM_SIDR_REQ_RECEIVED) : NULL;
	if (!event)
		return false;
	req = &event->event.param.sidr_req_rcvd;
	api_check(t, req->listen_id == conn->listener->cm_id, "another listener");
	api_check(t, req->service_id == conn->req.service_id, "another service ID");
	api_check(t, req->sgid_attr == api_device.attr, "another source GID");
	api_eq(t, req->bth_pkey, 0xffff, "P_Key of the message");
	api_eq(t, req->pkey, 0xffff, "P_Key");
	api_eq(t, req->port, api_device.port, "port");
	api_check(t, !memcmp(event->private_data, sidr_data, len), "SIDR REQ data, length %u", len);
	api_check(t, !memchr_inv(event->private_data + len, 0,
				 IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE - len),
		  "more SIDR REQ data than %u", len);

	api_eq(t, ib_send_cm_sidr_rep(conn->passive->cm_id, &param), 0, "ib_send_cm_sidr_rep");
	event = api_wait(t, conn->active, IB_CM_SIDR_REP_RECEIVED);
	if (!event)
		return false;
	rep = &event->event.param.sidr_rep_rcvd;
	api_eq(t, rep->status, param.status, "status");
	api_eq(t, rep->qpn, 0x654321, "QPN");
	api_eq(t, rep->qkey, 0x80010203, "Q_Key");
	api_check(t, rep->sgid_attr == api_device.attr, "another source GID");
	/* The sender does not say how much there is. */
	api_eq(t, rep->info_len, 0, "length of the information");
	api_check(t, !memcmp(event->info, sidr_data, info_length), "information, length %u",
		  info_length);
	api_check(t, !memcmp(event->private_data, sidr_data, rep_len), "SIDR REP data, length %u",
		  rep_len);
	api_eq(t, event->state, IB_CM_IDLE, "state after SIDR_REP_RECEIVED");
	api_eq(t, conn->passive->cm_id->state, IB_CM_IDLE, "state after the answer");
	api_destroy(conn->active);
	api_destroy(conn->passive);
	return true;
}

static void sidr(struct api_test *t)
{
	struct api_conn conn;
	unsigned int len;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	if (!conn.listener)
		return;
	for (len = 0; len <= IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE; len++)
		if (!sidr_length(t, &conn, len))
			return;
}

static int refuse_all(struct api_id *id, const struct ib_cm_event *event)
{
	return -EINVAL;
}

/* Answers that are the connection manager's own. */
static void sidr_refused(struct api_test *t)
{
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!resolve(t, &conn, 0))
		return;
	event = api_wait(t, conn.active, IB_CM_SIDR_REP_RECEIVED);
	if (event)
		api_eq(t, event->event.param.sidr_rep_rcvd.status, IB_SIDR_UNSUPPORTED,
		       "status without a listener");

	conn.listener = api_listen(t, conn.req.service_id);
	if (!conn.listener)
		return;
	conn.listener->hook = refuse_all;
	if (!resolve(t, &conn, 0))
		return;
	event = api_wait(t, conn.active, IB_CM_SIDR_REP_RECEIVED);
	if (event)
		api_eq(t, event->event.param.sidr_rep_rcvd.status, IB_SIDR_REJECT,
		       "status after a handler that fails");
}

static const struct api_case cases[] = {
	{ "destroyed in each state", each_state },
	{ "an XRC target", xrc_target },
	{ "destroyed at once", at_once },
	{ "SIDR, each length and status", sidr },
	{ "SIDR that is refused", sidr_refused },
};

const struct api_suite api_suite_destroy = API_SUITE("destroy", cases);
