// SPDX-License-Identifier: GPL-2.0
/*
 * A work queue of one's own: the functions are macros over variadic ones.
 */
#include <linux/workqueue.h>

#include "ib_cm_helpers.h"

struct workqueue_struct *ib_cm_helper_alloc_workqueue(const char *name, int max_active)
{
	return alloc_workqueue("%s", WQ_UNBOUND, max_active, name);
}

void ib_cm_helper_destroy_workqueue(struct workqueue_struct *wq)
{
	destroy_workqueue(wq);
}

void ib_cm_helper_flush_workqueue(struct workqueue_struct *wq)
{
	flush_workqueue(wq);
}
