// SPDX-License-Identifier: GPL-2.0
/* Handlers that fail, for each event that handlers.c has not: their identifiers go, and no event
 * follows.
 */

#include "api.h"

static int refuse_hook(struct api_id *id, const struct ib_cm_event *event)
{
	return event->event == (unsigned long)id->hook_data ? -ECONNABORTED : 0;
}

static void refuse(struct api_id *id, enum ib_cm_event_type which)
{
	id->hook_data = (void *)(unsigned long)which;
	id->hook = refuse_hook;
}

/* The event that is refused comes, and the identifier is gone with it. */
static bool refused(struct api_test *t, struct api_id *id, enum ib_cm_event_type which)
{
	return api_wait(t, id, which) &&
	       api_check(t, id->gone, "an identifier is still there, whose handler of %s failed",
			 api_event_name(which));
}

static void peer_is_rejected(struct api_test *t, struct api_id *peer, int reason)
{
	struct api_event *event = api_wait(t, peer, IB_CM_REJ_RECEIVED);

	if (event)
		api_eq(t, event->event.param.rej_rcvd.reason, reason, "reason");
}

static void rej(struct api_test *t)
{
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	refuse(conn.active, IB_CM_REJ_RECEIVED);
	api_eq(t, ib_send_cm_rej(conn.passive->cm_id, IB_CM_REJ_NO_QP, NULL, 0, NULL, 0), 0,
	       "ib_send_cm_rej");
	refused(t, conn.active, IB_CM_REJ_RECEIVED);
}

static void mra(struct api_test *t)
{
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	refuse(conn.active, IB_CM_MRA_RECEIVED);
	api_eq(t, ib_prepare_cm_mra(conn.passive->cm_id), 0, "ib_prepare_cm_mra");
	if (refused(t, conn.active, IB_CM_MRA_RECEIVED))
		peer_is_rejected(t, conn.passive, IB_CM_REJ_TIMEOUT);
	api_end_case(t);

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	refuse(conn.passive, IB_CM_MRA_RECEIVED);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	if (!api_wait(t, conn.active, IB_CM_REP_RECEIVED))
		return;
	api_eq(t, ib_prepare_cm_mra(conn.active->cm_id), 0, "ib_prepare_cm_mra");
	if (refused(t, conn.passive, IB_CM_MRA_RECEIVED))
		peer_is_rejected(t, conn.active, IB_CM_REJ_CONSUMER_DEFINED);
}

static void user_established(struct api_test *t)
{
	struct api_conn conn;

	if (api_on_c()) {
		/* Its destruction waits until the REP was repeated in vain. */
		api_expected_difference("a handler of USER_ESTABLISHED that fails");
		return;
	}
	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	refuse(conn.passive, IB_CM_USER_ESTABLISHED);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	api_eq(t, ib_cm_notify(conn.passive->cm_id, IB_EVENT_COMM_EST), 0, "ib_cm_notify");
	refused(t, conn.passive, IB_CM_USER_ESTABLISHED);
}

/* The peer's TIMEWAIT is as long: what comes late to the identifier would have come by its end. */
static void drep(struct api_test *t)
{
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_connect(t, &conn))
		return;
	refuse(conn.active, IB_CM_DREP_RECEIVED);
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	if (!api_wait(t, conn.passive, IB_CM_DREQ_RECEIVED))
		return;
	api_eq(t, ib_send_cm_drep(conn.passive->cm_id, NULL, 0), 0, "ib_send_cm_drep");
	if (refused(t, conn.active, IB_CM_DREP_RECEIVED))
		api_wait(t, conn.passive, IB_CM_TIMEWAIT_EXIT);
	api_eq(t, conn.active->delivered, 2, "events of the one that failed");
}

/* A quarter of a second in which nobody answers. */
static void impatient(struct api_conn *conn)
{
	api_conn_init(conn, API_LIFE_TIME);
	conn->req.max_cm_retries = 3;
	conn->req.remote_cm_response_timeout = 14;
	conn->req.local_cm_response_timeout = 14;
}

static void req_error(struct api_test *t)
{
	struct api_conn conn;

	impatient(&conn);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	refuse(conn.active, IB_CM_REQ_ERROR);
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	refused(t, conn.active, IB_CM_REQ_ERROR);
}

static void rep_error(struct api_test *t)
{
	struct api_conn conn;

	impatient(&conn);
	/* The active side has its reply before it could give up. */
	conn.req.remote_cm_response_timeout = 20;
	if (!api_request(t, &conn))
		return;
	refuse(conn.passive, IB_CM_REP_ERROR);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	refused(t, conn.passive, IB_CM_REP_ERROR);
	api_eq(t, conn.passive->delivered, 2, "events of the one that failed");
}

static void dreq_error(struct api_test *t)
{
	struct api_conn conn;

	impatient(&conn);
	conn.req.max_cm_retries = 15;
	if (!api_connect(t, &conn))
		return;
	refuse(conn.active, IB_CM_DREQ_ERROR);
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	refused(t, conn.active, IB_CM_DREQ_ERROR);
	api_eq(t, conn.active->delivered, 2, "events of the one that failed");
}

static void sidr(struct api_test *t)
{
	struct ib_cm_sidr_rep_param answer = { .qp_num = 1, .status = IB_SIDR_SUCCESS };
	struct ib_cm_sidr_req_param param = {
		.sgid_attr = api_device.attr,
		.timeout_ms = 100,
		.max_cm_retries = 2,
	};
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_reach(t, &conn, IB_CM_SIDR_REQ_SENT))
		return;
	refuse(conn.active, IB_CM_SIDR_REP_RECEIVED);
	api_eq(t, ib_send_cm_sidr_rep(conn.passive->cm_id, &answer), 0, "ib_send_cm_sidr_rep");
	refused(t, conn.active, IB_CM_SIDR_REP_RECEIVED);
	api_end_case(t);

	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	refuse(conn.active, IB_CM_SIDR_REQ_ERROR);
	param.path = &conn.path;
	param.service_id = conn.req.service_id;
	api_eq(t, ib_send_cm_sidr_req(conn.active->cm_id, &param), 0, "ib_send_cm_sidr_req");
	refused(t, conn.active, IB_CM_SIDR_REQ_ERROR);
}

static const struct api_case cases[] = {
	{ "of a REJ", rej },
	{ "of an MRA", mra },
	{ "of USER_ESTABLISHED", user_established },
	{ "of a DREP", drep },
	{ "of REQ_ERROR", req_error },
	{ "of REP_ERROR", rep_error },
	{ "of DREQ_ERROR", dreq_error },
	{ "of SIDR", sidr },
};

const struct api_suite api_suite_refused = API_SUITE("refused", cases);
