// SPDX-License-Identifier: GPL-2.0
/*
 * A work queue of one's own: the functions are macros over variadic ones.
 */
#include <linux/workqueue.h>

#include "ib_cm_helpers.h"

/*
 * Per processor: a run of messages is handled by one worker without a switch between them, and
 * when a consumer sleeps the pool lets another worker go on. Workers of an unbound queue are woken
 * for each message, perhaps on another processor: a third more task switches in all.
 */
struct workqueue_struct *ib_cm_helper_alloc_workqueue(const char *name, int max_active)
{
	return alloc_workqueue("%s", WQ_PERCPU, max_active, name);
}

void ib_cm_helper_destroy_workqueue(struct workqueue_struct *wq)
{
	destroy_workqueue(wq);
}

void ib_cm_helper_flush_workqueue(struct workqueue_struct *wq)
{
	flush_workqueue(wq);
}
