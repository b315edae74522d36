// SPDX-License-Identifier: GPL-2.0
/*
 * Every call in every state: in a state where the call is not allowed it returns its errno and
 * changes nothing, elsewhere it succeeds and leads to the right state.
 */

#include "api.h"

#define STATE(name)	BIT(IB_CM_##name)

/* The states of a connection that may be refused. */
#define REFUSABLE	(STATE(REQ_SENT) | STATE(MRA_REQ_RCVD) | STATE(REQ_RCVD) | \
			 STATE(MRA_REQ_SENT) | STATE(REP_RCVD) | STATE(MRA_REP_SENT) | \
			 STATE(REP_SENT) | STATE(MRA_REP_RCVD))
/* Those in which a message is repeated that the C module does not withdraw when its consumer
 * rejects: the destruction then waits for all repetitions, after an MRA for minutes.
 */
#define REPEATING	(STATE(REQ_SENT) | STATE(MRA_REQ_RCVD) | STATE(REP_SENT) | \
			 STATE(MRA_REP_RCVD))
/* Those in which a REP is known to both or can be made. */
#define REPLIABLE	(STATE(REQ_RCVD) | STATE(MRA_REQ_SENT) | STATE(REP_RCVD) | \
			 STATE(MRA_REP_SENT) | STATE(REP_SENT) | STATE(MRA_REP_RCVD) | \
			 STATE(ESTABLISHED))

static int call_listen(struct api_conn *conn, struct api_id *id)
{
	return ib_cm_listen(id->cm_id, api_service_id());
}

static int call_req(struct api_conn *conn, struct api_id *id)
{
	return ib_send_cm_req(id->cm_id, &conn->req);
}

static int call_rep(struct api_conn *conn, struct api_id *id)
{
	return ib_send_cm_rep(id->cm_id, &conn->rep);
}

static int call_rtu(struct api_conn *conn, struct api_id *id)
{
	return ib_send_cm_rtu(id->cm_id, "rtu", 3);
}

static int call_dreq(struct api_conn *conn, struct api_id *id)
{
	return ib_send_cm_dreq(id->cm_id, "dreq", 4);
}

static int call_drep(struct api_conn *conn, struct api_id *id)
{
	return ib_send_cm_drep(id->cm_id, "drep", 4);
}

static int call_rej(struct api_conn *conn, struct api_id *id)
{
	return ib_send_cm_rej(id->cm_id, IB_CM_REJ_NO_RESOURCES, "ari", 3, "rej", 3);
}

static int call_mra(struct api_conn *conn, struct api_id *id)
{
	return ib_prepare_cm_mra(id->cm_id);
}

static int call_sidr_req(struct api_conn *conn, struct api_id *id)
{
	/* The C module notes all but the timeout before it looks at the state: give it the same. */
	struct ib_cm_sidr_req_param param = {
		.path = &conn->path,
		.sgid_attr = api_device.attr,
		.service_id = id->cm_id->service_id,
		.timeout_ms = 260,
		.max_cm_retries = 15,
	};

	return ib_send_cm_sidr_req(id->cm_id, &param);
}

static int call_sidr_rep(struct api_conn *conn, struct api_id *id)
{
	struct ib_cm_sidr_rep_param param = {
		.qp_num = conn->rep.qp_num,
		.status = IB_SIDR_SUCCESS,
	};

	return ib_send_cm_sidr_rep(id->cm_id, &param);
}

static int call_comm_est(struct api_conn *conn, struct api_id *id)
{
	return ib_cm_notify(id->cm_id, IB_EVENT_COMM_EST);
}

static int call_path_mig(struct api_conn *conn, struct api_id *id)
{
	return ib_cm_notify(id->cm_id, IB_EVENT_PATH_MIG);
}

static int call_other_event(struct api_conn *conn, struct api_id *id)
{
	return ib_cm_notify(id->cm_id, IB_EVENT_QP_FATAL);
}

static int init_attr(struct api_id *id, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask = 0;

	return ib_cm_init_qp_attr(id->cm_id, &attr, &mask);
}

static int call_attr_init(struct api_conn *conn, struct api_id *id)
{
	return init_attr(id, IB_QPS_INIT);
}

static int call_attr_rtr(struct api_conn *conn, struct api_id *id)
{
	return init_attr(id, IB_QPS_RTR);
}

static int call_attr_rts(struct api_conn *conn, struct api_id *id)
{
	return init_attr(id, IB_QPS_RTS);
}

