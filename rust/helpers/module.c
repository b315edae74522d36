// SPDX-License-Identifier: GPL-2.0
/*
 * What it takes to lend a function of this module out, and to get it back.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>

#include "ib_cm_helpers.h"

/* Whether ib_cm_helper_wait_for_callers() is possible on this kernel. */
bool ib_cm_helper_can_wait_for_callers(void)
{
	return IS_ENABLED(CONFIG_TASKS_RCU) || !IS_ENABLED(CONFIG_PREEMPTION);
}

/*
 * Returns when every task that was on its way into or out of a function of the module, without
 * sleeping, has got there.
 */
void ib_cm_helper_wait_for_callers(void)
{
	synchronize_rcu_tasks();
}

/* False once the module is being unloaded. */
bool ib_cm_helper_module_is_live(void)
{
	return THIS_MODULE->state == MODULE_STATE_LIVE;
}

/* From now on the module cannot be unloaded. Only while it is live. */
void ib_cm_helper_pin_module(void)
{
	__module_get(THIS_MODULE);
}

/* One for the registration of the device, one for each of its clients and users. */
unsigned int ib_cm_helper_device_users(const struct ib_device *device)
{
	return refcount_read(&device->refcount);
}
