// SPDX-License-Identifier: GPL-2.0
/*
 * A flood of duplicates: the REQ of a connection that exists, sent again and again by a MAD agent
 * of the load generator's own. Each is looked up, counted and dropped.
 */

#include <linux/ktime.h>
#include <linux/semaphore.h>
#include <rdma/ib_mad.h>
#include <rdma/ibta_vol1_c12.h>

#include "bench.h"

#define CM_CLASS_VERSION	2

struct flood {
	struct ib_mad_agent *agent;
	struct ib_ah *ah;
	/* As many more may be under way. */
	struct semaphore room;
};

static void send_done(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct flood *flood = agent->context;

	ib_free_send_mad(wc->send_buf);
	up(&flood->room);
}

static int flood_open(struct flood *flood, struct bench_run *run)
{
	struct ib_device *ib_device = run->dev.ib_device;
	struct rdma_ah_attr ah_attr;
	int ret;

	sema_init(&flood->room, run->args.in_flight);
	flood->agent = ib_register_mad_agent(ib_device, 1, IB_QPT_GSI, NULL, 0, send_done, NULL,
					     flood, 0);
	if (IS_ERR(flood->agent))
		return PTR_ERR(flood->agent);
	ret = ib_init_ah_attr_from_path(ib_device, 1, &run->path, &ah_attr, run->dev.attr);
	if (ret)
		goto unregister;
	flood->ah = rdma_create_ah(flood->agent->qp->pd, &ah_attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&ah_attr);
	ret = PTR_ERR_OR_ZERO(flood->ah);
	if (!ret)
		return 0;

unregister:
	ib_unregister_mad_agent(flood->agent);
	return ret;
}

static void flood_close(struct flood *flood)
{
	/* What is under way uses the address handle. */
	ib_unregister_mad_agent(flood->agent);
	rdma_destroy_ah(flood->ah, RDMA_DESTROY_AH_SLEEPABLE);
}

/* The REQ of the connection, as far as a duplicate is recognized by it. */
static void duplicate(const struct bench_conn *conn, void *mad)
{
	const struct bench_run *run = conn->run;
	struct ib_mad_hdr *hdr = mad;
	struct cm_req_msg *req = mad;

	memset(mad, 0, IB_MGMT_MAD_SIZE);
	hdr->base_version = IB_MGMT_BASE_VERSION;
	hdr->mgmt_class = IB_MGMT_CLASS_CM;
	hdr->class_version = CM_CLASS_VERSION;
	hdr->method = IB_MGMT_METHOD_SEND;
	hdr->attr_id = CM_REQ_ATTR_ID;
	hdr->tid = cpu_to_be64(1);
	IBA_SET(CM_REQ_LOCAL_COMM_ID, req, be32_to_cpu(conn->active->local_id));
	IBA_SET(CM_REQ_SERVICE_ID, req, run->service_id);
	IBA_SET(CM_REQ_LOCAL_CA_GUID, req, be64_to_cpu(run->dev.ib_device->node_guid));
	IBA_SET(CM_REQ_LOCAL_QPN, req, conn->active_qpn);
	IBA_SET(CM_REQ_REMOTE_CM_RESPONSE_TIMEOUT, req, run->args.timeout);
	IBA_SET(CM_REQ_LOCAL_CM_RESPONSE_TIMEOUT, req, run->args.timeout);
	IBA_SET(CM_REQ_PARTITION_KEY, req, 0xffff);
	IBA_SET(CM_REQ_PATH_PACKET_PAYLOAD_MTU, req, IB_MTU_1024);
	IBA_SET(CM_REQ_PRIMARY_LOCAL_PORT_LID, req, 0xffff);
	IBA_SET(CM_REQ_PRIMARY_REMOTE_PORT_LID, req, 0xffff);
	*IBA_GET_MEM_PTR(CM_REQ_PRIMARY_LOCAL_PORT_GID, req) = run->path.sgid;
	*IBA_GET_MEM_PTR(CM_REQ_PRIMARY_REMOTE_PORT_GID, req) = run->path.dgid;
	IBA_SET(CM_REQ_PRIMARY_HOP_LIMIT, req, 64);
	IBA_SET(CM_REQ_PRIMARY_PACKET_RATE, req, IB_RATE_10_GBPS);
}

static int send_one(struct flood *flood, const struct bench_conn *conn)
{
	struct ib_mad_send_buf *buf;
	int ret;

	if (down_timeout(&flood->room, msecs_to_jiffies(BENCH_STALL_MS)))
		return -ETIMEDOUT;
	buf = ib_create_send_mad(flood->agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
				 GFP_KERNEL, IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf)) {
		up(&flood->room);
		return PTR_ERR(buf);
	}
	duplicate(conn, buf->mad);
	buf->ah = flood->ah;
	ret = ib_post_send_mad(buf, NULL);
	if (ret) {
		ib_free_send_mad(buf);
		up(&flood->room);
	}
	return ret;
}

/* The one connection whose REQ is repeated; what comes after the flood is made beside it. */
int bench_flood(const struct bench_args *args)
{
	struct bench_args one = *args;
	struct bench_run *run;
	struct flood flood;
	unsigned int i;
	u64 start;
	int ret;

	one.count = 1;
	run = bench_run_new(&one, true);
	if (IS_ERR(run))
		return PTR_ERR(run);
	ret = bench_run_connect(run);
	if (ret)
		goto free;
	ret = flood_open(&flood, run);
	if (ret)
		goto free;
	start = ktime_get_ns();
	for (i = 0; !ret && i < args->count; i++)
		ret = send_one(&flood, &run->conns[0]);
	bench_print("elapsed %llu", ktime_get_ns() - start);
	flood_close(&flood);
free:
	bench_run_free(run);
	return ret;
}
