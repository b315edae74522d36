// SPDX-License-Identifier: GPL-2.0
/*
 * LAP messages, which ib_cm takes but has no function to send.
 */

#include <linux/module.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <rdma/ibta_vol1_c12.h>

#include "apm.h"

#define LAP_ATTR_ID		cpu_to_be16(0x0019)
#define CM_CLASS_VERSION	2
/* 4.096 us * 2^18 */
#define RESPONSE_TIMEOUT	18

static void sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

static void fill(struct cm_lap_msg *lap, struct ib_cm_id *from, struct ib_cm_id *to,
		 u32 remote_qpn, struct sa_path_rec *path)
{
	lap->hdr.base_version = IB_MGMT_BASE_VERSION;
	lap->hdr.mgmt_class = IB_MGMT_CLASS_CM;
	lap->hdr.class_version = CM_CLASS_VERSION;
	lap->hdr.method = IB_MGMT_METHOD_SEND;
	lap->hdr.attr_id = LAP_ATTR_ID;
	IBA_SET(CM_LAP_LOCAL_COMM_ID, lap, be32_to_cpu(from->local_id));
	IBA_SET(CM_LAP_REMOTE_COMM_ID, lap, be32_to_cpu(to->local_id));
	IBA_SET(CM_LAP_REMOTE_QPN_EECN, lap, remote_qpn);
	IBA_SET(CM_LAP_REMOTE_CM_RESPONSE_TIMEOUT, lap, RESPONSE_TIMEOUT);
	IBA_SET(CM_LAP_ALTERNATE_LOCAL_PORT_LID, lap, be32_to_cpu(sa_path_get_slid(path)));
	IBA_SET(CM_LAP_ALTERNATE_REMOTE_PORT_LID, lap, be32_to_cpu(sa_path_get_dlid(path)));
	*IBA_GET_MEM_PTR(CM_LAP_ALTERNATE_LOCAL_PORT_GID, lap) = path->sgid;
	*IBA_GET_MEM_PTR(CM_LAP_ALTERNATE_REMOTE_PORT_GID, lap) = path->dgid;
	IBA_SET(CM_LAP_ALTERNATE_HOP_LIMIT, lap, path->hop_limit);
	IBA_SET(CM_LAP_ALTERNATE_PACKET_RATE, lap, path->rate);
	IBA_SET(CM_LAP_ALTERNATE_SUBNET_LOCAL, lap, 1);
	IBA_SET(CM_LAP_ALTERNATE_LOCAL_ACK_TIMEOUT, lap, path->packet_life_time + 1);
}

static int post(struct ib_mad_agent *agent, struct ib_cm_id *from, struct ib_cm_id *to,
		u32 remote_qpn, struct sa_path_rec *primary, struct sa_path_rec *alternate)
{
	struct ib_mad_send_buf *buffer;
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	int ret;

	ret = ib_init_ah_attr_from_path(agent->device, agent->port_num, primary, &attr, NULL);
	if (ret)
		return ret;
	ah = rdma_create_ah(agent->qp->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&attr);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	buffer = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, GFP_KERNEL,
				    IB_MGMT_BASE_VERSION);
	if (IS_ERR(buffer)) {
		rdma_destroy_ah(ah, 0);
		return PTR_ERR(buffer);
	}
	buffer->ah = ah;
	fill(buffer->mad, from, to, remote_qpn, alternate);
	ret = ib_post_send_mad(buffer, NULL);
	if (ret) {
		rdma_destroy_ah(ah, 0);
		ib_free_send_mad(buffer);
	}
	return ret;
}

/* apm_send_lap - from port 1, by the primary path; returns when it is gone */
int apm_send_lap(struct ib_cm_id *from, struct ib_cm_id *to, u32 remote_qpn,
		 struct sa_path_rec *primary, struct sa_path_rec *alternate)
{
	struct ib_mad_agent *agent = ib_register_mad_agent(from->device, 1, IB_QPT_GSI, NULL, 0,
							   sent, NULL, NULL, 0);
	int ret;

	if (IS_ERR(agent))
		return PTR_ERR(agent);
	ret = post(agent, from, to, remote_qpn, primary, alternate);
	ib_unregister_mad_agent(agent);
	return ret;
}
