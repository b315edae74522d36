// SPDX-License-Identifier: GPL-2.0
/*
 * The trace events, and the functions through which Rust reaches them.
 */
#define CREATE_TRACE_POINTS
#include "ib_cm_trace.h"
#include "ib_cm_trace_calls.h"

#define ID_CALL(name)						\
	void ib_cm_trace_##name(const struct ib_cm_id *cm_id)	\
	{							\
		trace_icm_##name(cm_id);			\
	}

ID_CALL(send_req)
ID_CALL(send_rep)
ID_CALL(send_dup_req)
ID_CALL(send_dup_rep)
ID_CALL(send_rtu)
ID_CALL(send_mra)
ID_CALL(send_sidr_req)
ID_CALL(send_sidr_rep)
ID_CALL(send_dreq)
ID_CALL(send_drep)
ID_CALL(dreq_skipped)

ID_CALL(send_cm_rtu_err)
ID_CALL(establish_err)
ID_CALL(no_listener_err)
ID_CALL(send_drep_err)
ID_CALL(dreq_unknown_err)
ID_CALL(send_unknown_rej_err)
ID_CALL(rej_unknown_err)
ID_CALL(prepare_mra_unknown_err)
ID_CALL(mra_unknown_err)
ID_CALL(qp_init_err)
ID_CALL(qp_rtr_err)
ID_CALL(qp_rts_err)

void ib_cm_trace_send_rej(const struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason)
{
	trace_icm_send_rej(cm_id, reason);
}

#define HOLD_CALL(name)							\
	void ib_cm_trace_##name(const struct ib_cm_id *cm_id, u32 qpn)	\
	{								\
		trace_icm_##name(cm_id, qpn);				\
	}

HOLD_CALL(hold)
HOLD_CALL(release)
HOLD_CALL(hold_expired)
HOLD_CALL(timewait_exit)

#define PAIR_CALL(name)							\
	void ib_cm_trace_##name(u32 local_id, u32 remote_id)		\
	{								\
		trace_icm_##name(local_id, remote_id);			\
	}

PAIR_CALL(issue_rej)
PAIR_CALL(issue_drep)
PAIR_CALL(staleconn_err)
PAIR_CALL(no_priv_err)

void ib_cm_trace_remote_no_priv_err(u32 remote_id)
{
	trace_icm_remote_no_priv_err(remote_id);
}

void ib_cm_trace_insert_failed_err(u32 remote_id)
{
	trace_icm_insert_failed_err(remote_id);
}

void ib_cm_trace_send_rep_err(__be32 local_id, enum ib_cm_state state)
{
	trace_icm_send_rep_err(local_id, state);
}

void ib_cm_trace_rep_unknown_err(u32 local_id, u32 remote_id, enum ib_cm_state state)
{
	trace_icm_rep_unknown_err(local_id, remote_id, state);
}

void ib_cm_trace_handler_err(enum ib_cm_event_type event)
{
	trace_icm_handler_err(event);
}

void ib_cm_trace_mad_send_err(enum ib_cm_state state, enum ib_wc_status wc_status)
{
	trace_icm_mad_send_err(state, wc_status);
}
