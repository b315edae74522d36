// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of a RoCE device to itself, brought to any state. There are no queue pairs: their
 * numbers are made up, and no number is used twice.
 */

#include <linux/log2.h>

#include "api.h"

/* 4.096 us * 2^16 = 268 ms */
#define RESPONSE_TIMEOUT	16

void api_path(struct sa_path_rec *path, u8 packet_life_time)
{
	roce_path(&api_device, path, packet_life_time);
}

/* For use in the structure where it stands: the request points at the path beside it. */
void api_conn_init(struct api_conn *conn, u8 packet_life_time)
{
	memset(conn, 0, sizeof(*conn));
	api_path(&conn->path, packet_life_time);
	conn->req = (struct ib_cm_req_param) {
		.primary_path = &conn->path,
		.ppath_sgid_attr = api_device.attr,
		.service_id = api_service_id(),
		.qp_num = api_qpn(),
		.qp_type = IB_QPT_RC,
		.starting_psn = 0x123456,
		.responder_resources = 3,
		.initiator_depth = 5,
		.remote_cm_response_timeout = RESPONSE_TIMEOUT + ilog2(api_slow),
		.local_cm_response_timeout = RESPONSE_TIMEOUT + ilog2(api_slow),
		.retry_count = 6,
		.rnr_retry_count = 7,
		.max_cm_retries = 15,
	};
	conn->rep = (struct ib_cm_rep_param) {
		.qp_num = api_qpn(),
		.starting_psn = 0x654321,
		.responder_resources = 4,
		.initiator_depth = 2,
		.rnr_retry_count = 1,
	};
}

u8 api_life_time(enum ib_cm_state state)
{
	return state == IB_CM_TIMEWAIT ? API_LIFE_TIME_LONG : API_LIFE_TIME;
}

bool api_request(struct api_test *t, struct api_conn *conn)
{
	conn->listener = api_listen(t, conn->req.service_id);
	if (!conn->listener)
		return false;
	conn->active = api_create(t);
	if (!conn->active)
		return false;
	if (!api_eq(t, ib_send_cm_req(conn->active->cm_id, &conn->req), 0, "ib_send_cm_req"))
		return false;
	conn->passive = api_wait_child(t, conn->listener);
	return conn->passive && api_wait(t, conn->passive, IB_CM_REQ_RECEIVED);
}

static bool reply(struct api_test *t, struct api_conn *conn)
{
	return api_eq(t, ib_send_cm_rep(conn->passive->cm_id, &conn->rep), 0, "ib_send_cm_rep") &&
	       api_wait(t, conn->active, IB_CM_REP_RECEIVED);
}

static bool confirm(struct api_test *t, struct api_conn *conn)
{
	return api_eq(t, ib_send_cm_rtu(conn->active->cm_id, NULL, 0), 0, "ib_send_cm_rtu") &&
	       api_wait(t, conn->passive, IB_CM_RTU_RECEIVED);
}

bool api_connect(struct api_test *t, struct api_conn *conn)
{
	return api_request(t, conn) && reply(t, conn) && confirm(t, conn);
}

static bool disconnect(struct api_test *t, struct api_conn *conn)
{
	return api_eq(t, ib_send_cm_dreq(conn->active->cm_id, NULL, 0), 0, "ib_send_cm_dreq") &&
	       api_wait(t, conn->passive, IB_CM_DREQ_RECEIVED);
}

static bool confirm_disconnect(struct api_test *t, struct api_conn *conn)
{
	return api_eq(t, ib_send_cm_drep(conn->passive->cm_id, NULL, 0), 0, "ib_send_cm_drep") &&
	       api_wait(t, conn->active, IB_CM_DREP_RECEIVED);
}

bool api_disconnect(struct api_test *t, struct api_conn *conn)
{
	return disconnect(t, conn) && confirm_disconnect(t, conn);
}

/* The one that waits prepares an MRA; the other gets it when it repeats its message. */
static bool ask_to_wait(struct api_test *t, struct api_id *slow, struct api_id *asking,
			bool wait)
{
	return api_eq(t, ib_prepare_cm_mra(slow->cm_id), 0, "ib_prepare_cm_mra") &&
	       (!wait || api_wait(t, asking, IB_CM_MRA_RECEIVED));
}

static bool ask_sidr(struct api_test *t, struct api_conn *conn)
{
	struct ib_cm_sidr_req_param param = {
		.path = &conn->path,
		.sgid_attr = api_device.attr,
		.service_id = conn->req.service_id,
		.timeout_ms = 10000,
		.max_cm_retries = 15,
	};

	conn->listener = api_listen(t, conn->req.service_id);
	conn->active = api_create(t);
	if (!conn->listener || !conn->active)
		return false;
	if (!api_eq(t, ib_send_cm_sidr_req(conn->active->cm_id, &param), 0, "ib_send_cm_sidr_req"))
		return false;
	conn->passive = api_wait_child(t, conn->listener);
	return conn->passive && api_wait(t, conn->passive, IB_CM_SIDR_REQ_RECEIVED);
}

/* Which end is in the state when a step has led to it. */
static struct api_id *reach(struct api_test *t, struct api_conn *conn, enum ib_cm_state state)
{
	bool received = state == IB_CM_MRA_REQ_RCVD || state == IB_CM_MRA_REP_RCVD;

	switch (state) {
	case IB_CM_IDLE:
		return conn->active = api_create(t);
	case IB_CM_LISTEN:
		return conn->listener = api_listen(t, conn->req.service_id);
	case IB_CM_SIDR_REQ_SENT:
		return ask_sidr(t, conn) ? conn->active : NULL;
	case IB_CM_SIDR_REQ_RCVD:
		return ask_sidr(t, conn) ? conn->passive : NULL;
	default:
		break;
	}
	if (!api_request(t, conn))
		return NULL;
	if (state == IB_CM_REQ_SENT || state == IB_CM_REQ_RCVD)
		return state == IB_CM_REQ_SENT ? conn->active : conn->passive;
	if (state == IB_CM_MRA_REQ_SENT || state == IB_CM_MRA_REQ_RCVD) {
		if (!ask_to_wait(t, conn->passive, conn->active, received))
			return NULL;
		return received ? conn->active : conn->passive;
	}
	if (!reply(t, conn))
		return NULL;
	if (state == IB_CM_REP_SENT || state == IB_CM_REP_RCVD)
		return state == IB_CM_REP_SENT ? conn->passive : conn->active;
	if (state == IB_CM_MRA_REP_SENT || state == IB_CM_MRA_REP_RCVD) {
		if (!ask_to_wait(t, conn->active, conn->passive, received))
			return NULL;
		return received ? conn->passive : conn->active;
	}
	if (!confirm(t, conn))
		return NULL;
	if (state == IB_CM_ESTABLISHED)
		return conn->active;
	if (!disconnect(t, conn))
		return NULL;
	if (state == IB_CM_DREQ_SENT || state == IB_CM_DREQ_RCVD)
		return state == IB_CM_DREQ_SENT ? conn->active : conn->passive;
	return confirm_disconnect(t, conn) ? conn->passive : NULL;
}

struct api_id *api_reach(struct api_test *t, struct api_conn *conn, enum ib_cm_state state)
{
	struct api_id *id = reach(t, conn, state);

	if (!id) {
		api_note("%s was not reached", api_state_name(state));
		return NULL;
	}
	if (!api_check(t, id->cm_id->state == state, "the identifier is in %s, expected %s",
		       api_state_name(id->cm_id->state), api_state_name(state)))
		return NULL;
	return id;
}
