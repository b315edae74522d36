// SPDX-License-Identifier: GPL-2.0
/*
 * The subnet management agent: what a subnet manager asks and sets on QP0 (IBA 14.2.5).
 */

#include <rdma/ib_smi.h>

#include "ib_loop.h"

#define SMP_UNSUPPORTED_VERSION		0x0004
#define SMP_UNSUPPORTED_METHOD_ATTR	0x000c
#define SMP_INVALID_VALUE		0x001c

#define PKEYS_PER_BLOCK			(IB_SMP_DATA_SIZE / sizeof(__be16))
/* 4.096 us * 2^16: how long an answer may take. */
#define RESPONSE_TIME			16
#define LINK_WIDTH_1X_OR_4X		3
#define LINK_WIDTH_4X			2
#define LINK_SPEED_ALL			7
#define LINK_SPEED_QDR			4
#define LINK_DOWN_DEFAULT_POLLING	2

static void get_node_info(struct loop_dev *dev, int port_num, struct ib_smp *smp)
{
	struct ib_node_info *info = (void *)smp->data;

	info->base_version = 1;
	info->class_version = 1;
	info->node_type = RDMA_NODE_IB_CA;
	info->num_ports = LOOP_PORTS;
	info->sys_guid = dev->node_guid;
	info->node_guid = dev->node_guid;
	info->port_guid = loop_port_guid(dev, port_num);
	info->partition_cap = cpu_to_be16(LOOP_PKEYS);
	info->local_port_num = port_num;
}

static void get_port_info(struct loop_dev *dev, int port_num, int arrived_on, struct ib_smp *smp)
{
	struct loop_port *port = loop_port(dev, port_num);
	struct ib_port_info *info = (void *)smp->data;
	u8 phys = dev->link_up ? LOOP_PHYS_LINK_UP : LOOP_PHYS_POLLING;

	info->mkey = port->rvp.mkey;
	info->gid_prefix = port->rvp.gid_prefix;
	info->lid = cpu_to_be16(port->lid);
	info->sm_lid = cpu_to_be16(port->rvp.sm_lid);
	info->cap_mask = cpu_to_be32(port->rvp.port_cap_flags);
	info->local_port_num = arrived_on;
	info->link_width_enabled = LINK_WIDTH_1X_OR_4X;
	info->link_width_supported = LINK_WIDTH_1X_OR_4X;
	info->link_width_active = LINK_WIDTH_4X;
	info->linkspeed_portstate = LINK_SPEED_ALL << 4 | port->state;
	info->portphysstate_linkdown = phys << 4 | LINK_DOWN_DEFAULT_POLLING;
	info->mkeyprot_resv_lmc = port->lmc;
	info->linkspeedactive_enabled = LINK_SPEED_QDR << 4 | LINK_SPEED_ALL;
	info->neighbormtu_mastersmsl = LOOP_MTU << 4 | port->rvp.sm_sl;
	info->vlcap_inittype = 1 << 4;
	info->inittypereply_mtucap = LOOP_MTU;
	info->operationalvl_pei_peo_fpi_fpo = 1 << 4;
	info->guid_cap = 1;
	info->clientrereg_resv_subnetto = port->rvp.subnet_timeout;
	info->resv_resptimevalue = RESPONSE_TIME;
}

/* The state that a subnet manager asked for; false when it cannot be entered from here. */
static bool set_port_state(struct loop_dev *dev, int port_num, u8 wanted)
{
	struct loop_port *port = loop_port(dev, port_num);
	u8 old = port->state;

	switch (wanted) {
	case IB_PORT_NOP:
		return true;
	case IB_PORT_DOWN:
		/* The cable is still there: the link trains again. */
		WRITE_ONCE(port->state, dev->link_up ? IB_PORT_INIT : IB_PORT_DOWN);
		break;
	case IB_PORT_ARMED:
		if (old != IB_PORT_INIT && old != IB_PORT_ARMED)
			return false;
		WRITE_ONCE(port->state, IB_PORT_ARMED);
		break;
	case IB_PORT_ACTIVE:
		if (old != IB_PORT_ARMED && old != IB_PORT_ACTIVE)
			return false;
		WRITE_ONCE(port->state, IB_PORT_ACTIVE);
		break;
	default:
		return false;
	}
	if (port->state == IB_PORT_ACTIVE && old != IB_PORT_ACTIVE)
		loop_event(dev, port_num, IB_EVENT_PORT_ACTIVE);
	if (port->state != IB_PORT_ACTIVE && old == IB_PORT_ACTIVE)
		loop_event(dev, port_num, IB_EVENT_PORT_ERR);
	return true;
}

