// SPDX-License-Identifier: GPL-2.0
/*
 * One connection: what its two consumers do in their handlers. The passive end replies and
 * confirms, the active end disconnects as soon as the passive one knows that it is connected.
 */

#include <linux/delay.h>
#include <linux/ktime.h>

#include "bench.h"

/* Numbers of queue pairs, 24 bits, far from those of real ones. None is used by two connections
 * at a time: that would make one of them stale.
 */
#define BENCH_QPN_FIRST		0x100000
#define BENCH_QPN_COUNT		0xe00000

/* The private data of a REQ: whose it is. */
struct bench_token {
	u32 index;
	u32 generation;
};

static atomic_t next_qpn;

static u32 new_qpn(void)
{
	return BENCH_QPN_FIRST + (u32)atomic_inc_return(&next_qpn) % BENCH_QPN_COUNT;
}

void bench_conn_finish(struct bench_conn *conn, bool good)
{
	struct bench_run *run = conn->run;

	/* What is told about one that is destroyed is nobody's failure. */
	if (run->dropping || atomic_xchg(&conn->finished, 1))
		return;
	if (!good)
		atomic_inc(&run->failed);
	if (llist_add(&conn->done, &run->done))
		wake_up(&run->wait);
}

static void consumer_works(const struct bench_conn *conn)
{
	if (conn->sleeps)
		msleep(conn->run->args.sleep_ms);
}

static void unexpected(struct bench_conn *conn, const char *end, const struct ib_cm_event *event)
{
	if (!conn->run->dropping)
		bench_print("# the %s end of connection %u got the event %d", end, conn->index,
			    event->event);
	bench_conn_finish(conn, false);
}

static void failed(struct bench_conn *conn, const char *call, int ret)
{
	if (!conn->run->dropping)
		bench_print("# connection %u: %s returned %d", conn->index, call, ret);
	bench_conn_finish(conn, false);
}

static int reply(struct bench_conn *conn, struct ib_cm_id *cm_id)
{
	struct ib_cm_rep_param rep = {
		.qp_num = new_qpn(),
		.responder_resources = 1,
		.initiator_depth = 1,
		.rnr_retry_count = 7,
	};
	int ret;

	cm_id->context = conn;
	consumer_works(conn);
	WRITE_ONCE(conn->passive, cm_id);
	ret = ib_send_cm_rep(cm_id, &rep);
	if (ret)
		failed(conn, "ib_send_cm_rep", ret);
	return 0;
}

void bench_conn_disconnect(struct bench_conn *conn)
{
	int ret;

	conn->ending = ktime_get_ns();
	ret = ib_send_cm_dreq(conn->active, NULL, 0);
	if (ret)
		failed(conn, "ib_send_cm_dreq", ret);
}

static void connected(struct bench_conn *conn)
{
	consumer_works(conn);
	if (!conn->sleeps)
		bench_times_add(&conn->run->connect, ktime_get_ns() - conn->started);
	if (conn->run->keep)
		bench_conn_finish(conn, true);
	else
		bench_conn_disconnect(conn);
}

static int passive_handler(struct ib_cm_id *cm_id, const struct ib_cm_event *event)
{
	struct bench_conn *conn = cm_id->context;
	int ret;

	switch (event->event) {
	case IB_CM_RTU_RECEIVED:
		connected(conn);
		break;
	case IB_CM_DREQ_RECEIVED:
		consumer_works(conn);
		ret = ib_send_cm_drep(cm_id, NULL, 0);
		if (ret)
			failed(conn, "ib_send_cm_drep", ret);
		break;
	case IB_CM_TIMEWAIT_EXIT:
		break;
	default:
		unexpected(conn, "passive", event);
		break;
	}
	return 0;
}

static int listen_handler(struct ib_cm_id *cm_id, const struct ib_cm_event *event)
{
	struct bench_run *run = cm_id->context;
	struct bench_token token;
	struct bench_conn *conn;

	if (event->event != IB_CM_REQ_RECEIVED)
		return -EINVAL;
	memcpy(&token, event->private_data, sizeof(token));
	if (token.index >= run->conn_count)
		return -EINVAL;
	conn = &run->conns[token.index];
	/* A REQ that comes again after its connection failed. */
	if (READ_ONCE(conn->generation) != token.generation)
		return -ENOENT;
	cm_id->cm_handler = passive_handler;
	return reply(conn, cm_id);
}

