/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of the connection manager.
 *
 * Scripts and tools read them: names, fields and texts are those of the C module.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_cma

#if !defined(IB_CM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define IB_CM_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <trace/misc/rdma.h>

#ifndef IB_CM_TRACE_NAMES
#define IB_CM_TRACE_NAMES

/* Each list takes an entry for its members but the last, and one for the last. */
#define IB_CM_STATES(more, last)						\
	more(IDLE) more(LISTEN)							\
	more(REQ_SENT) more(REQ_RCVD) more(MRA_REQ_SENT) more(MRA_REQ_RCVD)	\
	more(REP_SENT) more(REP_RCVD) more(MRA_REP_SENT) more(MRA_REP_RCVD)	\
	more(ESTABLISHED) more(DREQ_SENT) more(DREQ_RCVD) more(TIMEWAIT)	\
	more(SIDR_REQ_SENT) last(SIDR_REQ_RCVD)

#define IB_CM_LAP_STATES(more, last)						\
	more(LAP_UNINIT) more(LAP_IDLE) more(LAP_SENT) more(LAP_RCVD)		\
	more(MRA_LAP_SENT) last(MRA_LAP_RCVD)

#define IB_CM_REJ_REASONS(more, last)						\
	more(REJ_NO_QP) more(REJ_NO_EEC) more(REJ_NO_RESOURCES)			\
	more(REJ_TIMEOUT) more(REJ_UNSUPPORTED)					\
	more(REJ_INVALID_COMM_ID) more(REJ_INVALID_COMM_INSTANCE)		\
	more(REJ_INVALID_SERVICE_ID) more(REJ_INVALID_TRANSPORT_TYPE)		\
	more(REJ_STALE_CONN) more(REJ_RDC_NOT_EXIST)				\
	more(REJ_INVALID_GID) more(REJ_INVALID_LID) more(REJ_INVALID_SL)	\
	more(REJ_INVALID_TRAFFIC_CLASS) more(REJ_INVALID_HOP_LIMIT)		\
	more(REJ_INVALID_PACKET_RATE)						\
	more(REJ_INVALID_ALT_GID) more(REJ_INVALID_ALT_LID)			\
	more(REJ_INVALID_ALT_SL) more(REJ_INVALID_ALT_TRAFFIC_CLASS)		\
	more(REJ_INVALID_ALT_HOP_LIMIT) more(REJ_INVALID_ALT_PACKET_RATE)	\
	more(REJ_PORT_CM_REDIRECT) more(REJ_PORT_REDIRECT)			\
	more(REJ_INVALID_MTU) more(REJ_INSUFFICIENT_RESP_RESOURCES)		\
	more(REJ_CONSUMER_DEFINED) more(REJ_INVALID_RNR_RETRY)			\
	more(REJ_DUPLICATE_LOCAL_COMM_ID) more(REJ_INVALID_CLASS_VERSION)	\
	more(REJ_INVALID_FLOW_LABEL) more(REJ_INVALID_ALT_FLOW_LABEL)		\
	last(REJ_VENDOR_OPTION_NOT_SUPPORTED)

#define IB_CM_NAME_DEFINE(name)	TRACE_DEFINE_ENUM(IB_CM_##name);
#define IB_CM_NAME_MORE(name)	{ IB_CM_##name, #name },
#define IB_CM_NAME_LAST(name)	{ IB_CM_##name, #name }

#define show_ib_cm_state(value) \
	__print_symbolic(value, IB_CM_STATES(IB_CM_NAME_MORE, IB_CM_NAME_LAST))
#define show_ib_cm_lap_state(value) \
	__print_symbolic(value, IB_CM_LAP_STATES(IB_CM_NAME_MORE, IB_CM_NAME_LAST))
#define show_ib_cm_rej_reason(value) \
	__print_symbolic(value, IB_CM_REJ_REASONS(IB_CM_NAME_MORE, IB_CM_NAME_LAST))

#endif /* IB_CM_TRACE_NAMES */

IB_CM_STATES(IB_CM_NAME_DEFINE, IB_CM_NAME_DEFINE)
IB_CM_LAP_STATES(IB_CM_NAME_DEFINE, IB_CM_NAME_DEFINE)
IB_CM_REJ_REASONS(IB_CM_NAME_DEFINE, IB_CM_NAME_DEFINE)

