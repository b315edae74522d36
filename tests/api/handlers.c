// SPDX-License-Identifier: GPL-2.0
/* What handlers may do, what they return, and who waits for them. */

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "api.h"

/* How long something that must not happen is given to happen. */
#define MUST_NOT_MS	300
#define LOGGED_AFTER_MS	10500

/* What another task may still use when a check has failed is static. */

/* A handler that is held: it says that it runs, and returns when it is let go. */
struct held {
	enum ib_cm_event_type event;
	int ret;
	struct completion started;
	struct completion go;
	unsigned int calls;
};

static void hold_init(struct held *held, enum ib_cm_event_type event, int ret)
{
	held->event = event;
	held->ret = ret;
	held->calls = 0;
	init_completion(&held->started);
	init_completion(&held->go);
}

static int hold_hook(struct api_id *id, const struct ib_cm_event *event)
{
	struct held *held = id->hook_data;

	if (event->event != held->event)
		return 0;
	held->calls++;
	complete(&held->started);
	wait_for_completion(&held->go);
	return held->ret;
}

static bool wait_held(struct api_test *t, struct held *held)
{
	if (api_check(t, wait_for_completion_timeout(&held->started,
						     msecs_to_jiffies(API_WAIT_MS)),
		      "the handler of %s does not run", api_event_name(held->event)))
		return true;
	/* It must not be held when it comes after all. */
	complete_all(&held->go);
	return false;
}

/* Destroys an identifier in another task. */
struct destroyer {
	struct api_id *id;
	struct completion done;
};

static int destroyer_run(void *data)
{
	struct destroyer *destroyer = data;

	api_destroy(destroyer->id);
	complete(&destroyer->done);
	return 0;
}

static bool destroy_elsewhere(struct api_test *t, struct destroyer *destroyer, struct api_id *id)
{
	struct task_struct *task;

	destroyer->id = id;
	init_completion(&destroyer->done);
	task = kthread_run(destroyer_run, destroyer, "ib_cm_api_destroy");
	return api_check(t, !IS_ERR(task), "no task: %pe", task);
}

static bool returned_within(struct destroyer *destroyer, unsigned int ms)
{
	return wait_for_completion_timeout(&destroyer->done, msecs_to_jiffies(ms));
}

/* --- destruction and handlers --- */

static void destroy_waits_for(struct api_test *t, unsigned int ms)
{
	static struct destroyer destroyer;
	static struct held held;
	struct api_conn conn;
	bool early;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	hold_init(&held, IB_CM_REP_RECEIVED, 0);
	conn.active->hook_data = &held;
	conn.active->hook = hold_hook;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	if (!wait_held(t, &held))
		return;
	if (destroy_elsewhere(t, &destroyer, conn.active)) {
		early = returned_within(&destroyer, ms);
		api_check(t, !early, "ib_destroy_cm_id returned beside a running handler");
		complete_all(&held.go);
		if (!early)
			api_check(t, returned_within(&destroyer, API_WAIT_MS),
				  "ib_destroy_cm_id does not return after the handler");
	} else {
		complete_all(&held.go);
	}
	/* It was not established: the peer hears so. */
	api_wait(t, conn.passive, IB_CM_REJ_RECEIVED);
}

static void destroy_waits(struct api_test *t)
{
	destroy_waits_for(t, MUST_NOT_MS);
}

/* Long enough for the log to tell of it. */
static void destroy_waits_long(struct api_test *t)
{
	destroy_waits_for(t, LOGGED_AFTER_MS);
}

/* A listener that is destroyed while its request is looked at. */
static void listener_destroyed(struct api_test *t)
{
	static struct destroyer destroyer;
	static struct held held;
	struct api_conn conn;
	bool early;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	hold_init(&held, IB_CM_REQ_RECEIVED, 0);
	conn.listener->hook_data = &held;
	conn.listener->hook = hold_hook;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	if (!wait_held(t, &held))
		return;
	if (destroy_elsewhere(t, &destroyer, conn.listener)) {
		early = returned_within(&destroyer, MUST_NOT_MS);
		api_check(t, !early, "a listener was gone beside its handler");
		complete_all(&held.go);
		if (!early)
			api_check(t, returned_within(&destroyer, API_WAIT_MS),
				  "a listener stays after its handler");
	} else {
		complete_all(&held.go);
	}
	/* The connection needs no listener any more. */
	conn.passive = api_wait_child(t, conn.listener);
	if (!conn.passive)
		return;
	api_wait(t, conn.passive, IB_CM_REQ_RECEIVED);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	api_wait(t, conn.active, IB_CM_REP_RECEIVED);
}

