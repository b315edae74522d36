// SPDX-License-Identifier: GPL-2.0
/*
 * One limit on how often the module may write to the kernel's log about what the wire or a
 * consumer did.
 */
#include <linux/ratelimit.h>

#include "ib_cm_helpers.h"

static DEFINE_RATELIMIT_STATE(log_limit, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);

bool ib_cm_helper_may_log(void)
{
	return __ratelimit(&log_limit);
}
