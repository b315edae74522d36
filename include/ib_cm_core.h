/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that ib_core exports for its own modules and declares in none of the public headers.
 */
#ifndef IB_CM_CORE_H
#define IB_CM_CORE_H

#include <linux/types.h>

struct attribute_group;
struct ib_device;

int ib_port_register_client_groups(struct ib_device *device, u32 port,
				   const struct attribute_group **groups);
void ib_port_unregister_client_groups(struct ib_device *device, u32 port,
				      const struct attribute_group **groups);

#endif /* IB_CM_CORE_H */
