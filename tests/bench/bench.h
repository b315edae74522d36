/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A load generator for ib_cm. It is both ends of each connection, of one RoCE device to itself,
 * and has no queue pairs: their numbers are made up.
 */
#ifndef IB_CM_BENCH_H
#define IB_CM_BENCH_H

#include <linux/llist.h>
#include <linux/wait.h>
#include <rdma/ib_cm.h>

#include "roce.h"

/* A run in which nothing happens for so long has failed. */
#define BENCH_STALL_MS		60000

/* --- samples of one duration (times.c) --- */

struct bench_times {
	u64 *ns;
	unsigned int size;
	atomic_t taken;
};

int bench_times_init(struct bench_times *times, unsigned int size);
void bench_times_free(struct bench_times *times);
void bench_times_add(struct bench_times *times, u64 ns);

/* Sorts the samples, and prints count, quantiles and maximum in nanoseconds. */
void bench_times_print(struct bench_times *times, const char *name);

/* --- a run (run.c) --- */

/* What is written to debugfs, as NAME=NUMBER. */
struct bench_args {
	unsigned int count;		/* connections to be made */
	unsigned int in_flight;		/* of them at the same time */
	unsigned int life;		/* packet life time of the path, 4.096 us * 2^life */
	unsigned int timeout;		/* for an answer, in the same unit */
	unsigned int sleepers;		/* connections beside, whose consumers sleep */
	unsigned int sleep_ms;		/* in each handler */
	unsigned int listeners;		/* the connections are spread over them */
};

struct bench_run;

/* One connection at a time, of both ends. */
struct bench_conn {
	struct bench_run *run;
	struct ib_cm_id *active;
	struct ib_cm_id *passive;
	struct llist_node done;
	u64 started;
	u64 ending;
	u32 active_qpn;
	unsigned int index;
	unsigned int generation;
	atomic_t finished;		/* this step; it is on the list of done ones, or was */
	bool sleeps;
};

struct bench_run {
	struct bench_args args;
	struct roce_device dev;
	struct sa_path_rec path;
	u64 service_id;			/* of the first listener */
	struct ib_cm_id **listeners;
	struct bench_conn *conns;
	unsigned int conn_count;
	struct llist_head done;
	wait_queue_head_t wait;
	struct bench_times connect;	/* from the REQ's call to the RTU's event */
	struct bench_times disconnect;	/* from the DREQ's call to the DREP's event */
	struct bench_times destroy;	/* of one end */
	struct bench_times listen;
	struct bench_times unlisten;
	bool keep;			/* connections are not ended by their consumers */
	bool dropping;			/* events come of identifiers that are being destroyed */
	atomic_t failed;
};

/* A run with its device and listeners, or an error. */
struct bench_run *bench_run_new(const struct bench_args *args, bool keep);
/* Destroys all its identifiers too. */
void bench_run_free(struct bench_run *run);
/* Connects until args.count connections are done. */
int bench_run_connect(struct bench_run *run);
/* Disconnects all that are kept. */
int bench_run_disconnect(struct bench_run *run);

/* --- commands (command.c) --- */

int bench_cycle(const struct bench_args *args);
int bench_keep(const struct bench_args *args);
/* These two end what was kept; of the arguments they use in_flight. */
int bench_disconnect(const struct bench_args *args);
int bench_drop(const struct bench_args *args);

/* flood.c */
int bench_flood(const struct bench_args *args);

/* --- one connection (conn.c) --- */

int bench_listen(struct bench_run *run, unsigned int index);
void bench_unlisten(struct bench_run *run, unsigned int index);
int bench_conn_start(struct bench_conn *conn);
/* Destroys both ends and times it. */
void bench_conn_destroy(struct bench_conn *conn);
void bench_conn_finish(struct bench_conn *conn, bool good);
void bench_conn_disconnect(struct bench_conn *conn);

/* --- results (main.c) --- */

extern char *bench_netdev;

/* Adds a line to the results. */
__printf(1, 2) void bench_print(const char *fmt, ...);

#endif /* IB_CM_BENCH_H */
