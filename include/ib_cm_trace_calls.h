/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trace events as functions that Rust can call. A call of one that is off costs the call and
 * a jump over a patched branch.
 */
#ifndef IB_CM_TRACE_CALLS_H
#define IB_CM_TRACE_CALLS_H

#include <linux/types.h>
#include <rdma/ib_cm.h>

void ib_cm_trace_send_req(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_rep(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_dup_req(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_dup_rep(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_rtu(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_mra(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_sidr_req(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_sidr_rep(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_dreq(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_drep(const struct ib_cm_id *cm_id);
void ib_cm_trace_dreq_skipped(const struct ib_cm_id *cm_id);

void ib_cm_trace_send_cm_rtu_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_establish_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_no_listener_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_drep_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_dreq_unknown_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_send_unknown_rej_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_rej_unknown_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_prepare_mra_unknown_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_mra_unknown_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_qp_init_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_qp_rtr_err(const struct ib_cm_id *cm_id);
void ib_cm_trace_qp_rts_err(const struct ib_cm_id *cm_id);

void ib_cm_trace_send_rej(const struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason);

void ib_cm_trace_hold(const struct ib_cm_id *cm_id, u32 qpn);
void ib_cm_trace_release(const struct ib_cm_id *cm_id, u32 qpn);
void ib_cm_trace_hold_expired(const struct ib_cm_id *cm_id, u32 qpn);
void ib_cm_trace_timewait_exit(const struct ib_cm_id *cm_id, u32 qpn);

void ib_cm_trace_issue_rej(u32 local_id, u32 remote_id);
void ib_cm_trace_issue_drep(u32 local_id, u32 remote_id);
void ib_cm_trace_staleconn_err(u32 local_id, u32 remote_id);
void ib_cm_trace_no_priv_err(u32 local_id, u32 remote_id);
void ib_cm_trace_remote_no_priv_err(u32 remote_id);
void ib_cm_trace_insert_failed_err(u32 remote_id);

void ib_cm_trace_send_rep_err(__be32 local_id, enum ib_cm_state state);
void ib_cm_trace_rep_unknown_err(u32 local_id, u32 remote_id, enum ib_cm_state state);
void ib_cm_trace_handler_err(enum ib_cm_event_type event);
void ib_cm_trace_mad_send_err(enum ib_cm_state state, enum ib_wc_status wc_status);

#endif /* IB_CM_TRACE_CALLS_H */
