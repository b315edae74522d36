// SPDX-License-Identifier: GPL-2.0
/*
 * A spinlock with interrupts off: macros that save the flags in a variable of their caller.
 */
#include <linux/spinlock.h>

#include "ib_cm_helpers.h"

unsigned long ib_cm_helper_spin_lock_irqsave(spinlock_t *lock)
	__acquires(lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

void ib_cm_helper_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
	__releases(lock)
{
	spin_unlock_irqrestore(lock, flags);
}