/* What happened to an id. */
DECLARE_EVENT_CLASS(icm_id_class,
	TP_PROTO(const struct ib_cm_id *cm_id),
	TP_ARGS(cm_id),

	TP_STRUCT__entry(
		__field(const void *, cm_id)
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
		__field(unsigned long, state)
		__field(unsigned long, lap_state)
	),

	TP_fast_assign(
		__entry->cm_id = cm_id;
		__entry->local_id = be32_to_cpu(cm_id->local_id);
		__entry->remote_id = be32_to_cpu(cm_id->remote_id);
		__entry->state = cm_id->state;
		__entry->lap_state = cm_id->lap_state;
	),

	TP_printk("local_id=%u remote_id=%u state=%s lap_state=%s",
		  __entry->local_id, __entry->remote_id,
		  show_ib_cm_state(__entry->state),
		  show_ib_cm_lap_state(__entry->lap_state))
);

#define IB_CM_ID_EVENT(name)				\
	DEFINE_EVENT(icm_id_class, icm_##name,		\
		TP_PROTO(const struct ib_cm_id *cm_id),	\
		TP_ARGS(cm_id))

IB_CM_ID_EVENT(send_req);
IB_CM_ID_EVENT(send_rep);
IB_CM_ID_EVENT(send_dup_req);
IB_CM_ID_EVENT(send_dup_rep);
IB_CM_ID_EVENT(send_rtu);
IB_CM_ID_EVENT(send_mra);
IB_CM_ID_EVENT(send_sidr_req);
IB_CM_ID_EVENT(send_sidr_rep);
IB_CM_ID_EVENT(send_dreq);
IB_CM_ID_EVENT(send_drep);
IB_CM_ID_EVENT(dreq_skipped);

IB_CM_ID_EVENT(send_cm_rtu_err);
IB_CM_ID_EVENT(establish_err);
IB_CM_ID_EVENT(no_listener_err);
IB_CM_ID_EVENT(send_drep_err);
IB_CM_ID_EVENT(dreq_unknown_err);
IB_CM_ID_EVENT(send_unknown_rej_err);
IB_CM_ID_EVENT(rej_unknown_err);
IB_CM_ID_EVENT(prepare_mra_unknown_err);
IB_CM_ID_EVENT(mra_unknown_err);
IB_CM_ID_EVENT(qp_init_err);
IB_CM_ID_EVENT(qp_rtr_err);
IB_CM_ID_EVENT(qp_rts_err);

TRACE_EVENT(icm_send_rej,
	TP_PROTO(const struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason),
	TP_ARGS(cm_id, reason),

	TP_STRUCT__entry(
		__field(const void *, cm_id)
		__field(u32, local_id)
		__field(u32, remote_id)
		__field(unsigned long, state)
		__field(unsigned long, reason)
	),

	TP_fast_assign(
		__entry->cm_id = cm_id;
		__entry->local_id = be32_to_cpu(cm_id->local_id);
		__entry->remote_id = be32_to_cpu(cm_id->remote_id);
		__entry->state = cm_id->state;
		__entry->reason = reason;
	),

	TP_printk("local_id=%u remote_id=%u state=%s reason=%s",
		  __entry->local_id, __entry->remote_id,
		  show_ib_cm_state(__entry->state),
		  show_ib_cm_rej_reason(__entry->reason))
);

/*
 * The hold of a queue pair whose process is gone: taken, let go at the end of TimeWait, or given
 * up before. timewait_exit comes for every connection, held or not.
 */
DECLARE_EVENT_CLASS(icm_hold_class,
	TP_PROTO(const struct ib_cm_id *cm_id, u32 qpn),
	TP_ARGS(cm_id, qpn),

	TP_STRUCT__entry(
		__field(const void *, cm_id)
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
		__field(u32, qpn)
		__field(unsigned long, state)
	),

	TP_fast_assign(
		__entry->cm_id = cm_id;
		__entry->local_id = be32_to_cpu(cm_id->local_id);
		__entry->remote_id = be32_to_cpu(cm_id->remote_id);
		__entry->qpn = qpn;
		__entry->state = cm_id->state;
	),

	TP_printk("local_id=%u remote_id=%u qpn=%u state=%s",
		  __entry->local_id, __entry->remote_id, __entry->qpn,
		  show_ib_cm_state(__entry->state))
);

