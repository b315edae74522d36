// SPDX-License-Identifier: GPL-2.0
/*
 * Reliable connections: a request goes from one connected QP to the other.
 *
 * The responder looks at what real ones look at: the state, the path, the remote QPN, the PSN and
 * the P_Key. So a connection works only when the connection manager gave both sides the same.
 */

#include "ib_loop.h"

#define PSN_MASK	0xffffff

static bool path_leads_to(const struct rdma_ah_attr *ah, u16 lid, __be64 prefix, __be64 guid)
{
	const union ib_gid *dgid;

	if (rdma_ah_get_dlid(ah) != lid)
		return false;
	if (!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH))
		return true;
	dgid = &rdma_ah_read_grh(ah)->dgid;
	return dgid->global.subnet_prefix == prefix && dgid->global.interface_id == guid;
}

/* path_to - whether packets with this address go to that port */
static bool path_to(struct loop_dev *dev, const struct rdma_ah_attr *ah, int port_num)
{
	struct loop_port *port = loop_port(dev, port_num);

	return path_leads_to(ah, READ_ONCE(port->lid), port->rvp.gid_prefix,
			     loop_port_guid(dev, port_num));
}

static int destination(struct loop_dev *dev, const struct rdma_ah_attr *ah, int from)
{
	if (!loop_port_carries(dev, from))
		return 0;
	if (path_to(dev, ah, from))
		return from;
	if (loop_port_carries(dev, loop_peer(from)) && path_to(dev, ah, loop_peer(from)))
		return loop_peer(from);
	return 0;
}

/* loop_migrate - to the alternate path (IBA 17.2.8); with the QP's r_lock and s_lock held */
void loop_migrate(struct rvt_qp *qp)
{
	struct loop_qp *priv = qp->priv;

	qp->s_mig_state = IB_MIG_MIGRATED;
	WRITE_ONCE(priv->tell_migrated, true);
	/* A copy with references of its own: both are released when the QP is destroyed. */
	rdma_replace_ah_attr(&qp->remote_ah_attr, &qp->alt_ah_attr);
	qp->port_num = rdma_ah_get_port_num(&qp->alt_ah_attr);
	qp->s_pkey_index = qp->s_alt_pkey_index;
}

/*
 * loop_tell_migrated - the event that loop_migrate owes, without the locks of the QP: its handler
 * takes those of the connection manager, which sends while it holds them.
 */