#define STORM	64

static atomic_t after_the_end;

/* Slow enough for requests to pile up. */
static int slow_hook(struct api_id *id, const struct ib_cm_event *event)
{
	if (event->event != IB_CM_REQ_RECEIVED)
		return 0;
	usleep_range(500, 1000);
	if (READ_ONCE(id->listener->gone))
		atomic_inc(&after_the_end);
	return 0;
}

/* Requests that have arrived and were not shown yet when their listener goes are rejected as if it
 * had gone before; those that are being shown end first.
 */
static void listener_destroyed_in_storm(struct api_test *t)
{
	static struct api_id *actives[STORM];
	unsigned int i, shown = 0, rejected = 0;
	struct api_conn conn;

	atomic_set(&after_the_end, 0);
	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	if (!conn.listener)
		return;
	conn.listener->hook = slow_hook;
	for (i = 0; i < STORM; i++) {
		actives[i] = api_create(t);
		if (!actives[i])
			return;
		conn.req.qp_num = api_qpn();
		api_eq(t, ib_send_cm_req(actives[i]->cm_id, &conn.req), 0, "ib_send_cm_req");
	}
	conn.passive = api_wait_child(t, conn.listener);
	api_destroy(conn.listener);
	/* Each handler that ran has published its identifier by now. */
	for (; conn.passive; conn.passive = api_take_child(conn.listener)) {
		shown++;
		api_destroy(conn.passive);
	}
	for (i = 0; i < STORM; i++) {
		struct api_event *event = api_wait(t, actives[i], IB_CM_REJ_RECEIVED);
		int reason = event ? event->event.param.rej_rcvd.reason : 0;

		if (reason == IB_CM_REJ_INVALID_SERVICE_ID)
			rejected++;
		else if (event)
			api_eq(t, reason, IB_CM_REJ_CONSUMER_DEFINED, "reason");
	}
	api_eq(t, shown + rejected, STORM, "requests, shown or rejected");
	api_eq(t, atomic_read(&after_the_end), 0, "handlers after the end of their listener");
	api_note("%u requests were shown, %u rejected", shown, rejected);
}

static int destroy_other_hook(struct api_id *id, const struct ib_cm_event *event)
{
	if (event->event == IB_CM_RTU_RECEIVED)
		api_destroy(id->hook_data);
	return 0;
}

/* From the handler of one identifier another one is destroyed, in each state. */
static void destroyed_by_another(struct api_test *t)
{
	enum ib_cm_state state;

	for (state = IB_CM_IDLE; state <= IB_CM_SIDR_REQ_RCVD; state++) {
		struct api_conn conn, other;
		struct api_id *victim;

		api_conn_init(&other, api_life_time(state));
		victim = api_reach(t, &other, state);
		api_conn_init(&conn, API_LIFE_TIME);
		if (!victim || !api_request(t, &conn))
			return;
		conn.passive->hook_data = victim;
		conn.passive->hook = destroy_other_hook;
		api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
		api_wait(t, conn.active, IB_CM_REP_RECEIVED);
		api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
		api_wait(t, conn.passive, IB_CM_RTU_RECEIVED);
		api_check(t, victim->gone, "an identifier in %s was not destroyed by another",
			  api_state_name(state));
		api_end_case(t);
	}
}

/* --- what handlers return --- */

static int refuse_hook(struct api_id *id, const struct ib_cm_event *event)
{
	enum ib_cm_event_type *which = id->hook_data;

	return event->event == *which ? -ECONNREFUSED : 0;
}

/* The peer of an identifier that its own handler gave up. */
static void given_up(struct api_test *t, struct api_id *id, struct api_id *peer,
		     enum ib_cm_event_type want, int reason)
{
	struct api_event *event = api_wait(t, peer, want);

	if (event && want == IB_CM_REJ_RECEIVED)
		api_eq(t, event->event.param.rej_rcvd.reason, reason, "reason");
	api_check(t, id->gone, "the identifier is still there");
}

static void refused_req(struct api_test *t)
{
	enum ib_cm_event_type which = IB_CM_REQ_RECEIVED;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	conn.listener->hook_data = &which;
	conn.listener->hook = refuse_hook;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	conn.passive = api_wait_child(t, conn.listener);
	if (conn.passive)
		given_up(t, conn.passive, conn.active, IB_CM_REJ_RECEIVED,
			 IB_CM_REJ_CONSUMER_DEFINED);
}