#define IB_CM_HOLD_EVENT(name)						\
	DEFINE_EVENT(icm_hold_class, icm_##name,			\
		TP_PROTO(const struct ib_cm_id *cm_id, u32 qpn),	\
		TP_ARGS(cm_id, qpn))

IB_CM_HOLD_EVENT(hold);
IB_CM_HOLD_EVENT(release);
IB_CM_HOLD_EVENT(hold_expired);
IB_CM_HOLD_EVENT(timewait_exit);

/* What happened without an id, for a pair of communication IDs in host order. */
DECLARE_EVENT_CLASS(icm_local_class,
	TP_PROTO(unsigned int local_id, unsigned int remote_id),
	TP_ARGS(local_id, remote_id),

	TP_STRUCT__entry(
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
	),

	TP_fast_assign(
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
	),

	TP_printk("local_id=%u remote_id=%u", __entry->local_id, __entry->remote_id)
);

#define IB_CM_LOCAL_EVENT(name)						\
	DEFINE_EVENT(icm_local_class, icm_##name,			\
		TP_PROTO(unsigned int local_id, unsigned int remote_id),	\
		TP_ARGS(local_id, remote_id))

IB_CM_LOCAL_EVENT(issue_rej);
IB_CM_LOCAL_EVENT(issue_drep);
IB_CM_LOCAL_EVENT(staleconn_err);
IB_CM_LOCAL_EVENT(no_priv_err);

DECLARE_EVENT_CLASS(icm_remote_class,
	TP_PROTO(u32 remote_id),
	TP_ARGS(remote_id),

	TP_STRUCT__entry(
		__field(u32, remote_id)
	),

	TP_fast_assign(
		__entry->remote_id = remote_id;
	),

	TP_printk("remote_id=%u", __entry->remote_id)
);

#define IB_CM_REMOTE_EVENT(name)			\
	DEFINE_EVENT(icm_remote_class, icm_##name,	\
		TP_PROTO(u32 remote_id),		\
		TP_ARGS(remote_id))

IB_CM_REMOTE_EVENT(remote_no_priv_err);
IB_CM_REMOTE_EVENT(insert_failed_err);

TRACE_EVENT(icm_send_rep_err,
	TP_PROTO(__be32 local_id, enum ib_cm_state state),
	TP_ARGS(local_id, state),

	TP_STRUCT__entry(
		__field(unsigned int, local_id)
		__field(unsigned long, state)
	),

	TP_fast_assign(
		__entry->local_id = be32_to_cpu(local_id);
		__entry->state = state;
	),

	TP_printk("local_id=%u state=%s",
		  __entry->local_id, show_ib_cm_state(__entry->state))
);

TRACE_EVENT(icm_rep_unknown_err,
	TP_PROTO(unsigned int local_id, unsigned int remote_id, enum ib_cm_state state),
	TP_ARGS(local_id, remote_id, state),

	TP_STRUCT__entry(
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
		__field(unsigned long, state)
	),

	TP_fast_assign(
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
		__entry->state = state;
	),

	TP_printk("local_id=%u remote_id=%u state=%s",
		  __entry->local_id, __entry->remote_id,
		  show_ib_cm_state(__entry->state))
);

TRACE_EVENT(icm_handler_err,
	TP_PROTO(enum ib_cm_event_type event),
	TP_ARGS(event),

	TP_STRUCT__entry(
		__field(unsigned long, event)
	),

	TP_fast_assign(
		__entry->event = event;
	),

	TP_printk("unhandled event=%s", rdma_show_ib_cm_event(__entry->event))
);

TRACE_EVENT(icm_mad_send_err,
	TP_PROTO(enum ib_cm_state state, enum ib_wc_status wc_status),
	TP_ARGS(state, wc_status),

	TP_STRUCT__entry(
		__field(unsigned long, state)
		__field(unsigned long, wc_status)
	),

	TP_fast_assign(
		__entry->state = state;
		__entry->wc_status = wc_status;
	),

	TP_printk("state=%s completion status=%s",
		  show_ib_cm_state(__entry->state),
		  rdma_show_wc_status(__entry->wc_status))
);

#endif /* IB_CM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE ib_cm_trace

#include <trace/define_trace.h>
