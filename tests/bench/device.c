// SPDX-License-Identifier: GPL-2.0
/*
 * The RoCE device that connects to itself.
 */

#include <linux/etherdevice.h>
#include <net/net_namespace.h>

#include "bench.h"

/* The GID of an IPv4 address: paths over it need no look-up of a neighbour. */
static const struct ib_gid_attr *ipv4_gid(struct ib_device *ib_device)
{
	int entries = ib_device->port_data[1].immutable.gid_tbl_len;
	int i;

	for (i = 0; i < entries; i++) {
		const struct ib_gid_attr *attr = rdma_get_gid_attr(ib_device, 1, i);

		if (IS_ERR(attr))
			continue;
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    ipv6_addr_v4mapped((struct in6_addr *)attr->gid.raw))
			return attr;
		rdma_put_gid_attr(attr);
	}
	return NULL;
}

int bench_device_open(struct bench_device *dev, const char *netdev)
{
	dev->netdev = dev_get_by_name(&init_net, netdev);
	if (!dev->netdev)
		return -ENODEV;
	dev->ib_device = ib_device_get_by_netdev(dev->netdev, RDMA_DRIVER_UNKNOWN);
	if (!dev->ib_device)
		goto put_netdev;
	dev->attr = ipv4_gid(dev->ib_device);
	if (!dev->attr)
		goto put_device;
	return 0;

put_device:
	ib_device_put(dev->ib_device);
put_netdev:
	dev_put(dev->netdev);
	return -ENODEV;
}

void bench_device_close(struct bench_device *dev)
{
	rdma_put_gid_attr(dev->attr);
	ib_device_put(dev->ib_device);
	dev_put(dev->netdev);
}

void bench_path(const struct bench_device *dev, struct sa_path_rec *path, u8 life_time)
{
	memset(path, 0, sizeof(*path));
	path->rec_type = SA_PATH_REC_TYPE_ROCE_V2;
	path->sgid = dev->attr->gid;
	path->dgid = dev->attr->gid;
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
