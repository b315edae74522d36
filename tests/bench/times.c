// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of a duration. All are kept, so that quantiles are exact.
 */

#include <linux/minmax.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "bench.h"

int bench_times_init(struct bench_times *times, unsigned int size)
{
	times->ns = vcalloc(size, sizeof(*times->ns));
	times->size = size;
	atomic_set(&times->taken, 0);
	return times->ns ? 0 : -ENOMEM;
}

void bench_times_free(struct bench_times *times)
{
	vfree(times->ns);
	times->ns = NULL;
}

void bench_times_add(struct bench_times *times, u64 ns)
{
	unsigned int index = atomic_inc_return(&times->taken) - 1;

	if (index < times->size)
		times->ns[index] = ns;
}

static int compare(const void *a, const void *b)
{
	u64 left = *(const u64 *)a, right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

static u64 quantile(const struct bench_times *times, unsigned int count, unsigned int permille)
{
	return times->ns[min(count - 1, count * permille / 1000)];
}

void bench_times_print(struct bench_times *times, const char *name)
{
	unsigned int count = min_t(unsigned int, atomic_read(&times->taken), times->size);

	if (!count)
		return;
	sort(times->ns, count, sizeof(*times->ns), compare, NULL);
	bench_print("%s_samples %u", name, count);
	bench_print("%s_p50 %llu", name, quantile(times, count, 500));
	bench_print("%s_p99 %llu", name, quantile(times, count, 990));
	bench_print("%s_p999 %llu", name, quantile(times, count, 999));
	bench_print("%s_max %llu", name, times->ns[count - 1]);
}