static int active_handler(struct ib_cm_id *cm_id, const struct ib_cm_event *event)
{
	struct bench_conn *conn = cm_id->context;
	int ret;

	switch (event->event) {
	case IB_CM_REP_RECEIVED:
		consumer_works(conn);
		ret = ib_send_cm_rtu(cm_id, NULL, 0);
		if (ret)
			failed(conn, "ib_send_cm_rtu", ret);
		break;
	case IB_CM_DREP_RECEIVED:
		consumer_works(conn);
		if (!conn->sleeps)
			bench_times_add(&conn->run->disconnect, ktime_get_ns() - conn->ending);
		bench_conn_finish(conn, true);
		break;
	case IB_CM_TIMEWAIT_EXIT:
		break;
	default:
		unexpected(conn, "active", event);
		break;
	}
	return 0;
}

int bench_listen(struct bench_run *run, unsigned int index)
{
	u64 start = ktime_get_ns();
	struct ib_cm_id *cm_id;
	int ret;

	cm_id = ib_create_cm_id(run->dev.ib_device, listen_handler, run);
	if (IS_ERR(cm_id))
		return PTR_ERR(cm_id);
	ret = ib_cm_listen(cm_id, cpu_to_be64(run->service_id + index));
	if (ret) {
		ib_destroy_cm_id(cm_id);
		return ret;
	}
	bench_times_add(&run->listen, ktime_get_ns() - start);
	run->listeners[index] = cm_id;
	return 0;
}

void bench_unlisten(struct bench_run *run, unsigned int index)
{
	struct ib_cm_id *cm_id = run->listeners[index];
	u64 start = ktime_get_ns();

	if (!cm_id)
		return;
	ib_destroy_cm_id(cm_id);
	run->listeners[index] = NULL;
	bench_times_add(&run->unlisten, ktime_get_ns() - start);
}

/* Another listener with each connection, in an order that is not that of their creation. */
static u64 service_of(const struct bench_conn *conn, u32 generation)
{
	u64 number = ((u64)generation * conn->run->conn_count + conn->index) * 7919;

	return conn->run->service_id + number % conn->run->args.listeners;
}

int bench_conn_start(struct bench_conn *conn)
{
	struct bench_run *run = conn->run;
	struct bench_token token = {
		.index = conn->index,
		.generation = conn->generation + 1,
	};
	struct ib_cm_req_param req = {
		.primary_path = &run->path,
		.ppath_sgid_attr = run->dev.attr,
		.service_id = cpu_to_be64(service_of(conn, token.generation)),
		.qp_num = new_qpn(),
		.qp_type = IB_QPT_RC,
		.private_data = &token,
		.private_data_len = sizeof(token),
		.responder_resources = 1,
		.initiator_depth = 1,
		.remote_cm_response_timeout = run->args.timeout,
		.local_cm_response_timeout = run->args.timeout,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.max_cm_retries = 15,
	};
	struct ib_cm_id *cm_id;
	int ret;

	WRITE_ONCE(conn->generation, token.generation);
	conn->active_qpn = req.qp_num;
	atomic_set(&conn->finished, 0);
	conn->started = ktime_get_ns();
	cm_id = ib_create_cm_id(run->dev.ib_device, active_handler, conn);
	if (IS_ERR(cm_id))
		return PTR_ERR(cm_id);
	/* Before the REQ: everything else may have happened when its call returns. */
	conn->active = cm_id;
	ret = ib_send_cm_req(cm_id, &req);
	if (ret)
		bench_print("# connection %u: ib_send_cm_req returned %d", conn->index, ret);
	return ret;
}

static void destroy_end(struct bench_run *run, struct ib_cm_id **end)
{
	struct ib_cm_id *cm_id = xchg(end, NULL);
	u64 start = ktime_get_ns();

	if (!cm_id)
		return;
	ib_destroy_cm_id(cm_id);
	bench_times_add(&run->destroy, ktime_get_ns() - start);
}

void bench_conn_destroy(struct bench_conn *conn)
{
	/* The passive end's handler uses the active end: destruction waits until it is done. */
	destroy_end(conn->run, &conn->passive);
	destroy_end(conn->run, &conn->active);
}
