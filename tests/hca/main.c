// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter: what it says of itself, its ports, its registration with rdmavt.
 */

#include <linux/module.h>

#include "ib_loop.h"

MODULE_DESCRIPTION("InfiniBand adapter in software, with two ports cabled to each other");
MODULE_LICENSE("GPL");

/*
 * The ports have the next two GUIDs. Bit 57 marks it as assigned locally; 02 in the highest byte
 * would make it a service ID that consumers may not listen on, and SRP targets listen on it.
 */
static ulong guid = 0x0a00000000001000UL;
module_param(guid, ulong, 0444);
MODULE_PARM_DESC(guid, "GUID of the adapter");

/* What a port has for a subnet prefix until a subnet manager says otherwise: fe80::/64. */
#define LINK_LOCAL_PREFIX	0xfe80000000000000ULL

static struct loop_dev *the_dev;

__be64 loop_port_guid(struct loop_dev *dev, int port_num)
{
	return cpu_to_be64(be64_to_cpu(dev->node_guid) + port_num);
}

/* loop_port_carries - whether the port passes packets other than those of QP0 */
bool loop_port_carries(struct loop_dev *dev, int port_num)
{
	u8 state = READ_ONCE(loop_port(dev, port_num)->state);

	return state == IB_PORT_ACTIVE || state == IB_PORT_ARMED;
}

void loop_event(struct loop_dev *dev, int port_num, enum ib_event_type event)
{
	struct ib_event record = {
		.device = &dev->rdi.ibdev,
		.element.port_num = port_num,
		.event = event,
	};

	ib_dispatch_event(&record);
}

/* loop_set_link - plugs or pulls the cable; a subnet manager has to bring the ports up again */
void loop_set_link(struct loop_dev *dev, bool up)
{
	int port_num;

	if (dev->link_up == up)
		return;
	WRITE_ONCE(dev->link_up, up);
	for (port_num = 1; port_num <= LOOP_PORTS; port_num++) {
		struct loop_port *port = loop_port(dev, port_num);
		bool was_active = port->state == IB_PORT_ACTIVE;

		WRITE_ONCE(port->state, up ? IB_PORT_INIT : IB_PORT_DOWN);
		if (was_active)
			loop_event(dev, port_num, IB_EVENT_PORT_ERR);
	}
}

static struct pci_dev *loop_pci_dev(struct rvt_dev_info *rdi)
{
	return &to_loop(rdi)->pci;
}

static int loop_query_port(struct rvt_dev_info *rdi, u32 port_num, struct ib_port_attr *attr)
{
	struct loop_dev *dev = to_loop(rdi);
	struct loop_port *port = loop_port(dev, port_num);

	attr->lid = port->lid;
	attr->lmc = port->lmc;
	attr->state = port->state;
	attr->phys_state = dev->link_up ? LOOP_PHYS_LINK_UP : LOOP_PHYS_POLLING;
	attr->gid_tbl_len = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_QDR;
	attr->max_mtu = LOOP_MTU;
	attr->active_mtu = LOOP_MTU;
	attr->max_vl_num = 1;
	return 0;
}

static int loop_guid(struct rvt_dev_info *rdi, struct rvt_ibport *rvp, int index, __be64 *guid)
{
	struct loop_port *port = container_of(rvp, struct loop_port, rvp);
	struct loop_dev *dev = to_loop(rdi);

	if (index)
		return -EINVAL;
	*guid = loop_port_guid(dev, port - dev->ports + 1);
	return 0;
}

static void loop_cap_mask_changed(struct rvt_dev_info *rdi, u32 port_num)
{
	/* A trap to the subnet manager would be due; it sweeps often enough. */
}

static int loop_shut_down_port(struct rvt_dev_info *rdi, u32 port_num)
{
	return -EOPNOTSUPP;
}

static int loop_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc, IB_DEVICE_NODE_DESC_MAX);
	return 0;
}

/* rdmavt refuses a driver without such a list. */
static const struct attribute_group *loop_no_groups[] = { NULL };

static const struct ib_device_ops loop_ops = {
	.owner = THIS_MODULE,
	/* libibverbs finds its provider by this: that of hfi1 speaks rdmavt's own interface. */
	.driver_id = RDMA_DRIVER_HFI1,
	.process_mad = loop_process_mad,
	.port_groups = loop_no_groups,
	.modify_device = loop_modify_device,
};

