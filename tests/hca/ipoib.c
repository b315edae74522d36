// SPDX-License-Identifier: GPL-2.0
/*
 * A wait that IPoIB forgets.
 *
 * An interface that goes leaves the QPs of its outgoing connections to its work queue, and then
 * destroys the completion queues of these QPs without a look at whether they still have users.
 * The destruction of a QP takes a while on rdmavt, which waits for an RCU grace period, and so it
 * comes too late once in a while: the kernel warns ("Destroy of kernel CQ shouldn't fail") and the
 * queue is never destroyed. Here each interface waits, just before it destroys them, until its
 * completion queues are used by its own QP only.
 */

#include <linux/delay.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>

#include "ib_loop.h"

/* IPoIB waits for 5 s for sends that do not complete, for each connection. */
#define PATIENCE	(60 * HZ)

/* The last three of the first four bytes of an address (RFC 4391). */
#define QPN_OF(address)	((address)[1] << 16 | (address)[2] << 8 | (address)[3])

static struct loop_dev *the_dev;

/* The completion queues of the interface of each port, which it has as long as it exists. */
static struct {
	const struct ib_cq *send, *recv;
} queues[LOOP_PORTS];

/* An interface that is closed has reset its own QP, which then is not found any more. */
static void note_queues(const struct net_device *netdev)
{
	struct rvt_ibport *rvp = &loop_port(the_dev, netdev->dev_port + 1)->rvp;
	struct rvt_qp *qp;

	rcu_read_lock();
	qp = rvt_lookup_qpn(&the_dev->rdi, rvp, QPN_OF(netdev->dev_addr));
	if (qp && qp->ibqp.qp_type == IB_QPT_UD) {
		queues[netdev->dev_port].send = qp->ibqp.send_cq;
		queues[netdev->dev_port].recv = qp->ibqp.recv_cq;
	}
	rcu_read_unlock();
}

static bool connections_left(const struct net_device *netdev)
{
	const struct ib_cq *send = queues[netdev->dev_port].send;
	const struct ib_cq *recv = queues[netdev->dev_port].recv;

	return send && (atomic_read(&send->usecnt) > 1 || atomic_read(&recv->usecnt) > 1);
}

static int netdev_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(data);
	unsigned long until = jiffies + PATIENCE;

	if (netdev->type != ARPHRD_INFINIBAND || netdev->dev_port >= LOOP_PORTS)
		return NOTIFY_DONE;
	if (event == NETDEV_UP || event == NETDEV_GOING_DOWN) {
		note_queues(netdev);
	} else if (event == NETDEV_UNREGISTER) {
		/* It is closed by now, and all its connections are on their way out. */
		while (connections_left(netdev) && time_before(jiffies, until))
			usleep_range(1000, 2000);
		/* Else it only moves to another namespace. */
		if (netdev->reg_state == NETREG_UNREGISTERING)
			queues[netdev->dev_port].send = NULL;
	}
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = netdev_event };

int loop_ipoib_init(struct loop_dev *dev)
{
	the_dev = dev;
	return register_netdevice_notifier(&notifier);
}

void loop_ipoib_exit(void)
{
	unregister_netdevice_notifier(&notifier);
}
