// SPDX-License-Identifier: GPL-2.0
/*
 * The message counters of a port: /sys/class/infiniband/<device>/ports/<port>/cm_<group>/<message>.
 */
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <rdma/ib_sysfs.h>

#include "ib_cm_core.h"
#include "ib_cm_helpers.h"

static const char *const group_names[IB_CM_COUNTER_GROUPS] = {
	"cm_tx_msgs",
	"cm_tx_retries",
	"cm_rx_msgs",
	"cm_rx_duplicates",
};

/* In the order of the messages' attribute IDs. */
static const char *const message_names[IB_CM_COUNTERS] = {
	"req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep", "lap", "apr",
};

struct counter {
	struct ib_port_attribute attr;
	const long *value;
};

struct ib_cm_port_counters {
	struct ib_device *device;
	u32 port;
	struct counter counters[IB_CM_COUNTER_GROUPS][IB_CM_COUNTERS];
	struct attribute *attrs[IB_CM_COUNTER_GROUPS][IB_CM_COUNTERS + 1];
	struct attribute_group groups[IB_CM_COUNTER_GROUPS];
	const struct attribute_group *group_list[IB_CM_COUNTER_GROUPS + 1];
};

static ssize_t show_counter(struct ib_device *device, u32 port, struct ib_port_attribute *attr,
			    char *buf)
{
	struct counter *counter = container_of(attr, struct counter, attr);

	return sysfs_emit(buf, "%ld\n", READ_ONCE(*counter->value));
}

static void init_group(struct ib_cm_port_counters *port, unsigned int group,
		       const long values[IB_CM_COUNTERS])
{
	unsigned int i;

	for (i = 0; i < IB_CM_COUNTERS; i++) {
		struct counter *counter = &port->counters[group][i];

		sysfs_attr_init(&counter->attr.attr);
		counter->attr.attr.name = message_names[i];
		counter->attr.attr.mode = 0444;
		counter->attr.show = show_counter;
		counter->value = &values[i];
		port->attrs[group][i] = &counter->attr.attr;
	}
	port->groups[group].name = group_names[group];
	port->groups[group].attrs = port->attrs[group];
	port->group_list[group] = &port->groups[group];
}

struct ib_cm_port_counters *
ib_cm_helper_register_counters(struct ib_device *device, u32 port_num,
			       const long values[IB_CM_COUNTER_GROUPS][IB_CM_COUNTERS])
{
	struct ib_cm_port_counters *port = kzalloc(sizeof(*port), GFP_KERNEL);
	unsigned int group;
	int err;

	if (!port)
		return ERR_PTR(-ENOMEM);
	port->device = device;
	port->port = port_num;
	for (group = 0; group < IB_CM_COUNTER_GROUPS; group++)
		init_group(port, group, values[group]);

	err = ib_port_register_client_groups(device, port_num, port->group_list);
	if (err) {
		kfree(port);
		return ERR_PTR(err);
	}
	return port;
}

/* Returns when no reader is left. */
void ib_cm_helper_unregister_counters(struct ib_cm_port_counters *port)
{
	ib_port_unregister_client_groups(port->device, port->port, port->group_list);
	kfree(port);
}
