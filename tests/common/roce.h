/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A RoCE device that connects to itself, for the modules that test and time ib_cm. A header, since
 * each of them is built in a folder of its own.
 */
#ifndef TESTS_COMMON_ROCE_H
#define TESTS_COMMON_ROCE_H

#include <linux/etherdevice.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>

struct roce_device {
	struct net_device *netdev;
	struct ib_device *ib_device;
	u32 port;
	union ib_gid gid;
	const struct ib_gid_attr *attr;		/* of gid */
};

/* The GID of an IPv4 address: paths over it need no look-up of a neighbour. */
static inline const struct ib_gid_attr *roce_ipv4_gid(struct ib_device *ib_device, u32 port)
{
	int entries = ib_device->port_data[port].immutable.gid_tbl_len;
	int i;

	for (i = 0; i < entries; i++) {
		const struct ib_gid_attr *attr = rdma_get_gid_attr(ib_device, port, i);

		if (IS_ERR(attr))
			continue;
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    ipv6_addr_v4mapped((struct in6_addr *)attr->gid.raw))
			return attr;
		rdma_put_gid_attr(attr);
	}
	return NULL;
}

/* The device above a network interface. Returns 0, or -ENODEV when there is none with a GID. */
static inline int roce_open(struct roce_device *dev, const char *netdev)
{
	dev->netdev = dev_get_by_name(&init_net, netdev);
	if (!dev->netdev)
		return -ENODEV;
	dev->ib_device = ib_device_get_by_netdev(dev->netdev, RDMA_DRIVER_UNKNOWN);
	if (!dev->ib_device)
		goto put_netdev;
	dev->port = 1;
	dev->attr = roce_ipv4_gid(dev->ib_device, dev->port);
	if (!dev->attr)
		goto put_device;
	dev->gid = dev->attr->gid;
	return 0;

put_device:
	ib_device_put(dev->ib_device);
put_netdev:
	dev_put(dev->netdev);
	return -ENODEV;
}

static inline void roce_close(struct roce_device *dev)
{
	rdma_put_gid_attr(dev->attr);
	ib_device_put(dev->ib_device);
	dev_put(dev->netdev);
}

/* The path to itself. life_time: exponent of the packet life time, 4.096 us * 2^n. */
static inline void roce_path(const struct roce_device *dev, struct sa_path_rec *path, u8 life_time)
{
	memset(path, 0, sizeof(*path));
	path->rec_type = SA_PATH_REC_TYPE_ROCE_V2;
	path->sgid = dev->gid;
	path->dgid = dev->gid;
	path->hop_limit = 64;
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = cpu_to_be16(0xffff);
	path->mtu_selector = IB_SA_EQ;
	path->mtu = IB_MTU_1024;
	path->rate_selector = IB_SA_EQ;
	path->rate = IB_RATE_10_GBPS;
	path->packet_life_time_selector = IB_SA_EQ;
	path->packet_life_time = life_time;
	path->roce.route_resolved = true;
	memcpy(path->roce.dmac, dev->netdev->dev_addr, ETH_ALEN);
}

#endif
