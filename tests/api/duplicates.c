// SPDX-License-Identifier: GPL-2.0
/* Messages of a living connection that come again, too late, or with something wrong. */

#include "wire.h"

/* A TimeWait that outlasts the comparison of counters. */
#define LIFE_TIME_8_S	20

/* The messages of the active side of a connection. */
static void from_active(union wire_mad *mad, enum wire_attr attr, const struct api_conn *conn)
{
	wire_ids(mad, attr, conn->active->cm_id->local_id, conn->passive->cm_id->local_id);
}

static void from_passive(union wire_mad *mad, enum wire_attr attr, const struct api_conn *conn)
{
	wire_ids(mad, attr, conn->passive->cm_id->local_id, conn->active->cm_id->local_id);
}

static void rep_of(union wire_mad *mad, const struct api_conn *conn)
{
	from_passive(mad, WIRE_REP, conn);
	IBA_SET(CM_REP_LOCAL_QPN, &mad->rep, conn->rep.qp_num);
	IBA_SET(CM_REP_LOCAL_CA_GUID, &mad->rep, be64_to_cpu(api_device.ib_device->node_guid));
}

static void dreq_of(union wire_mad *mad, const struct api_conn *conn)
{
	from_active(mad, WIRE_DREQ, conn);
	IBA_SET(CM_DREQ_REMOTE_QPN_EECN, &mad->dreq, conn->rep.qp_num);
}

/* The connection's own repetitions would be counted as well: there must be none for a while. */
static struct api_id *reach_quiet(struct api_test *t, struct api_conn *conn,
				  enum ib_cm_state state)
{
	api_conn_init(conn, state == IB_CM_TIMEWAIT ? LIFE_TIME_8_S : API_LIFE_TIME_LONG);
	conn->req.remote_cm_response_timeout = 21;
	conn->req.local_cm_response_timeout = 21;
	return api_reach(t, conn, state);
}

static bool begin(struct api_test *t, struct api_conn *conn, enum ib_cm_state state,
		  struct wire_counters *expected)
{
	return reach_quiet(t, conn, state) && wire_begin(t, expected);
}

/* No event and no other state came of a message. */
static void end(struct api_test *t, struct api_conn *conn, enum ib_cm_state active,
		enum ib_cm_state passive, const char *what)
{
	struct api_event *event;

	wire_close();
	if (conn->active)
		api_check(t, conn->active->cm_id->state == active, "%s: active side in %s", what,
			  api_state_name(conn->active->cm_id->state));
	if (conn->passive)
		api_check(t, conn->passive->cm_id->state == passive, "%s: passive side in %s", what,
			  api_state_name(conn->passive->cm_id->state));
	event = conn->active ? api_wait_ms(conn->active, 0) : NULL;
	api_check(t, !event, "%s: %s on the active side", what,
		  event ? api_event_name(event->event.event) : "");
	event = conn->passive ? api_wait_ms(conn->passive, 0) : NULL;
	api_check(t, !event, "%s: %s on the passive side", what,
		  event ? api_event_name(event->event.event) : "");
	api_check(t, list_empty(&conn->listener->children), "%s: a request for the listener", what);
	api_end_case(t);
}

static void dup_req(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_REQ_RCVD, &expected))
		return;
	wire_req(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REQ, 1);
	wire_send_and_compare(t, &mad, &expected, "REQ in REQ_RCVD");
	end(t, &conn, IB_CM_REQ_SENT, IB_CM_REQ_RCVD, "REQ in REQ_RCVD");

	if (!begin(t, &conn, IB_CM_REP_SENT, &expected))
		return;
	wire_req(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REQ, 1);
	wire_send_and_compare(t, &mad, &expected, "REQ in REP_SENT");
	end(t, &conn, IB_CM_REP_RCVD, IB_CM_REP_SENT, "REQ in REP_SENT");

	if (!begin(t, &conn, IB_CM_ESTABLISHED, &expected))
		return;
	wire_req(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REQ, 1);
	wire_send_and_compare(t, &mad, &expected, "REQ in ESTABLISHED");
	end(t, &conn, IB_CM_ESTABLISHED, IB_CM_ESTABLISHED, "REQ in ESTABLISHED");
}

