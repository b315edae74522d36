// SPDX-License-Identifier: GPL-2.0
/* Which events an identifier gets, in which order and in which state. */

#include "api.h"

/* Waits for the event, and compares the state that its handler saw. */
static struct api_event *event_in(struct api_test *t, struct api_id *id,
				  enum ib_cm_event_type want, enum ib_cm_state state)
{
	struct api_event *event = api_wait(t, id, want);

	if (event)
		api_check(t, event->state == state, "%s in the state %s, expected %s",
			  api_event_name(want), api_state_name(event->state),
			  api_state_name(state));
	return event;
}

static void whole_life(struct api_test *t)
{
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	conn.passive = api_wait_child(t, conn.listener);
	if (!conn.passive)
		return;
	event = event_in(t, conn.passive, IB_CM_REQ_RECEIVED, IB_CM_REQ_RCVD);
	if (!event)
		return;
	api_check(t, event->event.param.req_rcvd.listen_id == conn.listener->cm_id,
		  "REQ_RECEIVED names another listener");
	api_check(t, conn.passive->cm_id != conn.listener->cm_id, "REQ_RECEIVED on the listener");
	api_check(t, conn.passive->cm_id->cm_handler == api_handler, "another handler");
	api_check(t, conn.passive->cm_id->service_id == conn.req.service_id, "another service");
	api_check(t, conn.passive->cm_id->remote_id == conn.active->cm_id->local_id,
		  "the passive side knows another remote ID");

	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	event_in(t, conn.active, IB_CM_REP_RECEIVED, IB_CM_REP_RCVD);
	api_check(t, conn.active->cm_id->remote_id == conn.passive->cm_id->local_id,
		  "the active side knows another remote ID");
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	event_in(t, conn.passive, IB_CM_RTU_RECEIVED, IB_CM_ESTABLISHED);
	api_eq(t, ib_send_cm_dreq(conn.passive->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	event_in(t, conn.active, IB_CM_DREQ_RECEIVED, IB_CM_DREQ_RCVD);
	api_eq(t, ib_send_cm_drep(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_drep");
	event_in(t, conn.passive, IB_CM_DREP_RECEIVED, IB_CM_TIMEWAIT);
	event_in(t, conn.active, IB_CM_TIMEWAIT_EXIT, IB_CM_IDLE);
	event_in(t, conn.passive, IB_CM_TIMEWAIT_EXIT, IB_CM_IDLE);
	api_eq(t, conn.active->delivered, 3, "events of the active side");
	api_eq(t, conn.passive->delivered, 4, "events of the passive side");
	api_eq(t, conn.listener->delivered, 0, "events of the listener itself");
}

/* An identifier that has been through a connection can make another one. */
static void second_life(struct api_test *t)
{
	struct api_conn conn;
	struct api_id *id;
	int i;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_connect(t, &conn) || !api_disconnect(t, &conn))
		return;
	id = conn.active;
	api_wait(t, id, IB_CM_TIMEWAIT_EXIT);
	for (i = 0; i < 2; i++) {
		conn.req.qp_num = api_qpn();
		/* Whether the identifier that was connected can be used at all is the question:
		 * the C module keeps the remote ID, so that the next REP is not for it.
		 */
		if (api_on_c()) {
			api_expected_difference("a second connection with one identifier");
			return;
		}
		conn.rep.qp_num = api_qpn();
		api_eq(t, ib_send_cm_req(id->cm_id, &conn.req), 0, "ib_send_cm_req again");
		conn.passive = api_wait_child(t, conn.listener);
		if (!conn.passive || !api_wait(t, conn.passive, IB_CM_REQ_RECEIVED))
			return;
		api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
		if (!api_wait(t, id, IB_CM_REP_RECEIVED))
			return;
		api_eq(t, ib_send_cm_rtu(id->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
		if (!api_wait(t, conn.passive, IB_CM_RTU_RECEIVED) || !api_disconnect(t, &conn))
			return;
		api_wait(t, id, IB_CM_TIMEWAIT_EXIT);
	}
}

static void send_error(struct api_test *t, struct api_id *id, enum ib_cm_event_type want,
		       enum ib_cm_state state)
{
	struct api_event *event = event_in(t, id, want, state);

	if (event)
		api_eq(t, event->event.param.send_status, IB_WC_RESP_TIMEOUT_ERR,
		       "status of %s", api_event_name(want));
}

static void errors(struct api_test *t)
{
	struct ib_cm_sidr_req_param sidr = {
		.sgid_attr = api_device.attr,
		.timeout_ms = 100,
		.max_cm_retries = 2,
	};
	struct api_conn conn;

	/* Nobody answers, for a quarter of a second. */
	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.max_cm_retries = 3;
	conn.req.remote_cm_response_timeout = 14;
	conn.req.local_cm_response_timeout = 14;
	if (!api_request(t, &conn))
		return;
	send_error(t, conn.active, IB_CM_REQ_ERROR, IB_CM_IDLE);
	api_check(t, conn.passive->cm_id->state == IB_CM_REQ_RCVD,
		  "the passive side noticed the active side's REQ_ERROR");

	api_end_case(t);
	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.max_cm_retries = 3;
	conn.req.local_cm_response_timeout = 14;
	if (!api_request(t, &conn))
		return;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	if (api_on_c()) {
		/* The queue pair may be in use, so there should be a TimeWait. */
		send_error(t, conn.passive, IB_CM_REP_ERROR, IB_CM_IDLE);
		api_expected_difference("TIMEWAIT after REP_ERROR");
	} else {
		send_error(t, conn.passive, IB_CM_REP_ERROR, IB_CM_TIMEWAIT);
		event_in(t, conn.passive, IB_CM_TIMEWAIT_EXIT, IB_CM_IDLE);
	}

	api_end_case(t);
	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.max_cm_retries = 3;
	conn.req.remote_cm_response_timeout = 14;
	if (!api_connect(t, &conn))
		return;
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	send_error(t, conn.active, IB_CM_DREQ_ERROR, IB_CM_TIMEWAIT);
	event_in(t, conn.active, IB_CM_TIMEWAIT_EXIT, IB_CM_IDLE);

	api_end_case(t);
	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	sidr.path = &conn.path;
	sidr.service_id = conn.req.service_id;
	api_eq(t, ib_send_cm_sidr_req(conn.active->cm_id, &sidr), 0, "ib_send_cm_sidr_req");
	send_error(t, conn.active, IB_CM_SIDR_REQ_ERROR, IB_CM_IDLE);
}

/* The one that asked has given up, and lets the other know (the C module lets it repeat). */
static void late_rep(struct api_test *t)
{
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.max_cm_retries = 3;
	conn.req.remote_cm_response_timeout = 14;
	conn.req.local_cm_response_timeout = 14;
	if (!api_request(t, &conn))
		return;
	send_error(t, conn.active, IB_CM_REQ_ERROR, IB_CM_IDLE);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	if (api_on_c()) {
		send_error(t, conn.passive, IB_CM_REP_ERROR, IB_CM_IDLE);
		api_expected_difference("REJ of a REP that comes too late");
	} else {
		event = api_wait(t, conn.passive, IB_CM_REJ_RECEIVED);
		if (event)
			api_eq(t, event->event.param.rej_rcvd.reason, IB_CM_REJ_INVALID_COMM_ID,
			       "reason");
	}
	/* Nothing more for the one that has been told of the error. */
	api_eq(t, conn.active->delivered, 1, "events of the active side");
	api_check(t, conn.active->cm_id->state == IB_CM_IDLE, "the active side is in %s",
		  api_state_name(conn.active->cm_id->state));
}

static void mra_of_req(struct api_test *t)
{
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	api_eq(t, ib_prepare_cm_mra(conn.passive->cm_id), 0, "ib_prepare_cm_mra");
	/* It is sent when the REQ comes again. */
	event = event_in(t, conn.active, IB_CM_MRA_RECEIVED, IB_CM_MRA_REQ_RCVD);
	if (!event)
		return;
	api_eq(t, event->event.param.mra_rcvd.service_timeout, 24, "service timeout of the MRA");
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	event_in(t, conn.active, IB_CM_REP_RECEIVED, IB_CM_REP_RCVD);
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	event_in(t, conn.passive, IB_CM_RTU_RECEIVED, IB_CM_ESTABLISHED);
}

static void mra_of_rep(struct api_test *t)
{
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	if (!event_in(t, conn.active, IB_CM_REP_RECEIVED, IB_CM_REP_RCVD))
		return;
	api_eq(t, ib_prepare_cm_mra(conn.active->cm_id), 0, "ib_prepare_cm_mra");
	event = event_in(t, conn.passive, IB_CM_MRA_RECEIVED, IB_CM_MRA_REP_RCVD);
	if (!event)
		return;
	api_eq(t, event->event.param.mra_rcvd.service_timeout, 24, "service timeout of the MRA");
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	event_in(t, conn.passive, IB_CM_RTU_RECEIVED, IB_CM_ESTABLISHED);
}

static int answer_dreq(struct api_id *id, const struct ib_cm_event *event)
{
	if (event->event == IB_CM_DREQ_RECEIVED)
		ib_send_cm_drep(id->cm_id, NULL, 0);
	return 0;
}

/*
 * Both ask at the same time: each gets the other's DREQ or a DREP, and one TIMEWAIT_EXIT. Where the
 * first DREQ is quicker than the second call it is a question like any other, and answered at once.
 */
static void crossing_dreqs(struct api_test *t)
{
	struct api_id *ends[2];
	struct api_event *event;
	struct api_conn conn;
	int i, ret;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_connect(t, &conn))
		return;
	ends[0] = conn.active;
	ends[1] = conn.passive;
	conn.active->hook = answer_dreq;
	conn.passive->hook = answer_dreq;
	for (i = 0; i < 2; i++) {
		ret = ib_send_cm_dreq(ends[i]->cm_id, NULL, 0);
		api_check(t, !ret || ret == -EINVAL, "ib_send_cm_dreq: %d", ret);
	}
	for (i = 0; i < 2; i++) {
		while ((event = api_wait_ms(ends[i], API_WAIT_MS))) {
			if (event->event.event == IB_CM_TIMEWAIT_EXIT)
				break;
			if (event->event.event != IB_CM_DREQ_RECEIVED)
				api_check(t, event->event.event == IB_CM_DREP_RECEIVED, "got %s",
					  api_event_name(event->event.event));
		}
		api_check(t, event, "no TIMEWAIT_EXIT after DREQs that crossed");
	}
}

static const struct api_case cases[] = {
	{ "a connection from REQ to TIMEWAIT_EXIT", whole_life },
	{ "one identifier, two connections", second_life },
	{ "messages that nobody answers", errors },
	{ "a REP after REQ_ERROR", late_rep },
	{ "MRA of a REQ", mra_of_req },
	{ "MRA of a REP", mra_of_rep },
	{ "DREQs that cross", crossing_dreqs },
};

const struct api_suite api_suite_order = API_SUITE("order", cases);
