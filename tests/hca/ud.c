// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: QP0, QP1, UD and multicast.
 *
 * A datagram is taken out of the sender's memory first, so that it can be delivered twice, late,
 * or to many.
 */

#include <linux/slab.h>

#include "ib_loop.h"

#define MULTICAST_QPN	0xffffff
#define NEXT_HEADER_IBA	0x1b

struct datagram {
	struct delayed_work later;
	struct loop_dev *dev;
	struct ib_grh grh;
	bool has_grh;
	bool solicited;
	int from;
	int to;			/* port number, 0 for multicast */
	u16 slid;
	u16 dlid;
	u16 pkey;
	u8 sl;
	u32 src_qpn;
	u32 dest_qpn;
	u32 qkey;
	enum ib_wr_opcode opcode;
	__be32 imm_data;
	u32 length;
	u8 data[];
};

/* The datagrams that are on their way; unloading waits for them. */
static atomic_t in_flight = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(landed);

static void arrived(struct datagram *d)
{
	kfree(d);
	if (atomic_dec_and_test(&in_flight))
		wake_up(&landed);
}

static bool is_multicast(u16 lid)
{
	return lid >= be16_to_cpu(IB_MULTICAST_LID_BASE) && lid != be16_to_cpu(IB_LID_PERMISSIVE);
}

/* pkey_index - where a port's table has a partition of the datagram; negative when it has not */
static int pkey_index(struct rvt_dev_info *rdi, int port_num, u16 pkey)
{
	int i;

	for (i = 0; i < LOOP_PKEYS; i++)
		if (loop_pkeys_match(rvt_get_pkey(rdi, port_num - 1, i), pkey))
			return i;
	return -1;
}

/* accepts - checks the keys; index: of the P_Key, for QP1 */
static bool accepts(struct rvt_qp *qp, int port_num, struct datagram *d, int *index)
{
	*index = 0;
	if (qp->port_num != port_num || !(ib_rvt_state_ops[qp->state] & RVT_PROCESS_RECV_OK))
		return false;
	switch (qp->ibqp.qp_type) {
	case IB_QPT_SMI:
		return true;
	case IB_QPT_GSI:
		*index = pkey_index(&d->dev->rdi, port_num, d->pkey);
		return *index >= 0 && d->qkey == qp->qkey;
	case IB_QPT_UD:
		return d->qkey == qp->qkey &&
			loop_pkeys_match(d->pkey, rvt_get_pkey(&d->dev->rdi, port_num - 1,
							       qp->s_pkey_index));
	default:
		return false;
	}
}

/* receive_request - the next of the queue; one that was too small for the last is used again */
static bool receive_request(struct rvt_qp *qp, u32 length)
{
	if (qp->r_flags & RVT_R_REUSE_SGE)
		qp->r_flags &= ~RVT_R_REUSE_SGE;
	else if (rvt_get_rwqe(qp, false) <= 0)
		return false;
	if (length > qp->r_len) {
		qp->r_flags |= RVT_R_REUSE_SGE;
		return false;
	}
	return true;
}

static void fill(struct rvt_qp *qp, int port_num, struct datagram *d, int index)
{
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.byte_len = d->length + sizeof(d->grh),
		.src_qp = d->src_qpn,
		.slid = d->slid,
		.sl = d->sl,
		.port_num = port_num,
		.pkey_index = index,
	};

	if (d->has_grh) {
		wc.wc_flags |= IB_WC_GRH;
		rvt_copy_sge(qp, &qp->r_sge, &d->grh, sizeof(d->grh), true, false);
	} else {
		rvt_skip_sge(&qp->r_sge, sizeof(d->grh), true);
	}
	rvt_copy_sge(qp, &qp->r_sge, d->data, d->length, true, false);
	if (d->opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = d->imm_data;
	}
	loop_receive_done(qp, &wc, d->solicited);
}

static void deliver_to_qp(struct rvt_qp *qp, int port_num, struct datagram *d)
{
	unsigned long flags;
	bool done = false;
	int index;

	spin_lock_irqsave(&qp->r_lock, flags);
	if (accepts(qp, port_num, d, &index) &&
	    receive_request(qp, d->length + sizeof(d->grh))) {
		fill(qp, port_num, d, index);
		done = true;
	}
	spin_unlock_irqrestore(&qp->r_lock, flags);
	if (done)
		loop_port(d->dev, port_num)->rvp.n_loop_pkts++;
	else
		loop_port(d->dev, port_num)->rvp.n_pkt_drops++;
}

static void deliver_multicast(struct datagram *d, int port_num)
{
	struct rvt_ibport *rvp = &loop_port(d->dev, port_num)->rvp;
	struct rvt_mcast *group;
	struct rvt_mcast_qp *member;

	if (!d->has_grh || !loop_port_carries(d->dev, port_num))
		return;
	group = rvt_mcast_find(rvp, &d->grh.dgid, d->dlid);
	if (!group)
		return;
	list_for_each_entry_rcu(member, &group->qp_list, list)
		if (member->qp->ibqp.qp_num != d->src_qpn || port_num != d->from)
			deliver_to_qp(member->qp, port_num, d);
	/* Detaching waits until the last that is not its own is gone. */
	if (atomic_dec_return(&group->refcount) <= 1)
		wake_up(&group->wait);
}

static void deliver(struct datagram *d)
{
	struct rvt_qp *qp;
	int port_num;

	rcu_read_lock();
	if (d->to) {
		qp = rvt_lookup_qpn(&d->dev->rdi, &loop_port(d->dev, d->to)->rvp, d->dest_qpn);
		if (qp)
			deliver_to_qp(qp, d->to, d);
		else
			loop_port(d->dev, d->to)->rvp.n_pkt_drops++;
	} else {
		for (port_num = 1; port_num <= LOOP_PORTS; port_num++)
			deliver_multicast(d, port_num);
	}
	rcu_read_unlock();
}

