// SPDX-License-Identifier: GPL-2.0
/*
 * QPs: what rdmavt calls for each of them, and the work item that empties a send queue.
 */

#include "ib_loop.h"

/* A code for the time that a receiver wants a sender to wait (IBA 9.7.5.2.8). */
#define RNR_640_US	12

#define RC	BIT(IB_QPT_RC)
#define ALL	(BIT(IB_QPT_SMI) | BIT(IB_QPT_GSI) | BIT(IB_QPT_UD) | RC)

/* What may be posted on which type of QP. */
const struct rvt_operation_params loop_post_parms[RVT_OPERATION_MAX] = {
	[IB_WR_SEND] = { sizeof(struct ib_send_wr), ALL, 0 },
	[IB_WR_SEND_WITH_IMM] = { sizeof(struct ib_send_wr), BIT(IB_QPT_UD) | RC, 0 },
	[IB_WR_SEND_WITH_INV] = { sizeof(struct ib_send_wr), RC, 0 },
	[IB_WR_RDMA_WRITE] = { sizeof(struct ib_rdma_wr), RC, 0 },
	[IB_WR_RDMA_WRITE_WITH_IMM] = { sizeof(struct ib_rdma_wr), RC, 0 },
	[IB_WR_RDMA_READ] = { sizeof(struct ib_rdma_wr), RC, RVT_OPERATION_ATOMIC },
	[IB_WR_REG_MR] = { sizeof(struct ib_reg_wr), RC, RVT_OPERATION_LOCAL },
	[IB_WR_LOCAL_INV] = { sizeof(struct ib_send_wr), RC, RVT_OPERATION_LOCAL },
};

const enum ib_wc_opcode loop_wc_opcode[RVT_OPERATION_MAX] = {
	[IB_WR_SEND] = IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM] = IB_WC_SEND,
	[IB_WR_SEND_WITH_INV] = IB_WC_SEND,
	[IB_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_READ] = IB_WC_RDMA_READ,
	[IB_WR_REG_MR] = IB_WC_REG_MR,
	[IB_WR_LOCAL_INV] = IB_WC_LOCAL_INV,
};

/* loop_wqe_sges - the memory of a request; its references stay with the request */
void loop_wqe_sges(struct rvt_swqe *wqe, struct rvt_sge_state *ss)
{
	ss->num_sge = wqe->wr.num_sge;
	ss->total_len = wqe->length;
	ss->sg_list = wqe->sg_list + 1;
	if (ss->num_sge)
		ss->sge = wqe->sg_list[0];
}

/* loop_copy - between two lists of memory; put_*: the list's references are released */
void loop_copy(struct rvt_qp *qp, struct rvt_sge_state *to, bool put_to,
	       struct rvt_sge_state *from, bool put_from, u32 length)
{
	while (length) {
		u32 piece = rvt_get_sge_length(&from->sge, length);

		rvt_copy_sge(qp, to, from->sge.vaddr, piece, put_to, false);
		rvt_update_sge(from, piece, put_from);
		length -= piece;
	}
}

/* loop_receive_done - completes the receive request at hand; with the QP's r_lock held */
void loop_receive_done(struct rvt_qp *qp, struct ib_wc *wc, bool solicited)
{
	rvt_put_ss(&qp->r_sge);
	clear_bit(RVT_R_WRID_VALID, &qp->r_aflags);
	wc->wr_id = qp->r_wr_id;
	wc->status = IB_WC_SUCCESS;
	wc->qp = &qp->ibqp;
	if (!rvt_cq_enter(ibcq_to_rvtcq(qp->ibqp.recv_cq), wc, solicited))
		rvt_rc_error(qp, IB_WC_LOC_QP_OP_ERR);
}

/* Same partition, and one of the two a full member (IBA 10.9.3). */
bool loop_pkeys_match(u16 a, u16 b)
{
	return (a & 0x7fff) && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}