/* A consumer that takes its time: the repetition is answered with MRA, which has an effect. */
static void dup_req_mra(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_MRA_REQ_SENT, &expected))
		return;
	wire_req(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REQ, 1);
	wire_expect_repeated(&expected, WIRE_MRA);
	wire_send_and_compare(t, &mad, &expected, "REQ in MRA_REQ_SENT");
	api_wait(t, conn.active, IB_CM_MRA_RECEIVED);
	/* A second MRA changes nothing more. */
	from_passive(&mad, WIRE_MRA, &conn);
	IBA_SET(CM_MRA_SERVICE_TIMEOUT, &mad.mra, 3);
	wire_expect(&expected, WIRE_RX, WIRE_MRA, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_MRA, 1);
	wire_send_and_compare(t, &mad, &expected, "MRA in MRA_REQ_RCVD");
	end(t, &conn, IB_CM_MRA_REQ_RCVD, IB_CM_MRA_REQ_SENT, "REQ in MRA_REQ_SENT");
}

/* A delayed repetition of a REQ whose connection has ended is stale. */
static void dup_req_timewait(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (api_on_c()) {
		api_expected_difference("a REQ that is repeated in TIMEWAIT");
		return;
	}
	if (!begin(t, &conn, IB_CM_TIMEWAIT, &expected))
		return;
	wire_req(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REQ, 1);
	wire_expect_repeated(&expected, WIRE_REJ);
	wire_send_and_compare(t, &mad, &expected, "REQ in TIMEWAIT");
	end(t, &conn, IB_CM_TIMEWAIT, IB_CM_TIMEWAIT, "REQ in TIMEWAIT");
}

/* A peer that uses an ID twice, for another queue pair. */
static void req_of_used_id(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_ESTABLISHED, &expected))
		return;
	wire_req(&mad, &conn);
	IBA_SET(CM_REQ_LOCAL_QPN, &mad.req, api_qpn());
	wire_expect(&expected, WIRE_RX, WIRE_REQ, 1);
	if (api_on_c()) {
		api_note("expected difference of the C module: an ID used twice is a duplicate");
		wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REQ, 1);
	} else {
		wire_expect_sent(&expected, WIRE_REJ);
	}
	wire_send_and_compare(t, &mad, &expected, "REQ of a used ID");
	end(t, &conn, IB_CM_ESTABLISHED, IB_CM_ESTABLISHED, "REQ of a used ID");
}

/* A queue pair that asks again: what stands is stale, and is ended. */
static void stale_qpn(struct api_test *t)
{
	struct api_event *event;
	struct api_conn conn;
	union wire_mad mad;

	if (!reach_quiet(t, &conn, IB_CM_ESTABLISHED) || !wire_open(t, &api_device))
		return;
	wire_req(&mad, &conn);
	IBA_SET(CM_REQ_LOCAL_COMM_ID, &mad.req, ~be32_to_cpu(conn.active->cm_id->local_id));
	wire_send(t, &mad);
	wire_close();
	event = api_wait(t, conn.active, IB_CM_DREQ_RECEIVED);
	if (!event)
		return;
	api_eq(t, ib_send_cm_drep(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_drep");
	api_wait(t, conn.passive, IB_CM_DREP_RECEIVED);
	api_wait(t, conn.passive, IB_CM_TIMEWAIT_EXIT);
	api_check(t, list_empty(&conn.listener->children), "a request of a stale queue pair");
}

static void dup_rep(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_REP_RCVD, &expected))
		return;
	rep_of(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REP, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REP, 1);
	wire_send_and_compare(t, &mad, &expected, "REP in REP_RCVD");
	end(t, &conn, IB_CM_REP_RCVD, IB_CM_REP_SENT, "REP in REP_RCVD");

	/* The RTU may have been lost. The one that is sent again is one too many here. */
	if (!begin(t, &conn, IB_CM_ESTABLISHED, &expected))
		return;
	rep_of(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REP, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_REP, 1);
	wire_expect_repeated(&expected, WIRE_RTU);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_RTU, 1);
	wire_send_and_compare(t, &mad, &expected, "REP in ESTABLISHED");
	end(t, &conn, IB_CM_ESTABLISHED, IB_CM_ESTABLISHED, "REP in ESTABLISHED");
}

static void dup_rtu(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_ESTABLISHED, &expected))
		return;
	from_active(&mad, WIRE_RTU, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_RTU, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_RTU, 1);
	wire_send_and_compare(t, &mad, &expected, "RTU in ESTABLISHED");
	end(t, &conn, IB_CM_ESTABLISHED, IB_CM_ESTABLISHED, "RTU in ESTABLISHED");
}

