// SPDX-License-Identifier: GPL-2.0
/*
 * LAP and APR messages, which ib_cm takes but has no functions to send.
 */

#include <linux/module.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <rdma/ibta_vol1_c12.h>

#include "apm.h"

#define LAP_ATTR_ID		cpu_to_be16(0x0019)
#define APR_ATTR_ID		cpu_to_be16(0x001a)
#define CM_CLASS_VERSION	2
/* 4.096 us * 2^18 */
#define RESPONSE_TIMEOUT	18

static void sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

static void fill_header(struct ib_mad_hdr *hdr, __be16 attr_id)
{
	hdr->base_version = IB_MGMT_BASE_VERSION;
	hdr->mgmt_class = IB_MGMT_CLASS_CM;
	hdr->class_version = CM_CLASS_VERSION;
	hdr->method = IB_MGMT_METHOD_SEND;
	hdr->attr_id = attr_id;
}

static void fill_lap(struct cm_lap_msg *lap, struct ib_cm_id *from, struct ib_cm_id *to,
		     u32 remote_qpn, struct sa_path_rec *path)
{
	fill_header(&lap->hdr, LAP_ATTR_ID);
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

/* prepare - an empty message that goes by the path; an error pointer when there is none */
static struct ib_mad_send_buf *prepare(struct ib_mad_agent *agent, struct sa_path_rec *path)
{
	struct ib_mad_send_buf *buffer;
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	int ret;

	ret = ib_init_ah_attr_from_path(agent->device, agent->port_num, path, &attr, NULL);
	if (ret)
		return ERR_PTR(ret);
	ah = rdma_create_ah(agent->qp->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&attr);
	if (IS_ERR(ah))
		return ERR_CAST(ah);
	buffer = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, GFP_KERNEL,
				    IB_MGMT_BASE_VERSION);
	if (IS_ERR(buffer))
		rdma_destroy_ah(ah, 0);
	else
		buffer->ah = ah;
	return buffer;
}

static int post(struct ib_mad_send_buf *buffer)
{
	int ret = ib_post_send_mad(buffer, NULL);

	if (ret) {
		rdma_destroy_ah(buffer->ah, 0);
		ib_free_send_mad(buffer);
	}
	return ret;
}

static struct ib_mad_agent *agent_of(struct ib_device *ibdev, int port_num)
{
	return ib_register_mad_agent(ibdev, port_num, IB_QPT_GSI, NULL, 0, sent, NULL, NULL, 0);
}

/* apm_send_lap - from port 1, by the primary path; returns when it is gone */
int apm_send_lap(struct ib_cm_id *from, struct ib_cm_id *to, u32 remote_qpn,
		 struct sa_path_rec *primary, struct sa_path_rec *alternate)
{
	struct ib_mad_agent *agent = agent_of(from->device, 1);
	struct ib_mad_send_buf *buffer;
	int ret;

	if (IS_ERR(agent))
		return PTR_ERR(agent);
	buffer = prepare(agent, primary);
	ret = PTR_ERR_OR_ZERO(buffer);
	if (!ret) {
		fill_lap(buffer->mad, from, to, remote_qpn, alternate);
		ret = post(buffer);
	}
	ib_unregister_mad_agent(agent);
	return ret;
}

/* apm_send_apr - from port 2, by that path: its status 0 says that the path is loaded */
int apm_send_apr(struct ib_cm_id *from, struct ib_cm_id *to, struct sa_path_rec *path)
{
	struct ib_mad_agent *agent = agent_of(from->device, 2);
	struct ib_mad_send_buf *buffer;
	struct cm_apr_msg *apr;
	int ret;

	if (IS_ERR(agent))
		return PTR_ERR(agent);
	buffer = prepare(agent, path);
	ret = PTR_ERR_OR_ZERO(buffer);
	if (!ret) {
		apr = buffer->mad;
		fill_header(&apr->hdr, APR_ATTR_ID);
		IBA_SET(CM_APR_LOCAL_COMM_ID, apr, be32_to_cpu(from->local_id));
		IBA_SET(CM_APR_REMOTE_COMM_ID, apr, be32_to_cpu(to->local_id));
		ret = post(buffer);
	}
	ib_unregister_mad_agent(agent);
	return ret;
}