static void deliver_late(struct work_struct *work)
{
	struct datagram *d = container_of(to_delayed_work(work), struct datagram, later);

	deliver(d);
	arrived(d);
}

/* route - to which port a datagram goes: its number, 0 for multicast, negative for none */
static int route(struct rvt_qp *qp, struct datagram *d)
{
	struct loop_dev *dev = d->dev;
	int peer = loop_peer(d->from);
	u16 own_lid = READ_ONCE(loop_port(dev, d->from)->lid);

	if (own_lid && d->dlid == own_lid)
		return d->from;
	/* QP0 needs no more than a cable: it is how ports become active. */
	if (qp->ibqp.qp_type == IB_QPT_SMI)
		return READ_ONCE(dev->link_up) ? peer : -1;
	if (!loop_port_carries(dev, d->from))
		return -1;
	if (is_multicast(d->dlid))
		return 0;
	if (d->dlid == READ_ONCE(loop_port(dev, peer)->lid) && loop_port_carries(dev, peer))
		return peer;
	return -1;
}

static void build_grh(struct datagram *d, const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *route = rdma_ah_read_grh(ah);
	struct ib_grh *grh = &d->grh;

	d->has_grh = true;
	grh->version_tclass_flow = cpu_to_be32(6 << 28 | route->traffic_class << 20 |
					       route->flow_label);
	grh->paylen = cpu_to_be16(d->length);
	grh->next_hdr = NEXT_HEADER_IBA;
	grh->hop_limit = route->hop_limit;
	grh->sgid.global.subnet_prefix = loop_port(d->dev, d->from)->rvp.gid_prefix;
	grh->sgid.global.interface_id = loop_port_guid(d->dev, d->from);
	grh->dgid = route->dgid;
}

static struct datagram *take(struct rvt_qp *qp, struct rvt_swqe *wqe)
{
	struct rdma_ah_attr *ah = rvt_get_swqe_ah_attr(wqe);
	struct datagram *d = kzalloc(struct_size(d, data, wqe->length), GFP_KERNEL);
	u32 qkey = rvt_get_swqe_remote_qkey(wqe);
	struct rvt_sge_state from;
	u32 offset = 0;

	if (!d)
		return NULL;
	d->dev = ibdev_to_loop(qp->ibqp.device);
	d->from = qp->port_num;
	d->dlid = rdma_ah_get_dlid(ah);
	/* QP0 has to be answered before the port has a LID. */
	d->slid = READ_ONCE(loop_port(d->dev, d->from)->lid) ?: be16_to_cpu(IB_LID_PERMISSIVE);
	d->sl = rdma_ah_get_sl(ah);
	d->src_qpn = qp->ibqp.qp_num;
	d->dest_qpn = rvt_get_swqe_remote_qpn(wqe);
	/* The highest bit stands for the sender's own (IBA 10.2.5). */
	d->qkey = qkey & BIT(31) ? qp->qkey : qkey;
	d->pkey = rvt_get_pkey(&d->dev->rdi, d->from - 1,
			       qp->ibqp.qp_type == IB_QPT_GSI ? rvt_get_swqe_pkey_index(wqe) :
			       qp->s_pkey_index);
	d->opcode = wqe->wr.opcode;
	d->imm_data = wqe->wr.ex.imm_data;
	d->solicited = wqe->wr.send_flags & IB_SEND_SOLICITED;
	d->length = wqe->length;
	if (rdma_ah_get_ah_flags(ah) & IB_AH_GRH)
		build_grh(d, ah);
	loop_wqe_sges(wqe, &from);
	while (offset < d->length) {
		u32 piece = rvt_get_sge_length(&from.sge, d->length - offset);

		memcpy(d->data + offset, from.sge.vaddr, piece);
		rvt_update_sge(&from, piece, false);
		offset += piece;
	}
	return d;
}

/* fault_of - what is to be done to this datagram; only messages of connection managers fail */
static enum loop_fault fault_of(struct rvt_qp *qp, struct datagram *d, unsigned int *delay_ms)
{
	struct ib_mad_hdr *mad = (void *)d->data;

	if (qp->ibqp.qp_type != IB_QPT_GSI || d->length < sizeof(*mad) ||
	    mad->mgmt_class != IB_MGMT_CLASS_CM)
		return LOOP_PASS;
	return loop_fault_of(d->from, be16_to_cpu(mad->attr_id), delay_ms);
}

void loop_ud_send(struct rvt_qp *qp, struct rvt_swqe *wqe)
{
	struct datagram *d = take(qp, wqe);
	unsigned int delay_ms = 0;

	if (!d)
		return;
	atomic_inc(&in_flight);
	d->to = route(qp, d);
	if (d->to < 0) {
		loop_port(d->dev, d->from)->rvp.n_pkt_drops++;
		arrived(d);
		return;
	}
	switch (fault_of(qp, d, &delay_ms)) {
	case LOOP_DROP:
		break;
	case LOOP_DELAY:
		INIT_DELAYED_WORK(&d->later, deliver_late);
		queue_delayed_work(d->dev->wq, &d->later, msecs_to_jiffies(delay_ms));
		return;
	case LOOP_REPEAT:
		deliver(d);
		fallthrough;
	case LOOP_PASS:
		deliver(d);
		break;
	}
	arrived(d);
}

/* loop_ud_exit - waits for delayed datagrams, after no more are delayed, while there are QPs */
void loop_ud_exit(void)
{
	wait_event(landed, !atomic_read(&in_flight));
}