static void refused_later(struct api_test *t)
{
	enum ib_cm_event_type which = IB_CM_REP_RECEIVED;
	struct api_conn conn;

	/* REP: the passive side is rejected. */
	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	conn.active->hook_data = &which;
	conn.active->hook = refuse_hook;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	given_up(t, conn.active, conn.passive, IB_CM_REJ_RECEIVED, IB_CM_REJ_CONSUMER_DEFINED);
	api_end_case(t);

	/* RTU: an established connection is ended. */
	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	which = IB_CM_RTU_RECEIVED;
	conn.passive->hook_data = &which;
	conn.passive->hook = refuse_hook;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	api_wait(t, conn.active, IB_CM_REP_RECEIVED);
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	given_up(t, conn.passive, conn.active, IB_CM_DREQ_RECEIVED, 0);
	api_end_case(t);

	/* DREQ: it is answered all the same. */
	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_connect(t, &conn))
		return;
	which = IB_CM_DREQ_RECEIVED;
	conn.passive->hook_data = &which;
	conn.passive->hook = refuse_hook;
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	given_up(t, conn.passive, conn.active, IB_CM_DREP_RECEIVED, 0);
	api_end_case(t);

	/* TIMEWAIT_EXIT: the last event, after which the identifier just goes. */
	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_connect(t, &conn))
		return;
	which = IB_CM_TIMEWAIT_EXIT;
	conn.active->hook_data = &which;
	conn.active->hook = refuse_hook;
	if (!api_disconnect(t, &conn))
		return;
	api_wait(t, conn.active, IB_CM_TIMEWAIT_EXIT);
	api_check(t, conn.active->gone, "the identifier is still there");
}

static int no_memory_once(struct api_id *id, const struct ib_cm_event *event)
{
	unsigned int *calls = id->hook_data;

	if (event->event != IB_CM_REQ_RECEIVED)
		return 0;
	return (*calls)++ ? 0 : -ENOMEM;
}

/* The peer hears nothing, repeats its REQ, and is then accepted. */
static void no_memory(struct api_test *t)
{
	struct api_conn conn;
	struct api_id *first;
	unsigned int calls = 0;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	conn.listener->hook_data = &calls;
	conn.listener->hook = no_memory_once;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	first = api_wait_child(t, conn.listener);
	conn.passive = api_wait_child(t, conn.listener);
	if (!first || !conn.passive)
		return;
	api_check(t, first->gone, "the identifier without memory is still there");
	api_wait(t, conn.passive, IB_CM_REQ_RECEIVED);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	/* The first event of the active side: no REJ came before it. */
	api_wait(t, conn.active, IB_CM_REP_RECEIVED);
	api_eq(t, calls, 2, "requests that the listener saw");
}

/* --- order and independence --- */

/* What was queued behind a handler that gives its identifier up is not delivered. */
static void queued_events_dropped(struct api_test *t)
{
	static struct held held;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	hold_init(&held, IB_CM_RTU_RECEIVED, -ECANCELED);
	conn.passive->hook_data = &held;
	conn.passive->hook = hold_hook;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	api_wait(t, conn.active, IB_CM_REP_RECEIVED);
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	if (!wait_held(t, &held))
		return;
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	if (api_on_c())
		/* The handler occupies the queue of its processor, perhaps that of the DREQ. */
		msleep(MUST_NOT_MS);
	else
		api_check(t, api_wait_state(conn.passive, IB_CM_DREQ_RCVD),
			  "a DREQ is not looked at while a handler sleeps");
	complete_all(&held.go);
	if (api_on_c())
		/* Or the DREQ of an identifier that was destroyed in ESTABLISHED. */
		api_check(t, api_wait_ms(conn.active, API_WAIT_MS), "no event");
	else
		api_wait(t, conn.active, IB_CM_DREP_RECEIVED);
	api_eq(t, conn.passive->delivered, 2, "events of the passive side");
	api_check(t, conn.passive->gone, "the identifier is still there");
}

/* The end of TimeWait waits behind an event that is still being handled. */
static void timewait_exit_queued(struct api_test *t)
{
	static struct held held;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_connect(t, &conn))
		return;
	hold_init(&held, IB_CM_DREQ_RECEIVED, 0);
	conn.passive->hook_data = &held;
	conn.passive->hook = hold_hook;
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	if (!wait_held(t, &held))
		return;
	api_eq(t, ib_send_cm_drep(conn.passive->cm_id, NULL, 0), 0, "ib_send_cm_drep");
	/* The C module may need the processor that the handler occupies. */
	api_check(t, api_on_c() || api_wait_state(conn.passive, IB_CM_IDLE),
		  "TIMEWAIT does not end beside a handler");
	complete_all(&held.go);
	api_wait(t, conn.passive, IB_CM_DREQ_RECEIVED);
	api_wait(t, conn.passive, IB_CM_TIMEWAIT_EXIT);
}