static void loop_set_limits(struct rvt_driver_params *dparms)
{
	struct ib_device_attr *props = &dparms->props;

	dparms->qp_table_size = 256;
	dparms->lkey_table_size = 14;	/* bits */
	dparms->nports = LOOP_PORTS;
	dparms->npkeys = LOOP_PKEYS;
	dparms->qpn_start = 1;		/* QPNs 2, 3, 4, ... */
	dparms->qpn_inc = 1;
	dparms->qpn_res_start = 0;
	dparms->qpn_res_end = 1;
	dparms->psn_mask = 0xffffff;
	dparms->psn_modify_mask = 0xffffff;
	dparms->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	dparms->max_mad_size = IB_MGMT_MAD_SIZE;
	dparms->max_rdma_atomic = 16;

	props->device_cap_flags = IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_RC_RNR_NAK_GEN |
		IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_SRQ_RESIZE | IB_DEVICE_AUTO_PATH_MIG |
		IB_DEVICE_MEM_MGT_EXTENSIONS;
	props->page_size_cap = PAGE_SIZE;
	props->max_mr_size = U64_MAX;
	props->max_qp = 4096;
	props->max_qp_wr = 8192;
	props->max_send_sge = 32;
	props->max_recv_sge = 32;
	props->max_sge_rd = 32;
	props->max_cq = 8192;
	props->max_cqe = 65535;
	props->max_pd = 4096;
	props->max_ah = 65536;
	props->max_srq = 1024;
	props->max_srq_wr = 8192;
	props->max_srq_sge = 32;
	props->max_qp_rd_atom = dparms->max_rdma_atomic;
	props->max_qp_init_rd_atom = dparms->max_rdma_atomic;
	props->max_res_rd_atom = dparms->max_rdma_atomic * props->max_qp;
	props->atomic_cap = IB_ATOMIC_NONE;
	props->max_pkeys = LOOP_PKEYS;
	props->max_mcast_grp = 256;
	props->max_mcast_qp_attach = 64;
	props->max_total_mcast_qp_attach = 256 * 64;
	props->max_fast_reg_page_list_len = 512;
	props->local_ca_ack_delay = 15;
}

static void loop_init_port(struct loop_dev *dev, int port_num)
{
	struct loop_port *port = loop_port(dev, port_num);
	struct rvt_ibport *rvp = &port->rvp;

	spin_lock_init(&rvp->lock);
	rvp->gid_prefix = cpu_to_be64(LINK_LOCAL_PREFIX);
	rvp->port_cap_flags = IB_PORT_SYS_IMAGE_GUID_SUP | IB_PORT_CLIENT_REG_SUP;
	port->state = IB_PORT_INIT;
	port->pkeys[0] = IB_DEFAULT_PKEY_FULL;
	rvt_init_port(&dev->rdi, rvp, port_num - 1, port->pkeys);
}

static void loop_set_device_hooks(struct rvt_driver_provided *f)
{
	f->get_pci_dev = loop_pci_dev;
	f->query_port_state = loop_query_port;
	f->get_guid_be = loop_guid;
	f->cap_mask_chg = loop_cap_mask_changed;
	f->shut_down_port = loop_shut_down_port;
}

static int __init ib_loop_init(void)
{
	struct rvt_dev_info *rdi = rvt_alloc_device(sizeof(struct loop_dev), LOOP_PORTS);
	struct loop_dev *dev;
	int port_num, ret;

	if (!rdi)
		return -ENOMEM;
	dev = to_loop(rdi);
	dev->node_guid = cpu_to_be64(guid);
	dev->pci.dev.init_name = "ib_loop";
	dev->link_up = true;
	dev->wq = alloc_workqueue("ib_loop", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	if (!dev->wq) {
		ret = -ENOMEM;
		goto free_device;
	}
	loop_set_limits(&rdi->dparms);
	rdi->dparms.props.sys_image_guid = dev->node_guid;
	rdi->post_parms = loop_post_parms;
	rdi->wc_opcode = loop_wc_opcode;
	loop_set_device_hooks(&rdi->driver_f);
	loop_set_qp_hooks(&rdi->driver_f);
	for (port_num = 1; port_num <= LOOP_PORTS; port_num++)
		loop_init_port(dev, port_num);
	rdi->ibdev.node_guid = dev->node_guid;
	rdi->ibdev.phys_port_cnt = LOOP_PORTS;
	strscpy(rdi->ibdev.node_desc, "ib_loop", sizeof(rdi->ibdev.node_desc));
	ib_set_device_ops(&rdi->ibdev, &loop_ops);
	dev_set_name(&rdi->ibdev.dev, "ibloop0");
	ret = loop_ipoib_init(dev);
	if (ret)
		goto free_queue;
	ret = rvt_register_device(rdi);
	if (ret)
		goto no_ipoib;
	loop_control_init(dev);
	the_dev = dev;
	return 0;

no_ipoib:
	loop_ipoib_exit();
free_queue:
	destroy_workqueue(dev->wq);
free_device:
	rvt_dealloc_device(rdi);
	return ret;
}
module_init(ib_loop_init);

static void __exit ib_loop_exit(void)
{
	struct loop_dev *dev = the_dev;

	loop_control_exit();
	loop_ud_exit();
	rvt_unregister_device(&dev->rdi);
	loop_ipoib_exit();
	destroy_workqueue(dev->wq);
	rvt_dealloc_device(&dev->rdi);
}
module_exit(ib_loop_exit);
