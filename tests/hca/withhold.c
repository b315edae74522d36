// SPDX-License-Identifier: GPL-2.0
/*
 * An adapter that owes completions: withhold.ko stands between the MAD layer and the driver of
 * one device, and keeps back the send completions of DREQs. Parameters:
 *
 *	netdev		network interface of the device
 *	left		how many more are kept back; can be written at any time
 *	withheld	how many are kept back now
 *	release		written: all of them are delivered
 *
 * The messages themselves go out. Unloading delivers what was kept back.
 */

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#define ATTR_DREQ	0x0015

struct late {
	struct list_head list;
	struct ib_cq *cq;
	struct ib_wc wc;
};

typedef int (*post_send_fn)(struct ib_qp *qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad);

static DEFINE_SPINLOCK(lock);
static LIST_HEAD(kept);
static struct ib_device *dev;
static post_send_fn driver_post_send;
static void (*mad_done)(struct ib_cq *cq, struct ib_wc *wc);

static char *netdev = "v0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the device");

static int left;
module_param(left, int, 0644);
MODULE_PARM_DESC(left, "how many more completions are kept back");

static int withheld;
module_param(withheld, int, 0444);
MODULE_PARM_DESC(withheld, "how many completions are kept back");

static void late_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct late *late = kmalloc(sizeof(*late), GFP_ATOMIC);
	unsigned long flags;

	if (!late) {
		mad_done(cq, wc);
		return;
	}
	late->cq = cq;
	late->wc = *wc;
	spin_lock_irqsave(&lock, flags);
	list_add_tail(&late->list, &kept);
	withheld++;
	spin_unlock_irqrestore(&lock, flags);
}

static struct late *take(void)
{
	struct late *late;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	late = list_first_entry_or_null(&kept, struct late, list);
	if (late) {
		list_del(&late->list);
		withheld--;
	}
	spin_unlock_irqrestore(&lock, flags);
	return late;
}

static int deliver(const char *value, const struct kernel_param *param)
{
	struct late *late;

	while ((late = take())) {
		late->wc.wr_cqe->done = mad_done;
		mad_done(late->cq, &late->wc);
		kfree(late);
	}
	return 0;
}

static const struct kernel_param_ops release_ops = { .set = deliver };
module_param_cb(release, &release_ops, NULL, 0200);
MODULE_PARM_DESC(release, "written: they are delivered");

/* The header of a MAD is what its first element points to; soft-RoCE has no DMA addresses. */
static bool is_dreq(const struct ib_qp *qp, const struct ib_send_wr *wr)
{
	const struct ib_mad_hdr *mad;

	if (qp->qp_type != IB_QPT_GSI || !wr->num_sge ||
	    wr->sg_list[0].length < sizeof(*mad))
		return false;
	mad = (const void *)(uintptr_t)wr->sg_list[0].addr;
	return mad->mgmt_class == IB_MGMT_CLASS_CM && be16_to_cpu(mad->attr_id) == ATTR_DREQ;
}

static int post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	unsigned long flags;

	if (is_dreq(qp, wr)) {
		spin_lock_irqsave(&lock, flags);
		if (left > 0) {
			left--;
			mad_done = wr->wr_cqe->done;
			wr->wr_cqe->done = late_done;
		}
		spin_unlock_irqrestore(&lock, flags);
	}
	return driver_post_send(qp, wr, bad);
}

static int __init withhold_init(void)
{
	struct net_device *interface = dev_get_by_name(&init_net, netdev);

	if (!interface)
		return -ENODEV;
	dev = ib_device_get_by_netdev(interface, RDMA_DRIVER_UNKNOWN);
	dev_put(interface);
	if (!dev)
		return -ENODEV;
	if (!ib_uses_virt_dma(dev)) {
		ib_device_put(dev);
		return -EOPNOTSUPP;
	}
	driver_post_send = dev->ops.post_send;
	WRITE_ONCE(dev->ops.post_send, post_send);
	return 0;
}

static void __exit withhold_exit(void)
{
	left = 0;
	WRITE_ONCE(dev->ops.post_send, driver_post_send);
	/* Nobody may be left in the text of this module. */
	synchronize_rcu_tasks();
	deliver(NULL, NULL);
	ib_device_put(dev);
}

module_init(withhold_init);
module_exit(withhold_exit);
MODULE_DESCRIPTION("test: send completions that an adapter owes");
MODULE_LICENSE("GPL");
