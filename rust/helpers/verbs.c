// SPDX-License-Identifier: GPL-2.0
/*
 * Inline functions of the RDMA headers.
 */
#include <rdma/opa_addr.h>

#include "ib_cm_helpers.h"

/* The memory of a device, not its registration. */
void ib_cm_helper_get_device(struct ib_device *device)
{
	get_device(&device->dev);
}

void ib_cm_helper_put_device(struct ib_device *device)
{
	put_device(&device->dev);
}

const char *ib_cm_helper_device_name(const struct ib_device *device)
{
	return dev_name(&device->dev);
}

u32 ib_cm_helper_start_port(const struct ib_device *device)
{
	return rdma_start_port(device);
}

u32 ib_cm_helper_end_port(const struct ib_device *device)
{
	return rdma_end_port(device);
}

/* The capabilities of a port that the device does not have are none. */
bool ib_cm_helper_cap_ib_cm(const struct ib_device *device, u32 port)
{
	return rdma_is_port_valid(device, port) && rdma_cap_ib_cm(device, port);
}

bool ib_cm_helper_cap_opa_ah(struct ib_device *device, u32 port)
{
	return rdma_is_port_valid(device, port) && rdma_cap_opa_ah(device, port);
}

bool ib_cm_helper_protocol_roce(const struct ib_device *device, u32 port)
{
	return rdma_is_port_valid(device, port) && rdma_protocol_roce(device, port);
}

u32 ib_cm_helper_ah_dlid(const struct rdma_ah_attr *attr)
{
	return rdma_ah_get_dlid(attr);
}

/* The headers take path records that they only read without const. */
static struct sa_path_rec *unconst(const struct sa_path_rec *path)
{
	return (struct sa_path_rec *)path;
}

u32 ib_cm_helper_path_slid(const struct sa_path_rec *path)
{
	return be32_to_cpu(sa_path_get_slid(unconst(path)));
}

u32 ib_cm_helper_path_dlid(const struct sa_path_rec *path)
{
	return be32_to_cpu(sa_path_get_dlid(unconst(path)));
}

void ib_cm_helper_path_set_slid(struct sa_path_rec *path, u32 slid)
{
	sa_path_set_slid(path, slid);
}

void ib_cm_helper_path_set_dlid(struct sa_path_rec *path, u32 dlid)
{
	sa_path_set_dlid(path, dlid);
}

bool ib_cm_helper_is_opa_gid(const union ib_gid *gid)
{
	return ib_is_opa_gid(gid);
}

u32 ib_cm_helper_opa_lid(const union ib_gid *gid)
{
	return opa_get_lid_from_gid(gid);
}

/*
 * The network header that the adapter stored in place of the GRH. A RoCE v2 packet over IPv4 has
 * its header at the end of that space and no GID in it.
 */
static enum rdma_network_type network_type(const struct ib_mad_recv_wc *mad)
{
	const struct ib_grh *grh = mad->recv_buf.grh;

	if (mad->wc->wc_flags & IB_WC_WITH_NETWORK_HDR_TYPE)
		return mad->wc->network_hdr_type;
	return ib_get_rdma_header_version((const union rdma_network_hdr *)grh) == 4 ?
		       RDMA_NETWORK_IPV4 : RDMA_NETWORK_IB;
}

/* Equal for all MADs of one sender: of its LID and, where there is one, its GID. */
u64 ib_cm_helper_mad_source(const struct ib_mad_recv_wc *mad)
{
	union ib_gid sgid = {}, dgid;

	if (mad->wc->wc_flags & IB_WC_GRH)
		ib_get_gids_from_rdma_hdr((const union rdma_network_hdr *)mad->recv_buf.grh,
					  network_type(mad), &sgid, &dgid);
	return be64_to_cpu(sgid.global.subnet_prefix) ^ be64_to_cpu(sgid.global.interface_id) ^
	       mad->wc->slid;
}
