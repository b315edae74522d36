// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for a condition, on the kernel's shared wait queues: a waiter names an address, whoever
 * changes the condition names the same one. Costs no memory in the object that is waited for, and
 * the address is never followed, so that it may be gone by the time of the wake-up.
 */
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "ib_cm_helpers.h"

void ib_cm_helper_wait(void *point, ib_cm_condition condition, void *arg)
{
	wait_var_event(point, condition(arg));
}

/* Adds no load and is never reported as hung. True when the condition came true in time. */
bool ib_cm_helper_wait_idle(void *point, ib_cm_condition condition, void *arg,
			    unsigned long timeout)
{
	might_sleep();
	return ___wait_var_event(point, ___wait_cond_timeout(condition(arg)), TASK_IDLE, 0,
				 timeout, __ret = schedule_timeout(__ret)) != 0;
}

/* Any context. What the caller wrote before is seen by the waiter. */
void ib_cm_helper_wake(void *point)
{
	smp_mb(); /* pairs with the barrier in prepare_to_wait_event() */
	wake_up_var(point);
}
