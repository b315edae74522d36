// SPDX-License-Identifier: GPL-2.0
/* What ib_cm_init_qp_attr fills in: the masks and the values, on both sides. */

#include <linux/etherdevice.h>

#include "api.h"

#define INIT_MASK	(IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT)
#define RTR_MASK	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
#define RTR_RC_MASK	(RTR_MASK | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
#define RTS_MASK	(IB_QP_STATE | IB_QP_SQ_PSN)
#define RTS_RC_MASK	(RTS_MASK | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | \
			 IB_QP_TIMEOUT)

/* What one end is expected to know. */
struct side {
	const char *name;
	enum ib_qp_type qp_type;
	u32 dest_qp_num;
	u32 rq_psn;
	u32 sq_psn;
	u8 responder_resources;
	u8 initiator_depth;
	u8 retry_count;
	u8 rnr_retry;
	u8 timeout;
};

/* As the IBA has it: the adapter's delay and twice the life time, in steps of powers of two. */
static u8 ack_timeout(u8 delay, u8 life_time)
{
	int timeout = life_time + 1;

	if (timeout >= delay)
		timeout += delay >= timeout - 1;
	else
		timeout = delay + (timeout >= delay - 1);
	return min(timeout, 31);
}

static void poison(struct ib_qp_attr *attr, enum ib_qp_state state)
{
	memset(attr, 0x5a, sizeof(*attr));
	attr->qp_state = state;
}

static void check_init(struct api_test *t, struct api_id *id, const struct side *side)
{
	u64 flush = IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_FLUSH_PERSISTENT;
	u64 caps = api_device.ib_device->attrs.device_cap_flags;
	int access = IB_ACCESS_REMOTE_WRITE, mask = 0;
	struct ib_qp_attr attr;

	if (side->responder_resources)
		access |= IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;
	if (side->responder_resources && (caps & flush))
		access |= IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT;
	poison(&attr, IB_QPS_INIT);
	if (!api_eq(t, ib_cm_init_qp_attr(id->cm_id, &attr, &mask), 0, "%s INIT", side->name))
		return;
	api_eq(t, mask, INIT_MASK, "%s INIT mask", side->name);
	api_eq(t, attr.qp_access_flags, access, "%s access flags", side->name);
	api_eq(t, attr.pkey_index, 0, "%s P_Key index", side->name);
	api_eq(t, attr.port_num, api_device.port, "%s port", side->name);
	api_eq(t, attr.qp_state, IB_QPS_INIT, "%s INIT state", side->name);
}

static void check_rtr(struct api_test *t, struct api_id *id, const struct side *side)
{
	bool atomic = side->qp_type == IB_QPT_RC || side->qp_type == IB_QPT_XRC_TGT;
	const struct ib_global_route *grh;
	struct ib_qp_attr attr;
	int mask = 0;

	poison(&attr, IB_QPS_RTR);
	if (!api_eq(t, ib_cm_init_qp_attr(id->cm_id, &attr, &mask), 0, "%s RTR", side->name))
		return;
	api_eq(t, mask, atomic ? RTR_RC_MASK : RTR_MASK, "%s RTR mask", side->name);
	api_eq(t, attr.path_mtu, IB_MTU_1024, "%s MTU", side->name);
	api_eq(t, attr.dest_qp_num, side->dest_qp_num, "%s remote QPN", side->name);
	api_eq(t, attr.rq_psn, side->rq_psn, "%s receive PSN", side->name);
	if (atomic) {
		api_eq(t, attr.max_dest_rd_atomic, side->responder_resources,
		       "%s responder resources", side->name);
		api_eq(t, attr.min_rnr_timer, 0, "%s RNR timer", side->name);
	}
	grh = rdma_ah_read_grh(&attr.ah_attr);
	api_eq(t, attr.ah_attr.type, RDMA_AH_ATTR_TYPE_ROCE, "%s address type", side->name);
	api_eq(t, rdma_ah_get_port_num(&attr.ah_attr), api_device.port, "%s address port",
	       side->name);
	api_check(t, !memcmp(&grh->dgid, &api_device.gid, sizeof(grh->dgid)), "%s GID", side->name);
	api_check(t, grh->sgid_attr == api_device.attr, "%s source GID", side->name);
	api_eq(t, grh->sgid_index, api_device.attr->index, "%s source GID index", side->name);
	api_check(t, ether_addr_equal(attr.ah_attr.roce.dmac, api_device.netdev->dev_addr),
		  "%s MAC address", side->name);
	api_check(t, grh->hop_limit > 1, "%s hop limit %u", side->name, grh->hop_limit);
}