static int call_attr_reset(struct api_conn *conn, struct api_id *id)
{
	return init_attr(id, IB_QPS_RESET);
}

static int call_attr_sqd(struct api_conn *conn, struct api_id *id)
{
	return init_attr(id, IB_QPS_SQD);
}

static int call_attr_err(struct api_conn *conn, struct api_id *id)
{
	return init_attr(id, IB_QPS_ERR);
}

/* Leads nowhere: the state stays. */
#define SAME	((enum ib_cm_state)-1)

static const struct call {
	const char *name;
	int (*call)(struct api_conn *conn, struct api_id *id);
	u32 allowed;		/* states */
	enum ib_cm_state next;	/* after success */
	u32 not_on_c;		/* states where the C module does harm */
} calls[] = {
	{ "ib_cm_listen", call_listen, STATE(IDLE), IB_CM_LISTEN },
	{ "ib_send_cm_req", call_req, STATE(IDLE), IB_CM_REQ_SENT },
	{ "ib_send_cm_rep", call_rep, STATE(REQ_RCVD) | STATE(MRA_REQ_SENT), IB_CM_REP_SENT },
	{ "ib_send_cm_rtu", call_rtu, STATE(REP_RCVD) | STATE(MRA_REP_SENT), IB_CM_ESTABLISHED },
	{ "ib_send_cm_dreq", call_dreq, STATE(ESTABLISHED), IB_CM_DREQ_SENT },
	{ "ib_send_cm_drep", call_drep, STATE(DREQ_RCVD), IB_CM_TIMEWAIT },
	{ "ib_send_cm_rej", call_rej, REFUSABLE & ~(STATE(REP_SENT) | STATE(MRA_REP_RCVD)),
	  IB_CM_IDLE, REPEATING },
	{ "ib_send_cm_rej after a REP", call_rej, STATE(REP_SENT) | STATE(MRA_REP_RCVD),
	  IB_CM_TIMEWAIT, REPEATING },
	{ "ib_prepare_cm_mra of a REQ", call_mra, STATE(REQ_RCVD), IB_CM_MRA_REQ_SENT },
	{ "ib_prepare_cm_mra of a REP", call_mra, STATE(REP_RCVD), IB_CM_MRA_REP_SENT },
	{ "ib_send_cm_sidr_req", call_sidr_req, STATE(IDLE), IB_CM_SIDR_REQ_SENT },
	{ "ib_send_cm_sidr_rep", call_sidr_rep, STATE(SIDR_REQ_RCVD), IB_CM_IDLE },
	{ "ib_cm_notify COMM_EST", call_comm_est, STATE(REP_SENT) | STATE(MRA_REP_RCVD),
	  IB_CM_ESTABLISHED },
	/* There is no alternate path here, as RoCE has none. */
	{ "ib_cm_notify PATH_MIG", call_path_mig, 0, SAME, STATE(ESTABLISHED) },
	{ "ib_cm_notify of another event", call_other_event, 0, SAME },
	{ "ib_cm_init_qp_attr INIT", call_attr_init,
	  REPLIABLE | STATE(REQ_SENT) | STATE(MRA_REQ_RCVD), SAME },
	{ "ib_cm_init_qp_attr RTR", call_attr_rtr, REPLIABLE, SAME },
	{ "ib_cm_init_qp_attr RTS", call_attr_rts, REPLIABLE, SAME },
	{ "ib_cm_init_qp_attr RESET", call_attr_reset, 0, SAME },
	{ "ib_cm_init_qp_attr SQD", call_attr_sqd, 0, SAME },
	{ "ib_cm_init_qp_attr ERR", call_attr_err, 0, SAME },
};

/* Two rows of the table are the same function. */
static u32 allowed_states(const struct call *call)
{
	u32 allowed = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].call == call->call)
			allowed |= calls[i].allowed;
	return allowed;
}

static int expected_errno(const struct call *call, enum ib_cm_state state)
{
	if (call->call == call_comm_est && state == IB_CM_ESTABLISHED)
		return -EISCONN;
	return -EINVAL;
}

static bool not_for_c(const struct call *call, enum ib_cm_state state)
{
	if (!api_on_c() || !(call->not_on_c & BIT(state)))
		return false;
	api_expected_difference("%s in %s", call->name, api_state_name(state));
	return true;
}

