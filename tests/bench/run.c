// SPDX-License-Identifier: GPL-2.0
/*
 * A run: one thread starts connections, so that there are always as many under way as was
 * asked for, and destroys what is done.
 */

#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "bench.h"

/* Not those of assigned IDs. No service ID is used again. */
static u64 next_service_id = 0x1000be4c00000000ULL;

static int prepare_memory(struct bench_run *run)
{
	const struct bench_args *args = &run->args;

	run->conn_count = (run->keep ? args->count : args->in_flight) + args->sleepers;
	run->conns = vcalloc(run->conn_count, sizeof(*run->conns));
	run->listeners = vcalloc(args->listeners, sizeof(*run->listeners));
	if (!run->conns || !run->listeners ||
	    bench_times_init(&run->connect, args->count) ||
	    bench_times_init(&run->disconnect, args->count) ||
	    bench_times_init(&run->destroy, 2 * args->count) ||
	    bench_times_init(&run->listen, args->listeners) ||
	    bench_times_init(&run->unlisten, args->listeners))
		return -ENOMEM;
	return 0;
}

static int prepare(struct bench_run *run)
{
	unsigned int i;
	int ret;

	roce_path(&run->dev, &run->path, run->args.life);
	ret = prepare_memory(run);
	if (ret)
		return ret;
	for (i = 0; i < run->conn_count; i++) {
		run->conns[i].run = run;
		run->conns[i].index = i;
		run->conns[i].sleeps = i >= run->conn_count - run->args.sleepers;
	}
	run->service_id = next_service_id;
	next_service_id += run->args.listeners;
	for (i = 0; i < run->args.listeners; i++) {
		ret = bench_listen(run, i);
		if (ret)
			return ret;
	}
	return 0;
}

struct bench_run *bench_run_new(const struct bench_args *args, bool keep)
{
	struct bench_run *run = kzalloc_obj(*run);
	int ret;

	if (!run)
		return ERR_PTR(-ENOMEM);
	run->args = *args;
	run->keep = keep;
	init_llist_head(&run->done);
	init_waitqueue_head(&run->wait);
	ret = roce_open(&run->dev, bench_netdev);
	if (ret) {
		kfree(run);
		return ERR_PTR(ret);
	}
	ret = prepare(run);
	if (ret) {
		bench_run_free(run);
		return ERR_PTR(ret);
	}
	return run;
}

void bench_run_free(struct bench_run *run)
{
	unsigned int i;

	run->dropping = true;
	/* The listeners first: no further end appears then. */
	for (i = 0; run->listeners && i < run->args.listeners; i++)
		bench_unlisten(run, i);
	for (i = 0; run->conns && i < run->conn_count; i++)
		bench_conn_destroy(&run->conns[i]);
	bench_times_free(&run->connect);
	bench_times_free(&run->disconnect);
	bench_times_free(&run->destroy);
	bench_times_free(&run->listen);
	bench_times_free(&run->unlisten);
	vfree(run->listeners);
	vfree(run->conns);
	roce_close(&run->dev);
	kfree(run);
}

/* The connections that are done with a step, or NULL when there are none for too long. */
static struct llist_node *wait_for_done(struct bench_run *run)
{
	long left = wait_event_killable_timeout(run->wait, !llist_empty(&run->done),
						msecs_to_jiffies(BENCH_STALL_MS));

	if (left <= 0)
		bench_print("# nothing happens");
	return left > 0 ? llist_reverse_order(llist_del_all(&run->done)) : NULL;
}

/* Starts the next one: the same slot again, or when connections are kept, another. */
static int start_next(struct bench_run *run, struct bench_conn *conn, unsigned int *started)
{
	if (!conn->sleeps) {
		if (*started >= run->args.count)
			return 0;
		if (run->keep)
			conn = &run->conns[*started];
		++*started;
	}
	return bench_conn_start(conn);
}

static int start_first(struct bench_run *run, unsigned int *started)
{
	unsigned int i;
	int ret = 0;

	*started = min(run->args.in_flight, run->args.count);
	for (i = 0; !ret && i < *started; i++)
		ret = bench_conn_start(&run->conns[i]);
	for (i = 0; !ret && i < run->args.sleepers; i++)
		ret = bench_conn_start(&run->conns[run->conn_count - 1 - i]);
	return ret;
}

int bench_run_connect(struct bench_run *run)
{
	unsigned int started, done = 0;
	struct bench_conn *conn, *next;
	struct llist_node *batch;
	int ret;

	ret = start_first(run, &started);
	while (!ret && done < run->args.count) {
		batch = wait_for_done(run);
		if (!batch)
			return -ETIMEDOUT;
		if (atomic_read(&run->failed))
			return -EIO;
		llist_for_each_entry_safe(conn, next, batch, done) {
			if (!run->keep)
				bench_conn_destroy(conn);
			done += !conn->sleeps;
			ret = start_next(run, conn, &started);
			if (ret)
				break;
		}
	}
	return ret;
}

static void disconnect_next(struct bench_run *run, unsigned int *started)
{
	struct bench_conn *conn = &run->conns[(*started)++];

	atomic_set(&conn->finished, 0);
	bench_conn_disconnect(conn);
}

int bench_run_disconnect(struct bench_run *run)
{
	unsigned int started = 0, done = 0;
	struct bench_conn *conn, *next;
	struct llist_node *batch;

	while (started < min(run->args.in_flight, run->conn_count))
		disconnect_next(run, &started);
	while (done < run->conn_count) {
		batch = wait_for_done(run);
		if (!batch)
			return -ETIMEDOUT;
		if (atomic_read(&run->failed))
			return -EIO;
		llist_for_each_entry_safe(conn, next, batch, done) {
			done++;
			if (started < run->conn_count)
				disconnect_next(run, &started);
		}
	}
	return 0;
}