static void set_port_info(struct loop_dev *dev, int port_num, int arrived_on, struct ib_smp *smp)
{
	struct loop_port *port = loop_port(dev, port_num);
	struct rvt_ibport *rvp = &port->rvp;
	/* Setting and answering share the buffer. */
	struct ib_port_info info = *(struct ib_port_info *)smp->data;
	u16 lid = be16_to_cpu(info.lid), sm_lid = be16_to_cpu(info.sm_lid);
	u8 lmc = info.mkeyprot_resv_lmc & 7, sm_sl = info.neighbormtu_mastersmsl & 15;
	bool gid = rvp->gid_prefix != info.gid_prefix;
	bool sm = rvp->sm_lid != sm_lid || rvp->sm_sl != sm_sl;
	bool own_lid = port->lid != lid || port->lmc != lmc;

	rvp->mkey = info.mkey;
	rvp->gid_prefix = info.gid_prefix;
	rvp->sm_lid = sm_lid;
	rvp->sm_sl = sm_sl;
	rvp->subnet_timeout = info.clientrereg_resv_subnetto & 0x1f;
	WRITE_ONCE(port->lid, lid);
	port->lmc = lmc;
	/* The consumers' caches follow these. */
	if (gid)
		loop_event(dev, port_num, IB_EVENT_GID_CHANGE);
	if (sm)
		loop_event(dev, port_num, IB_EVENT_SM_CHANGE);
	if (own_lid)
		loop_event(dev, port_num, IB_EVENT_LID_CHANGE);
	if (!set_port_state(dev, port_num, info.linkspeed_portstate & 15))
		smp->status |= cpu_to_be16(SMP_INVALID_VALUE);
	if (info.clientrereg_resv_subnetto & 0x80)
		loop_event(dev, port_num, IB_EVENT_CLIENT_REREGISTER);
	memset(smp->data, 0, sizeof(smp->data));
	get_port_info(dev, port_num, arrived_on, smp);
}

static void get_pkeys(struct loop_port *port, struct ib_smp *smp)
{
	__be16 *keys = (__be16 *)smp->data;
	int i;

	for (i = 0; i < PKEYS_PER_BLOCK; i++)
		keys[i] = i < LOOP_PKEYS ? cpu_to_be16(port->pkeys[i]) : 0;
}

static void set_pkeys(struct loop_dev *dev, int port_num, struct ib_smp *smp)
{
	struct loop_port *port = loop_port(dev, port_num);
	__be16 *keys = (__be16 *)smp->data;
	bool changed = false;
	int i;

	for (i = 0; i < LOOP_PKEYS; i++) {
		changed |= port->pkeys[i] != be16_to_cpu(keys[i]);
		WRITE_ONCE(port->pkeys[i], be16_to_cpu(keys[i]));
	}
	if (changed)
		loop_event(dev, port_num, IB_EVENT_PKEY_CHANGE);
	get_pkeys(port, smp);
}

/* For PortInfo the modifier names a port, 0 that on which the question arrived. */
static int port_of(int arrived_on, const struct ib_smp *smp)
{
	u32 modifier = be32_to_cpu(smp->attr_mod);

	if (!modifier)
		return arrived_on;
	return modifier <= LOOP_PORTS ? modifier : 0;
}

/* get_or_set - the answer to a question, in the place of the question */
static void get_or_set(struct loop_dev *dev, int port_num, struct ib_smp *smp, bool set)
{
	int named = port_of(port_num, smp);

	if (!set)
		memset(smp->data, 0, sizeof(smp->data));
	if (smp->attr_id == IB_SMP_ATTR_NODE_INFO && !set)
		get_node_info(dev, port_num, smp);
	else if (smp->attr_id == IB_SMP_ATTR_NODE_DESC && !set)
		memcpy(smp->data, dev->rdi.ibdev.node_desc, sizeof(smp->data));
	else if (smp->attr_id == IB_SMP_ATTR_PORT_INFO && named && set)
		set_port_info(dev, named, port_num, smp);
	else if (smp->attr_id == IB_SMP_ATTR_PORT_INFO && named)
		get_port_info(dev, named, port_num, smp);
	else if (smp->attr_id == IB_SMP_ATTR_PKEY_TABLE && !smp->attr_mod && set)
		set_pkeys(dev, port_num, smp);
	else if (smp->attr_id == IB_SMP_ATTR_PKEY_TABLE && !smp->attr_mod)
		get_pkeys(loop_port(dev, port_num), smp);
	else
		smp->status |= cpu_to_be16(SMP_UNSUPPORTED_METHOD_ATTR);
}

static int answer(struct ib_smp *smp)
{
	smp->method = IB_MGMT_METHOD_GET_RESP;
	if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		smp->status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

static int process_smp(struct loop_dev *dev, int port_num, struct ib_smp *smp)
{
	if (smp->class_version != 1) {
		smp->status |= cpu_to_be16(SMP_UNSUPPORTED_VERSION);
		return answer(smp);
	}
	switch (smp->method) {
	case IB_MGMT_METHOD_GET:
	case IB_MGMT_METHOD_SET:
		/* A subnet manager on this port answers these itself. */
		if (smp->attr_id == IB_SMP_ATTR_SM_INFO &&
		    loop_port(dev, port_num)->rvp.port_cap_flags & IB_PORT_SM)
			return IB_MAD_RESULT_SUCCESS;
		get_or_set(dev, port_num, smp, smp->method == IB_MGMT_METHOD_SET);
		return answer(smp);
	case IB_MGMT_METHOD_TRAP_REPRESS:
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	default:
		/* Answers, traps and reports are for agents above. */
		return IB_MAD_RESULT_SUCCESS;
	}
}

int loop_process_mad(struct ib_device *ibdev, int mad_flags, u32 port_num,
		     const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		     const struct ib_mad *in, struct ib_mad *out, size_t *out_size,
		     u16 *out_pkey_index)
{
	switch (in->mad_hdr.mgmt_class) {
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
		*out = *in;
		return process_smp(ibdev_to_loop(ibdev), port_num, (struct ib_smp *)out);
	default:
		return IB_MAD_RESULT_SUCCESS;
	}
}