static void refused(struct api_test *t, enum ib_cm_state state)
{
	struct ib_cm_id before;
	struct api_conn conn;
	struct api_id *id;
	unsigned int i;

	api_conn_init(&conn, api_life_time(state));
	id = api_reach(t, &conn, state);
	if (!id)
		return;
	before = *id->cm_id;
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct call *call = &calls[i];

		if (allowed_states(call) & BIT(state))
			continue;
		if (not_for_c(call, state))
			continue;
		api_eq(t, call->call(&conn, id), expected_errno(call, state), "%s in %s",
		       call->name, api_state_name(state));
		api_check(t, id->cm_id->state == state, "%s led from %s to %s", call->name,
			  api_state_name(state), api_state_name(id->cm_id->state));
	}
	api_check(t, !memcmp(&before, id->cm_id, sizeof(before)),
		  "the public part of an identifier in %s changed", api_state_name(state));
}

static void allowed(struct api_test *t, const struct call *call, enum ib_cm_state state)
{
	enum ib_cm_state next = call->next == SAME ? state : call->next;
	struct api_conn conn;
	struct api_id *id;

	if (not_for_c(call, state))
		return;
	/* A state that has a limited time must last, and so must the one after the call. */
	api_conn_init(&conn, call->next == IB_CM_TIMEWAIT ? API_LIFE_TIME_LONG :
		      api_life_time(state));
	id = api_reach(t, &conn, state);
	if (!id)
		return;
	if (call->next == IB_CM_SIDR_REQ_SENT)
		id->cm_id->service_id = conn.req.service_id;
	if (call->next == IB_CM_SIDR_REQ_SENT || call->next == IB_CM_REQ_SENT)
		api_listen(t, conn.req.service_id);
	api_eq(t, call->call(&conn, id), 0, "%s in %s", call->name, api_state_name(state));
	api_check(t, id->cm_id->state == next, "%s led from %s to %s, expected %s", call->name,
		  api_state_name(state), api_state_name(id->cm_id->state), api_state_name(next));
	/* The C module withdraws the REP only with the event: destroyed before, the identifier
	 * waits for all repetitions, after an MRA for minutes.
	 */
	if (call->call == call_comm_est && api_on_c())
		api_wait(t, id, IB_CM_USER_ESTABLISHED);
}

static void in_state(struct api_test *t, enum ib_cm_state state)
{
	unsigned int i;

	refused(t, state);
	api_end_case(t);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (!(calls[i].allowed & BIT(state)))
			continue;
		allowed(t, &calls[i], state);
		api_end_case(t);
	}
}

#define IN_STATE(name)						\
static void in_##name(struct api_test *t)			\
{								\
	in_state(t, IB_CM_##name);				\
}

IN_STATE(IDLE)
IN_STATE(LISTEN)
IN_STATE(REQ_SENT)
IN_STATE(REQ_RCVD)
IN_STATE(MRA_REQ_SENT)
IN_STATE(MRA_REQ_RCVD)
IN_STATE(REP_SENT)
IN_STATE(REP_RCVD)
IN_STATE(MRA_REP_SENT)
IN_STATE(MRA_REP_RCVD)
IN_STATE(ESTABLISHED)
IN_STATE(DREQ_SENT)
IN_STATE(DREQ_RCVD)
IN_STATE(TIMEWAIT)
IN_STATE(SIDR_REQ_SENT)
IN_STATE(SIDR_REQ_RCVD)

static const struct api_case cases[] = {
	{ "IDLE", in_IDLE },
	{ "LISTEN", in_LISTEN },
	{ "REQ_SENT", in_REQ_SENT },
	{ "REQ_RCVD", in_REQ_RCVD },
	{ "MRA_REQ_SENT", in_MRA_REQ_SENT },
	{ "MRA_REQ_RCVD", in_MRA_REQ_RCVD },
	{ "REP_SENT", in_REP_SENT },
	{ "REP_RCVD", in_REP_RCVD },
	{ "MRA_REP_SENT", in_MRA_REP_SENT },
	{ "MRA_REP_RCVD", in_MRA_REP_RCVD },
	{ "ESTABLISHED", in_ESTABLISHED },
	{ "DREQ_SENT", in_DREQ_SENT },
	{ "DREQ_RCVD", in_DREQ_RCVD },
	{ "TIMEWAIT", in_TIMEWAIT },
	{ "SIDR_REQ_SENT", in_SIDR_REQ_SENT },
	{ "SIDR_REQ_RCVD", in_SIDR_REQ_RCVD },
};

const struct api_suite api_suite_errno_state = API_SUITE("errno-state", cases);
