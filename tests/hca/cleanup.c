// SPDX-License-Identifier: GPL-2.0
/*
 * A driver with a ufile_hw_cleanup of its own: cleanup.ko gives one to a device that has none, or
 * stands before the one that it has, and calls it. Parameters:
 *
 *	netdev		network interface of the device
 *	calls		how often it was called
 *	in_place	whether it is what uverbs calls
 */

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>

#include <rdma/ib_verbs.h>

typedef void (*cleanup_fn)(struct ib_uverbs_file *file);

static struct ib_device *dev;
static cleanup_fn before;

static char *netdev = "v0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the device");

static int calls;
module_param(calls, int, 0444);
MODULE_PARM_DESC(calls, "how often the operation was called");

/* One file is torn down at a time in the scenario that reads the count. */
static void cleanup(struct ib_uverbs_file *file)
{
	calls++;
	if (before)
		before(file);
}

static int get_in_place(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%c\n", READ_ONCE(dev->ops.ufile_hw_cleanup) == cleanup ? 'Y' : 'N');
}

static const struct kernel_param_ops in_place_ops = { .get = get_in_place };
module_param_cb(in_place, &in_place_ops, NULL, 0444);
MODULE_PARM_DESC(in_place, "whether it is what uverbs calls");

static int __init cleanup_init(void)
{
	struct net_device *interface = dev_get_by_name(&init_net, netdev);

	if (!interface)
		return -ENODEV;
	dev = ib_device_get_by_netdev(interface, RDMA_DRIVER_UNKNOWN);
	dev_put(interface);
	if (!dev)
		return -ENODEV;
	before = dev->ops.ufile_hw_cleanup;
	WRITE_ONCE(dev->ops.ufile_hw_cleanup, cleanup);
	return 0;
}

static void __exit cleanup_exit(void)
{
	WRITE_ONCE(dev->ops.ufile_hw_cleanup, before);
	/* Nobody may be left in the text of this module; its scenario has no file in teardown. */
	synchronize_rcu_tasks();
	ib_device_put(dev);
}

module_init(cleanup_init);
module_exit(cleanup_exit);
MODULE_DESCRIPTION("test: a device with an operation for the teardown of files");
MODULE_LICENSE("GPL");