static void dreqs(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_ESTABLISHED, &expected))
		return;
	dreq_of(&mad, &conn);
	IBA_SET(CM_DREQ_REMOTE_QPN_EECN, &mad.dreq, api_qpn());
	wire_expect(&expected, WIRE_RX, WIRE_DREQ, 1);
	wire_send_and_compare(t, &mad, &expected, "DREQ for another queue pair");
	end(t, &conn, IB_CM_ESTABLISHED, IB_CM_ESTABLISHED, "DREQ for another queue pair");

	if (!begin(t, &conn, IB_CM_DREQ_RCVD, &expected))
		return;
	dreq_of(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_DREQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_DREQ, 1);
	wire_send_and_compare(t, &mad, &expected, "DREQ in DREQ_RCVD");
	end(t, &conn, IB_CM_DREQ_SENT, IB_CM_DREQ_RCVD, "DREQ in DREQ_RCVD");

	if (!begin(t, &conn, IB_CM_TIMEWAIT, &expected))
		return;
	dreq_of(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_DREQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_DREQ, 1);
	wire_expect_repeated(&expected, WIRE_DREP);
	wire_send_and_compare(t, &mad, &expected, "DREQ in TIMEWAIT");
	from_passive(&mad, WIRE_DREP, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_DREP, 1);
	wire_send_and_compare(t, &mad, &expected, "DREP in TIMEWAIT");
	end(t, &conn, IB_CM_TIMEWAIT, IB_CM_TIMEWAIT, "DREQ in TIMEWAIT");
}

static void wrong_mra(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;
	unsigned int i;

	if (!begin(t, &conn, IB_CM_REQ_SENT, &expected))
		return;
	for (i = 1; i < 4; i++) {
		from_passive(&mad, WIRE_MRA, &conn);
		IBA_SET(CM_MRA_MESSAGE_MRAED, &mad.mra, i);
		wire_expect(&expected, WIRE_RX, WIRE_MRA, 1);
		wire_send_and_compare(t, &mad, &expected, "MRA of no REQ in REQ_SENT");
	}
	end(t, &conn, IB_CM_REQ_SENT, IB_CM_REQ_RCVD, "MRA of no REQ in REQ_SENT");

	if (!begin(t, &conn, IB_CM_ESTABLISHED, &expected))
		return;
	for (i = 0; i < 4; i++) {
		from_passive(&mad, WIRE_MRA, &conn);
		IBA_SET(CM_MRA_MESSAGE_MRAED, &mad.mra, i);
		wire_expect(&expected, WIRE_RX, WIRE_MRA, 1);
		wire_send_and_compare(t, &mad, &expected, "MRA in ESTABLISHED");
	}
	end(t, &conn, IB_CM_ESTABLISHED, IB_CM_ESTABLISHED, "MRA in ESTABLISHED");
}

/* "Timeout" is matched by the GUID in its information. */
static void rej_timeout(struct api_test *t)
{
	__be64 guid = api_device.ib_device->node_guid;
	struct wire_counters expected;
	struct api_event *event;
	struct api_conn conn;
	union wire_mad mad;
	unsigned int i;

	if (!begin(t, &conn, IB_CM_REQ_RCVD, &expected))
		return;
	for (i = 0; i < 3; i++) {
		wire_ids(&mad, WIRE_REJ, conn.active->cm_id->local_id, 0);
		IBA_SET(CM_REJ_MESSAGE_REJECTED, &mad.rej, 2);
		IBA_SET(CM_REJ_REASON, &mad.rej, IB_CM_REJ_TIMEOUT);
		IBA_SET(CM_REJ_REJECTED_INFO_LENGTH, &mad.rej, i == 1 ? 127 : 8);
		if (i == 2) {
			__be64 other = ~guid;

			memcpy(IBA_GET_MEM_PTR(CM_REJ_ARI, &mad.rej), &other, sizeof(other));
		}
		wire_expect(&expected, WIRE_RX, WIRE_REJ, 1);
		wire_send_and_compare(t, &mad, &expected, "REJ timeout without the GUID");
	}
	end(t, &conn, IB_CM_REQ_SENT, IB_CM_REQ_RCVD, "REJ timeout without the GUID");

	if (!begin(t, &conn, IB_CM_REQ_RCVD, &expected))
		return;
	wire_ids(&mad, WIRE_REJ, conn.active->cm_id->local_id, 0);
	IBA_SET(CM_REJ_MESSAGE_REJECTED, &mad.rej, 2);
	IBA_SET(CM_REJ_REASON, &mad.rej, IB_CM_REJ_TIMEOUT);
	IBA_SET(CM_REJ_REJECTED_INFO_LENGTH, &mad.rej, 127);
	memcpy(IBA_GET_MEM_PTR(CM_REJ_ARI, &mad.rej), &guid, sizeof(guid));
	wire_expect(&expected, WIRE_RX, WIRE_REJ, 1);
	wire_send_and_compare(t, &mad, &expected, "REJ timeout");
	event = api_wait(t, conn.passive, IB_CM_REJ_RECEIVED);
	/* A consumer must not be told of more than there is room for. */
	if (event && api_on_c())
		api_note("expected difference of the C module: %u bytes of information in %d",
			 event->event.param.rej_rcvd.ari_length, IB_CM_REJ_ARI_LENGTH);
	else if (event)
		api_eq(t, event->event.param.rej_rcvd.ari_length, IB_CM_REJ_ARI_LENGTH,
		       "length of the information");
	end(t, &conn, IB_CM_REQ_SENT, IB_CM_IDLE, "REJ timeout");
}