static void check_rts(struct api_test *t, struct api_id *id, const struct side *side)
{
	struct ib_qp_attr attr;
	int mask = 0, want;

	poison(&attr, IB_QPS_RTS);
	if (!api_eq(t, ib_cm_init_qp_attr(id->cm_id, &attr, &mask), 0, "%s RTS", side->name))
		return;
	switch (side->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_XRC_INI:
		want = RTS_RC_MASK;
		break;
	case IB_QPT_XRC_TGT:
		want = RTS_MASK | IB_QP_TIMEOUT;
		break;
	default:
		want = RTS_MASK;
		break;
	}
	api_eq(t, mask, want, "%s RTS mask", side->name);
	api_eq(t, attr.sq_psn, side->sq_psn, "%s send PSN", side->name);
	if (mask & IB_QP_TIMEOUT)
		api_eq(t, attr.timeout, side->timeout, "%s timeout", side->name);
	if (!(mask & IB_QP_RETRY_CNT))
		return;
	api_eq(t, attr.retry_cnt, side->retry_count, "%s retries", side->name);
	api_eq(t, attr.rnr_retry, side->rnr_retry, "%s RNR retries", side->name);
	api_eq(t, attr.max_rd_atomic, side->initiator_depth, "%s initiator depth", side->name);
}

static void check_side(struct api_test *t, struct api_id *id, const struct side *side)
{
	check_init(t, id, side);
	check_rtr(t, id, side);
	check_rts(t, id, side);
}

/* What the request says; an XRC initiator has no part that responds or retries. */
static struct side passive_of(const struct api_conn *conn, bool replied)
{
	u8 delay = api_device.ib_device->attrs.local_ca_ack_delay;
	bool xrc = conn->req.qp_type == IB_QPT_XRC_INI;

	return (struct side) {
		.name = "passive",
		.qp_type = xrc ? IB_QPT_XRC_TGT : conn->req.qp_type,
		.dest_qp_num = conn->req.qp_num,
		.rq_psn = replied ? conn->rep.starting_psn : 0,
		.sq_psn = conn->req.starting_psn,
		.responder_resources = replied ? conn->rep.responder_resources :
			conn->req.initiator_depth,
		.initiator_depth = replied ? conn->rep.initiator_depth :
			xrc ? 0 : conn->req.responder_resources,
		.retry_count = xrc ? 0 : conn->req.retry_count,
		.rnr_retry = xrc ? 0 : conn->req.rnr_retry_count,
		.timeout = ack_timeout(delay, conn->path.packet_life_time),
	};
}

/* What the reply says. */
static struct side active_of(const struct api_conn *conn)
{
	u8 delay = api_device.ib_device->attrs.local_ca_ack_delay;
	bool xrc = conn->req.qp_type == IB_QPT_XRC_INI;

	return (struct side) {
		.name = "active",
		.qp_type = conn->req.qp_type,
		.dest_qp_num = conn->rep.qp_num,
		.rq_psn = conn->req.starting_psn,
		.sq_psn = conn->rep.starting_psn,
		.responder_resources = xrc ? 0 : conn->rep.initiator_depth,
		.initiator_depth = conn->rep.responder_resources,
		.retry_count = conn->req.retry_count,
		.rnr_retry = conn->rep.rnr_retry_count,
		.timeout = ack_timeout(delay, conn->path.packet_life_time),
	};
}

static void type_and_time(struct api_test *t, enum ib_qp_type qp_type, u8 life_time)
{
	struct side active, passive;
	struct ib_qp_attr attr;
	struct api_conn conn;
	int mask = 0;

	api_conn_init(&conn, life_time);
	conn.req.qp_type = qp_type;
	if (!api_request(t, &conn))
		return;
	/* The active side knows its own part of INIT before the reply, and nothing more. */
	poison(&attr, IB_QPS_INIT);
	api_eq(t, ib_cm_init_qp_attr(conn.active->cm_id, &attr, &mask), 0, "INIT in REQ_SENT");
	api_eq(t, mask, INIT_MASK, "INIT mask in REQ_SENT");
	passive = passive_of(&conn, false);
	check_side(t, conn.passive, &passive);

	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	passive = passive_of(&conn, true);
	check_side(t, conn.passive, &passive);
	if (!api_wait(t, conn.active, IB_CM_REP_RECEIVED))
		return;
	active = active_of(&conn);
	check_side(t, conn.active, &active);

	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	check_side(t, conn.active, &active);
	if (api_wait(t, conn.passive, IB_CM_RTU_RECEIVED))
		check_side(t, conn.passive, &passive);
	api_end_case(t);
}

static void reliable(struct api_test *t)
{
	/* Shorter than the adapter's delay, about as long, longer. */
	static const u8 life_times[] = { 0, 9, 12, 13, 14, 15, 16, 18 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(life_times); i++)
		type_and_time(t, IB_QPT_RC, life_times[i]);
}

static void unreliable(struct api_test *t)
{
	type_and_time(t, IB_QPT_UC, API_LIFE_TIME);
}

static void xrc(struct api_test *t)
{
	type_and_time(t, IB_QPT_XRC_INI, API_LIFE_TIME);
}

static const struct api_case cases[] = {
	{ "RC", reliable },
	{ "UC", unreliable },
	{ "XRC", xrc },
};

const struct api_suite api_suite_qp_attr = API_SUITE("qp-attr", cases);