void loop_tell_migrated(struct rvt_qp *qp)
{
	struct loop_qp *priv = qp->priv;
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = IB_EVENT_PATH_MIG,
	};

	if (READ_ONCE(priv->tell_migrated) && xchg(&priv->tell_migrated, false) &&
	    qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/* loop_arm - an end that waits for it is armed by a packet of one that has not migrated */
void loop_arm(struct rvt_qp *qp, bool not_migrated)
{
	if (qp->s_mig_state == IB_MIG_REARM && not_migrated)
		qp->s_mig_state = IB_MIG_ARMED;
}

static bool arrives(struct loop_path *path, const struct rdma_ah_attr *ah, int port_num)
{
	return port_num == path->to && path_to(path->dev, ah, path->from);
}

/* accepts - what a responder checks before it looks into a packet; with its r_lock held */
static bool accepts(struct rvt_qp *qp, struct rvt_qp *from, struct rvt_swqe *wqe,
		    struct loop_path *path)
{
	if (qp->ibqp.qp_type != IB_QPT_RC || qp->remote_qpn != from->ibqp.qp_num ||
	    !(ib_rvt_state_ops[qp->state] & RVT_PROCESS_RECV_OK))
		return false;
	if ((wqe->psn ^ qp->r_psn) & PSN_MASK)
		return false;
	if (!arrives(path, &qp->remote_ah_attr, qp->port_num)) {
		if (qp->s_mig_state != IB_MIG_ARMED ||
		    !arrives(path, &qp->alt_ah_attr, rdma_ah_get_port_num(&qp->alt_ah_attr)))
			return false;
		spin_lock(&qp->s_lock);
		loop_migrate(qp);
		spin_unlock(&qp->s_lock);
	}
	return loop_pkeys_match(path->pkey, rvt_get_pkey(&path->dev->rdi, path->to - 1,
							 qp->s_pkey_index));
}

static void fill_wc(struct ib_wc *wc, struct rvt_qp *qp, struct rvt_swqe *wqe,
		    struct loop_path *path)
{
	wc->opcode = IB_WC_RECV;
	wc->byte_len = wqe->length;
	wc->src_qp = qp->remote_qpn;
	wc->slid = loop_port(path->dev, path->from)->lid;
	wc->sl = rdma_ah_get_sl(path->ah);
	wc->port_num = path->to;
}

/* The responder's answers, all with its r_lock held. Errors end its QP too (IBA 9.7.5.2). */

static enum loop_result refuse(struct rvt_qp *qp, enum ib_wc_status *status,
			       enum ib_wc_status requester, enum ib_wc_status responder)
{
	rvt_rc_error(qp, responder);
	*status = requester;
	return LOOP_DONE;
}

static enum loop_result receive_send(struct rvt_qp *qp, struct rvt_swqe *wqe,
				     struct loop_path *path, enum ib_wc_status *status)
{
	int got = rvt_get_rwqe(qp, false);
	struct rvt_sge_state from;
	struct ib_wc wc = {};

	if (got < 0)
		return refuse(qp, status, IB_WC_REM_OP_ERR, IB_WC_LOC_QP_OP_ERR);
	if (!got)
		return LOOP_RECEIVER_NOT_READY;
	if (wqe->length > qp->r_len)
		return refuse(qp, status, IB_WC_REM_INV_REQ_ERR, IB_WC_LOC_LEN_ERR);
	loop_wqe_sges(wqe, &from);
	loop_copy(qp, &qp->r_sge, true, &from, false, wqe->length);
	fill_wc(&wc, qp, wqe, path);
	if (wqe->wr.opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = wqe->wr.ex.imm_data;
	} else if (wqe->wr.opcode == IB_WR_SEND_WITH_INV) {
		if (rvt_invalidate_rkey(qp, wqe->wr.ex.invalidate_rkey))
			return refuse(qp, status, IB_WC_REM_ACCESS_ERR, IB_WC_LOC_PROT_ERR);
		wc.wc_flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = wqe->wr.ex.invalidate_rkey;
	}
	loop_receive_done(qp, &wc, wqe->wr.send_flags & IB_SEND_SOLICITED);
	return LOOP_DONE;
}

/* remote_memory - the responder's memory that a request names, with a reference */
static bool remote_memory(struct rvt_qp *qp, struct rvt_swqe *wqe, int access,
			  struct rvt_sge_state *ss)
{
	ss->num_sge = 1;
	ss->sg_list = NULL;
	ss->total_len = wqe->length;
	return qp->qp_access_flags & access &&
		rvt_rkey_ok(qp, &ss->sge, wqe->length, wqe->rdma_wr.remote_addr,
			    wqe->rdma_wr.rkey, access);
}

static enum loop_result receive_write(struct rvt_qp *qp, struct rvt_swqe *wqe,
				      struct loop_path *path, enum ib_wc_status *status)
{
	bool with_imm = wqe->wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct rvt_sge_state to, from;
	struct ib_wc wc = {};

	if (with_imm) {
		int got = rvt_get_rwqe(qp, true);

		if (got < 0)
			return refuse(qp, status, IB_WC_REM_OP_ERR, IB_WC_LOC_QP_OP_ERR);
		if (!got)
			return LOOP_RECEIVER_NOT_READY;
	}
	if (wqe->length) {
		if (!remote_memory(qp, wqe, IB_ACCESS_REMOTE_WRITE, &to))
			return refuse(qp, status, IB_WC_REM_ACCESS_ERR, IB_WC_LOC_PROT_ERR);
		loop_wqe_sges(wqe, &from);
		loop_copy(qp, &to, true, &from, false, wqe->length);
	}
	if (with_imm) {
		fill_wc(&wc, qp, wqe, path);
		wc.opcode = IB_WC_RECV_RDMA_WITH_IMM;
		wc.wc_flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = wqe->wr.ex.imm_data;
		loop_receive_done(qp, &wc, wqe->wr.send_flags & IB_SEND_SOLICITED);
	}
	return LOOP_DONE;
}

static enum loop_result receive_read(struct rvt_qp *qp, struct rvt_swqe *wqe,
				     enum ib_wc_status *status)
{
	struct rvt_sge_state to, from;

	if (!wqe->length)
		return LOOP_DONE;
	if (!remote_memory(qp, wqe, IB_ACCESS_REMOTE_READ, &from))
		return refuse(qp, status, IB_WC_REM_ACCESS_ERR, IB_WC_LOC_PROT_ERR);
	loop_wqe_sges(wqe, &to);
	loop_copy(qp, &to, false, &from, true, wqe->length);
	return LOOP_DONE;
}

static enum loop_result receive(struct rvt_qp *qp, struct rvt_swqe *wqe, struct loop_path *path,
				enum ib_wc_status *status)
{
	switch (wqe->wr.opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		return receive_send(qp, wqe, path, status);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return receive_write(qp, wqe, path, status);
	case IB_WR_RDMA_READ:
		return receive_read(qp, wqe, status);
	default:
		*status = IB_WC_LOC_QP_OP_ERR;
		return LOOP_DONE;
	}
}

/* Registrations that were posted are done already, but for invalidations that had to wait. */
static void local_operation(struct rvt_qp *qp, struct rvt_swqe *wqe, enum ib_wc_status *status)
{
	if (wqe->wr.send_flags & RVT_SEND_COMPLETION_ONLY)
		return;
	if (rvt_invalidate_rkey(qp, wqe->wr.ex.invalidate_rkey))
		*status = IB_WC_LOC_PROT_ERR;
	atomic_dec(&qp->local_ops_pending);
}

/* answer_of - the responder's part; with its r_lock held */
static void answer_of(struct rvt_qp *responder, struct rvt_qp *qp, struct rvt_swqe *wqe,
		      struct loop_path *path, struct loop_answer *answer)
{
	if (!accepts(responder, qp, wqe, path))
		return;
	if (responder->state == IB_QPS_RTR && !(responder->r_flags & RVT_R_COMM_EST))
		rvt_comm_est(responder);
	loop_arm(responder, qp->s_mig_state != IB_MIG_MIGRATED);
	answer->not_migrated = responder->s_mig_state != IB_MIG_MIGRATED;
	answer->rnr_timer = responder->r_min_rnr_timer;
	answer->result = receive(responder, wqe, path, &answer->status);
	if (answer->result == LOOP_DONE)
		responder->r_psn = (wqe->lpsn + 1) & PSN_MASK;
}

void loop_rc_send(struct rvt_qp *qp, struct rvt_swqe *wqe, struct loop_answer *answer)
{
	struct loop_path path = {
		.dev = ibdev_to_loop(qp->ibqp.device),
		.ah = &qp->remote_ah_attr,
		.from = qp->port_num,
	};
	struct rvt_qp *responder;

	if (loop_post_parms[wqe->wr.opcode].flags & RVT_OPERATION_LOCAL) {
		local_operation(qp, wqe, &answer->status);
		return;
	}
	answer->result = LOOP_NO_ANSWER;
	path.pkey = rvt_get_pkey(&path.dev->rdi, path.from - 1, qp->s_pkey_index);
	path.to = destination(path.dev, path.ah, path.from);
	if (!path.to || loop_port_is_broken(path.from))
		return;
	rcu_read_lock();
	responder = rvt_lookup_qpn(&path.dev->rdi, &loop_port(path.dev, path.to)->rvp,
				   qp->remote_qpn);
	if (responder) {
		spin_lock_irq(&responder->r_lock);
		answer_of(responder, qp, wqe, &path, answer);
		spin_unlock_irq(&responder->r_lock);
		loop_tell_migrated(responder);
	}
	rcu_read_unlock();
	if (answer->result == LOOP_DONE)
		loop_port(path.dev, path.to)->rvp.n_loop_pkts++;
	if (answer->result == LOOP_NO_ANSWER)
		loop_port(path.dev, path.to)->rvp.n_pkt_drops++;
}