static void last_wqe_reached(struct rvt_qp *qp)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = IB_EVENT_QP_LAST_WQE_REACHED,
	};

	qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/* next_request - the one to send; NULL with again set when one was flushed instead */
static struct rvt_swqe *next_request(struct rvt_qp *qp, bool *again)
{
	int allowed = ib_rvt_state_ops[qp->state];
	struct rvt_swqe *wqe;

	*again = false;
	if (!(allowed & RVT_PROCESS_OR_FLUSH_SEND) ||
	    qp->s_flags & (RVT_S_ANY_WAIT | RVT_S_TIMER) ||
	    qp->s_last == READ_ONCE(qp->s_head))
		return NULL;
	wqe = rvt_get_swqe_ptr(qp, qp->s_last);
	if (allowed & RVT_PROCESS_NEXT_SEND_OK) {
		/* rdmavt takes a difference of the two for a request in progress. */
		if (qp->s_cur == qp->s_last)
			qp->s_cur = rvt_qp_swqe_incr(qp, qp->s_cur);
		return wqe;
	}
	if (allowed & RVT_FLUSH_SEND) {
		rvt_send_complete(qp, wqe, IB_WC_WR_FLUSH_ERR);
		*again = true;
	}
	return NULL;
}

/* no_answer - the next try after the timeout, or by the alternate path; false: it has failed */
static bool no_answer(struct rvt_qp *qp)
{
	if (qp->s_mig_state == IB_MIG_ARMED) {
		loop_migrate(qp);
		return true;
	}
	if (!qp->s_retry)
		return false;
	qp->s_retry--;
	rvt_add_retry_timer(qp);
	return true;
}

/* not_ready - the next try after a while; false: it has failed */
static bool not_ready(struct rvt_qp *qp, u8 rnr_timer)
{
	if (loop_rnr_gives_up()) {
		if (!qp->s_rnr_retry)
			return false;
		if (qp->s_rnr_retry_cnt < 7)
			qp->s_rnr_retry--;
	} else {
		/* Receivers that ask for a long wait (ib_cm: 655 ms) do not expect to ask. */
		rnr_timer = RNR_640_US;
	}
	rvt_add_rnr_timer(qp, rnr_timer << IB_AETH_CREDIT_SHIFT);
	return true;
}

/* conclude - the state of the QP after a request was tried; with both its locks held */
static int conclude(struct rvt_qp *qp, struct rvt_swqe *wqe, struct loop_answer *answer)
{
	/* It may have left RTS meanwhile. Then the request is flushed, or reset has it. */
	bool sending = ib_rvt_state_ops[qp->state] & RVT_PROCESS_SEND_OK;

	if (answer->result != LOOP_DONE && !sending)
		return 0;
	if (answer->result == LOOP_NO_ANSWER) {
		if (no_answer(qp))
			return 0;
		answer->status = IB_WC_RETRY_EXC_ERR;
	} else if (answer->result == LOOP_RECEIVER_NOT_READY) {
		if (not_ready(qp, answer->rnr_timer))
			return 0;
		answer->status = IB_WC_RNR_RETRY_EXC_ERR;
	}
	loop_arm(qp, answer->not_migrated);
	qp->s_retry = qp->s_retry_cnt;
	qp->s_rnr_retry = qp->s_rnr_retry_cnt;
	rvt_send_complete(qp, wqe, answer->status);
	if (answer->status == IB_WC_SUCCESS)
		return 0;
	return rvt_error_qp(qp, IB_WC_WR_FLUSH_ERR);
}