/* A handler that sleeps delays its own identifier and no other. */
static void others_go_on(struct api_test *t)
{
	struct api_test aside = { .quiet = true };
	struct api_conn conn, others[4];
	static struct held held;
	unsigned int i;

	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return;
	hold_init(&held, IB_CM_REP_RECEIVED, 0);
	conn.active->hook_data = &held;
	conn.active->hook = hold_hook;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	if (!wait_held(t, &held))
		return;
	api_wait_limit = api_on_c() ? 2000 : API_WAIT_MS;
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		api_conn_init(&others[i], API_LIFE_TIME);
		if (!api_connect(api_on_c() ? &aside : t, &others[i]))
			break;
	}
	api_wait_limit = API_WAIT_MS;
	complete_all(&held.go);
	api_wait(t, conn.active, IB_CM_REP_RECEIVED);
	if (api_on_c())
		api_note("expected difference of the C module: %u of %zu connections were made while one handler slept",
			 i, ARRAY_SIZE(others));
}

static int rewrite_hook(struct api_id *id, const struct ib_cm_event *event)
{
	if (event->event == IB_CM_REQ_RECEIVED)
		id->cm_id->cm_handler = api_other_handler;
	return 0;
}

/* As rdma_cm does: another handler and context for the identifier of a request. */
static void rewritten(struct api_test *t)
{
	unsigned int before = atomic_read(&api_other_calls);
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	conn.listener->hook = rewrite_hook;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	conn.passive = api_wait_child(t, conn.listener);
	if (!conn.passive)
		return;
	api_wait(t, conn.passive, IB_CM_REQ_RECEIVED);
	api_eq(t, atomic_read(&api_other_calls), before, "calls of the other handler before");
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	api_wait(t, conn.active, IB_CM_REP_RECEIVED);
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	api_wait(t, conn.passive, IB_CM_RTU_RECEIVED);
	api_eq(t, atomic_read(&api_other_calls), before + 1, "calls of the other handler");
	/* At any later time as well. */
	conn.passive->cm_id->cm_handler = api_handler;
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	api_wait(t, conn.passive, IB_CM_DREQ_RECEIVED);
	api_eq(t, atomic_read(&api_other_calls), before + 1, "calls of the other handler");
}

/* A request that reaches a shared listener, whose context is nobody's. */
static void shared_listener(struct api_test *t)
{
	struct api_id *shared = api_new();
	struct ib_cm_id *share;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.active = api_create(t);
	if (!shared || !conn.active)
		return;
	api_shared_listener = shared;
	share = ib_cm_insert_listen(api_device.ib_device, api_handler, conn.req.service_id);
	if (!api_eq(t, PTR_ERR_OR_ZERO(share), 0, "ib_cm_insert_listen"))
		return;
	shared->cm_id = share;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	conn.passive = api_wait_child(t, shared);
	if (!conn.passive || !api_wait(t, conn.passive, IB_CM_REQ_RECEIVED))
		return;
	/* The listener goes, its connection stays. */
	api_destroy(shared);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	api_wait(t, conn.active, IB_CM_REP_RECEIVED);
}

static const struct api_case cases[] = {
	{ "the destruction waits for the handler", destroy_waits },
	{ "the destruction of a listener waits for its request", listener_destroyed },
	{ "a listener that is destroyed in a storm", listener_destroyed_in_storm },
	{ "destroyed by the handler of another", destroyed_by_another },
	{ "a REQ handler that fails", refused_req },
	{ "other handlers that fail", refused_later },
	{ "a REQ handler without memory", no_memory },
	{ "events behind a handler that fails", queued_events_dropped },
	{ "TIMEWAIT_EXIT behind a handler that sleeps", timewait_exit_queued },
	{ "a handler that sleeps, and others", others_go_on },
	{ "another handler for the identifier of a request", rewritten },
	{ "a request to a shared listener", shared_listener },
};

const struct api_suite api_suite_handlers = API_SUITE("handlers", cases);

static const struct api_case slow_cases[] = {
	{ "the destruction waits for a handler that takes long", destroy_waits_long },
};

const struct api_suite api_suite_slow_handler = API_SUITE("slow-handler", slow_cases);
