// SPDX-License-Identifier: GPL-2.0
/*
 * What can be asked for: connections that are made and ended at once, or made and kept, and
 * two ways to end the kept ones.
 */

#include <linux/ktime.h>
#include <linux/slab.h>

#include "bench.h"

/* The run whose connections are kept. */
static struct bench_run *kept;

int bench_cycle(const struct bench_args *args)
{
	struct bench_run *run = bench_run_new(args, false);
	u64 start = ktime_get_ns();
	int ret;

	if (IS_ERR(run))
		return PTR_ERR(run);
	ret = bench_run_connect(run);
	if (!ret) {
		bench_print("elapsed %llu", ktime_get_ns() - start);
		bench_print("connections %u", args->count);
		bench_times_print(&run->connect, "connect");
		bench_times_print(&run->disconnect, "disconnect");
		bench_times_print(&run->destroy, "destroy");
		bench_times_print(&run->listen, "listen");
	}
	bench_run_free(run);
	return ret;
}

int bench_keep(const struct bench_args *args)
{
	struct bench_run *run;
	u64 start;
	int ret;

	if (kept || args->sleepers)
		return -EINVAL;
	run = bench_run_new(args, true);
	if (IS_ERR(run))
		return PTR_ERR(run);
	start = ktime_get_ns();
	ret = bench_run_connect(run);
	if (ret) {
		bench_run_free(run);
		return ret;
	}
	bench_print("elapsed %llu", ktime_get_ns() - start);
	bench_print("connections %u", args->count);
	bench_times_print(&run->connect, "connect");
	kept = run;
	return 0;
}

/* Destroys all ends, which takes what is left of the run's connections down. */
static void destroy_kept(void)
{
	u64 start = ktime_get_ns();
	unsigned int i;

	WRITE_ONCE(kept->dropping, true);
	for (i = 0; i < kept->conn_count; i++)
		bench_conn_destroy(&kept->conns[i]);
	bench_print("destroy_elapsed %llu", ktime_get_ns() - start);
	bench_times_print(&kept->destroy, "destroy");
	bench_run_free(kept);
	kept = NULL;
	/* What is freed after a grace period is freed when the memory is looked at. */
	rcu_barrier();
}

int bench_disconnect(const struct bench_args *args)
{
	u64 start = ktime_get_ns();
	int ret;

	if (!kept)
		return -EINVAL;
	kept->args.in_flight = args->in_flight;
	ret = bench_run_disconnect(kept);
	if (!ret) {
		bench_print("elapsed %llu", ktime_get_ns() - start);
		bench_times_print(&kept->disconnect, "disconnect");
	}
	destroy_kept();
	return ret;
}

int bench_drop(const struct bench_args *args)
{
	if (!kept)
		return args ? -EINVAL : 0;
	destroy_kept();
	return 0;
}
