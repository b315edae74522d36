// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters that can be written at run time, which module! does not offer.
 */
#include <linux/moduleparam.h>
#include <linux/wait_bit.h>

#include "ib_cm_helpers.h"

u32 ib_cm_hold_point;

unsigned int ib_cm_hold_max_ms = 10000;
bool ib_cm_hold_explicit;
unsigned int ib_cm_history;
unsigned int ib_cm_first_retry_ms;
bool ib_cm_mra_once;
unsigned int ib_cm_sidr_replay;

/* Whoever waits looks at the new value at once. */
static int set_hold_max_ms(const char *text, const struct kernel_param *param)
{
	int err = param_set_uint(text, param);

	if (!err)
		ib_cm_helper_wake(&ib_cm_hold_point);
	return err;
}

static const struct kernel_param_ops hold_max_ms_ops = {
	.set = set_hold_max_ms,
	.get = param_get_uint,
};

module_param_cb(hold_max_ms, &hold_max_ms_ops, &ib_cm_hold_max_ms, 0644);
__MODULE_PARM_TYPE(hold_max_ms, "uint");
MODULE_PARM_DESC(hold_max_ms,
	"Longest time in ms that a QP in TimeWait is kept from destruction when its process ends (0: never)");

/* Decides when a device is added. */
module_param_named(hold_explicit, ib_cm_hold_explicit, bool, 0444);
MODULE_PARM_DESC(hold_explicit,
	"Also hold a QP in TimeWait that a live process destroys by itself (default: off)");

module_param_named(history, ib_cm_history, uint, 0644);
MODULE_PARM_DESC(history,
	"Number of ids whose last 16 changes of state are remembered, the newest ids (0: none)");

module_param_named(first_retry_ms, ib_cm_first_retry_ms, uint, 0644);
MODULE_PARM_DESC(first_retry_ms,
	"Wait in ms before a message without answer is sent again, doubled each time (0: as C)");

module_param_named(mra_once, ib_cm_mra_once, bool, 0644);
MODULE_PARM_DESC(mra_once,
	"An MRA lengthens the wait under way, not those after it (default: off, as C)");

module_param_named(sidr_replay, ib_cm_sidr_replay, uint, 0644);
MODULE_PARM_DESC(sidr_replay,
	"Number of SIDR_REPs that are kept, to answer a repeated SIDR_REQ (0: none, as C)");
