// SPDX-License-Identifier: GPL-2.0
/*
 * faulty.ko does wrong on purpose when it is loaded, one fault for each thing that the debug
 * kernel has to notice: that no scenario makes it complain says something only if it would.
 */

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define SIZE 64
/* The allocator keeps addresses of what it has given away last, where kmemleak finds them. */
#define LEAKS 4096

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);

static void use_after_free(void)
{
	char *object = kzalloc(SIZE, GFP_KERNEL);

	if (!object)
		return;
	kfree(object);
	WRITE_ONCE(object[SIZE / 2], 1);
}

static void leak(void)
{
	int count;

	for (count = 0; count < LEAKS; count++) {
		void *object = kzalloc(SIZE, GFP_KERNEL);

		/* Or the compiler leaves the allocation out. */
		barrier_data(object);
	}
}

static void sleep_with_a_lock(void)
{
	spin_lock(&first);
	msleep(20);
	spin_unlock(&first);
}

static void lock_in_both_orders(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

static int __init faulty_init(void)
{
	leak();
	/* First of the rest: any other report makes lockdep give up. */
	lock_in_both_orders();
	sleep_with_a_lock();
	use_after_free();
	return 0;
}

static void __exit faulty_exit(void)
{
}

module_init(faulty_init);
module_exit(faulty_exit);
MODULE_DESCRIPTION("Does wrong, for a kernel that has to notice");
MODULE_LICENSE("GPL");