/* send_one - the oldest request; false when there is nothing more to do now */
static bool send_one(struct rvt_qp *qp)
{
	struct loop_answer answer = { .result = LOOP_DONE, .status = IB_WC_SUCCESS };
	struct rvt_swqe *wqe;
	bool again;
	int last;

	spin_lock_irq(&qp->r_lock);
	spin_lock(&qp->s_lock);
	wqe = next_request(qp, &again);
	spin_unlock(&qp->s_lock);
	spin_unlock_irq(&qp->r_lock);
	if (!wqe)
		return again;

	/* The request stays as it is: only this work item completes requests of this QP. */
	if (qp->ibqp.qp_type == IB_QPT_RC)
		loop_rc_send(qp, wqe, &answer);
	else
		loop_ud_send(qp, wqe);

	spin_lock_irq(&qp->r_lock);
	spin_lock(&qp->s_lock);
	last = conclude(qp, wqe, &answer);
	spin_unlock(&qp->s_lock);
	spin_unlock_irq(&qp->r_lock);
	loop_tell_migrated(qp);
	if (last)
		last_wqe_reached(qp);
	return true;
}

static void send_work(struct work_struct *work)
{
	struct rvt_qp *qp = container_of(work, struct loop_qp, send)->qp;

	while (send_one(qp))
		cond_resched();
}

static bool schedule_send(struct rvt_qp *qp)
{
	struct loop_dev *dev = ibdev_to_loop(qp->ibqp.device);
	struct loop_qp *priv = qp->priv;

	return queue_work(dev->wq, &priv->send);
}

static void do_send(struct rvt_qp *qp)
{
	schedule_send(qp);
}

static void *qp_priv_alloc(struct rvt_dev_info *rdi, struct rvt_qp *qp)
{
	struct loop_qp *priv = kzalloc(sizeof(*priv), GFP_KERNEL);

	if (!priv)
		return ERR_PTR(-ENOMEM);
	priv->qp = qp;
	INIT_WORK(&priv->send, send_work);
	return priv;
}

/*
 * rdmavt stops the queue, then the timers, which may start the queue again, then waits with
 * quiesce_qp. The last is the one that counts.
 */
static void stop_sending(struct rvt_qp *qp)
{
	struct loop_qp *priv = qp->priv;

	cancel_work_sync(&priv->send);
}

static void qp_priv_free(struct rvt_dev_info *rdi, struct rvt_qp *qp)
{
	stop_sending(qp);
	kfree(qp->priv);
}

static void nothing(struct rvt_qp *qp)
{
}

static void restart_rc(struct rvt_qp *qp, u32 psn, int wait)
{
	/* The oldest request is always the next: there is nothing to go back to. */
}

static unsigned int free_all_qps(struct rvt_dev_info *rdi)
{
	return 0;
}

static int pmtu_from_attr(struct rvt_dev_info *rdi, struct rvt_qp *qp, struct ib_qp_attr *attr)
{
	if (attr->path_mtu < IB_MTU_256 || attr->path_mtu > LOOP_MTU)
		return -EINVAL;
	return attr->path_mtu;
}

static u32 mtu_from_qp(struct rvt_dev_info *rdi, struct rvt_qp *qp, u32 pmtu)
{
	return ib_mtu_enum_to_int(pmtu);
}

static int mtu_to_path_mtu(u32 mtu)
{
	return ib_mtu_int_to_enum(mtu);
}

static void new_ah(struct ib_device *ibdev, struct rdma_ah_attr *attr, struct rvt_ah *ah)
{
	ah->log_pmtu = ilog2(ib_mtu_enum_to_int(LOOP_MTU));
}

void loop_set_qp_hooks(struct rvt_driver_provided *f)
{
	f->schedule_send = schedule_send;
	f->schedule_send_no_lock = schedule_send;
	f->do_send = do_send;
	f->qp_priv_alloc = qp_priv_alloc;
	f->qp_priv_free = qp_priv_free;
	f->notify_qp_reset = nothing;
	f->flush_qp_waiters = nothing;
	f->notify_error_qp = nothing;
	f->stop_send_queue = stop_sending;
	f->quiesce_qp = stop_sending;
	f->notify_restart_rc = restart_rc;
	f->free_all_qps = free_all_qps;
	f->get_pmtu_from_attr = pmtu_from_attr;
	f->mtu_from_qp = mtu_from_qp;
	f->mtu_to_path_mtu = mtu_to_path_mtu;
	f->notify_new_ah = new_ah;
}