/* A peer may reject what is established: it ends. */
static void rej_established(struct api_test *t)
{
	struct api_event *event;
	struct api_conn conn;
	union wire_mad mad;

	if (!reach_quiet(t, &conn, IB_CM_ESTABLISHED) || !wire_open(t, &api_device))
		return;
	from_active(&mad, WIRE_REJ, &conn);
	IBA_SET(CM_REJ_MESSAGE_REJECTED, &mad.rej, 2);
	IBA_SET(CM_REJ_REASON, &mad.rej, IB_CM_REJ_CONSUMER_DEFINED);
	wire_send(t, &mad);
	wire_close();
	event = api_wait(t, conn.passive, IB_CM_REJ_RECEIVED);
	if (event)
		api_check(t, event->state == IB_CM_TIMEWAIT, "REJ in ESTABLISHED led to %s",
			  api_state_name(event->state));
	api_wait(t, conn.passive, IB_CM_TIMEWAIT_EXIT);
}

/* LAP and APR are not for RoCE: received, and that is all. */
static void alternate_paths(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_ESTABLISHED, &expected))
		return;
	from_active(&mad, WIRE_LAP, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_LAP, 1);
	wire_send_and_compare(t, &mad, &expected, "LAP");
	from_active(&mad, WIRE_APR, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_APR, 1);
	wire_send_and_compare(t, &mad, &expected, "APR");
	end(t, &conn, IB_CM_ESTABLISHED, IB_CM_ESTABLISHED, "LAP and APR");
}

static void dup_sidr(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	if (!begin(t, &conn, IB_CM_SIDR_REQ_RCVD, &expected))
		return;
	wire_format(&mad, WIRE_SIDR_REQ);
	IBA_SET(CM_SIDR_REQ_REQUESTID, &mad.sidr_req, be32_to_cpu(conn.active->cm_id->local_id));
	IBA_SET(CM_SIDR_REQ_SERVICEID, &mad.sidr_req, be64_to_cpu(conn.req.service_id));
	IBA_SET(CM_SIDR_REQ_PARTITION_KEY, &mad.sidr_req, 0xffff);
	wire_expect(&expected, WIRE_RX, WIRE_SIDR_REQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_SIDR_REQ, 1);
	wire_send_and_compare(t, &mad, &expected, "SIDR REQ in SIDR_REQ_RCVD");
	end(t, &conn, IB_CM_SIDR_REQ_SENT, IB_CM_SIDR_REQ_RCVD, "SIDR REQ in SIDR_REQ_RCVD");
}

static const struct api_case cases[] = {
	{ "REQ again", dup_req },
	{ "REQ again, after MRA", dup_req_mra },
	{ "REQ again, in TIMEWAIT", dup_req_timewait },
	{ "REQ of an ID that is in use", req_of_used_id },
	{ "REQ of a queue pair that is in use", stale_qpn },
	{ "REP again", dup_rep },
	{ "RTU again", dup_rtu },
	{ "DREQ again, or for another queue pair", dreqs },
	{ "MRA of the wrong message", wrong_mra },
	{ "REJ of a timeout", rej_timeout },
	{ "REJ in ESTABLISHED", rej_established },
	{ "LAP and APR", alternate_paths },
	{ "SIDR REQ again", dup_sidr },
};

const struct api_suite api_suite_duplicates = API_SUITE("duplicates", cases);
