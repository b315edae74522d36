// SPDX-License-Identifier: GPL-2.0
/* Identifiers, listeners, the words of reasons, and ib_cm_notify. */

#include <linux/irq_work.h>

#include "api.h"

static void created(struct api_test *t)
{
	struct api_id *a = api_create(t), *b = api_create(t);

	if (!a || !b)
		return;
	api_check(t, a->cm_id->cm_handler == api_handler, "another handler in a new identifier");
	api_check(t, a->cm_id->context == a, "another context in a new identifier");
	api_check(t, a->cm_id->device == api_device.ib_device, "another device");
	api_eq(t, a->cm_id->state, IB_CM_IDLE, "state of a new identifier");
	api_eq(t, a->cm_id->lap_state, IB_CM_LAP_UNINIT, "LAP state of a new identifier");
	api_eq(t, a->cm_id->service_id, 0, "service ID of a new identifier");
	api_eq(t, a->cm_id->remote_id, 0, "remote ID of a new identifier");
	api_eq(t, a->cm_id->remote_cm_qpn, 1, "QPN of the peer's connection manager");
	api_check(t, a->cm_id->local_id != b->cm_id->local_id, "two identifiers of one local ID");
}

static void service_ids(struct api_test *t)
{
	static const u64 reserved[] = {
		0x0200000000000001ULL, 0x0200000000001000ULL, 0x02ffffffffffffffULL,
	};
	static const u64 free[] = { 0, 0x01ffffffffffffffULL, 0x0300000000000000ULL, U64_MAX };
	struct ib_cm_id *cm_id;
	struct api_id *id;
	unsigned int i;

	id = api_create(t);
	if (!id)
		return;
	for (i = 0; i < ARRAY_SIZE(reserved); i++) {
		api_eq(t, ib_cm_listen(id->cm_id, cpu_to_be64(reserved[i])), -EINVAL,
		       "ib_cm_listen on the assigned service ID %llx", reserved[i]);
		api_check(t, id->cm_id->state == IB_CM_IDLE, "a refused listener is not idle");
		cm_id = ib_cm_insert_listen(api_device.ib_device, api_handler,
					    cpu_to_be64(reserved[i]));
		if (!api_eq(t, PTR_ERR_OR_ZERO(cm_id), -EINVAL,
			    "ib_cm_insert_listen on the assigned service ID %llx", reserved[i]))
			ib_destroy_cm_id(cm_id);
	}
	for (i = 0; i < ARRAY_SIZE(free); i++) {
		id = api_listen(t, cpu_to_be64(free[i]));
		if (!id)
			continue;
		api_check(t, id->cm_id->service_id == cpu_to_be64(free[i]),
			  "the listener has another service ID than %llx", free[i]);
		api_check(t, id->cm_id->state == IB_CM_LISTEN, "no listener on %llx", free[i]);
	}
}

static void assigned_ids(struct api_test *t)
{
	struct ib_cm_id *shared;
	struct api_id *ids[4];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ids[i] = api_listen(t, IB_CM_ASSIGN_SERVICE_ID);
		if (!ids[i])
			return;
		api_check(t, (ids[i]->cm_id->service_id & IB_SERVICE_ID_AGN_MASK) ==
			  IB_CM_ASSIGN_SERVICE_ID, "an assigned service ID %llx is out of range",
			  be64_to_cpu(ids[i]->cm_id->service_id));
		for (j = 0; j < i; j++)
			api_check(t, ids[i]->cm_id->service_id != ids[j]->cm_id->service_id,
				  "a service ID was assigned twice");
	}
	shared = ib_cm_insert_listen(api_device.ib_device, api_handler, IB_CM_ASSIGN_SERVICE_ID);
	if (!api_eq(t, PTR_ERR_OR_ZERO(shared), 0, "ib_cm_insert_listen that asks for an ID"))
		return;
	for (j = 0; j < ARRAY_SIZE(ids); j++)
		api_check(t, shared->service_id != ids[j]->cm_id->service_id,
			  "a service ID was assigned twice");
	ib_destroy_cm_id(shared);
}

static void busy(struct api_test *t)
{
	__be64 service_id = api_service_id();
	struct api_id *first = api_listen(t, service_id), *second = api_create(t);
	struct ib_cm_id *cm_id;

	if (!first || !second)
		return;
	api_eq(t, ib_cm_listen(second->cm_id, service_id), -EBUSY, "a second listener");
	api_check(t, second->cm_id->state == IB_CM_IDLE, "the second listener is not idle");
	/* One with a context can be shared by nobody. */
	cm_id = ib_cm_insert_listen(api_device.ib_device, api_handler, service_id);
	api_eq(t, PTR_ERR_OR_ZERO(cm_id), -EINVAL, "a share of a listener with a context");
	/* The place is free again at once. */
	api_destroy(first);
	api_eq(t, ib_cm_listen(second->cm_id, service_id), 0, "a listener after the first");
}

static void share_listeners(struct api_test *t)
{
	__be64 service_id = api_service_id();
	struct ib_device *ib_device = api_device.ib_device;
	struct ib_cm_id *first, *second, *other;
	struct api_id *id = api_create(t);

	first = ib_cm_insert_listen(ib_device, api_handler, service_id);
	if (!id || !api_eq(t, PTR_ERR_OR_ZERO(first), 0, "ib_cm_insert_listen"))
		return;
	api_eq(t, first->state, IB_CM_LISTEN, "state of a shared listener");
	api_check(t, !first->context, "a shared listener has a context");
	api_check(t, first->service_id == service_id, "a shared listener has another service ID");
	second = ib_cm_insert_listen(ib_device, api_handler, service_id);
	api_check(t, second == first, "a second share is another listener");
	other = ib_cm_insert_listen(ib_device, api_other_handler, service_id);
	api_eq(t, PTR_ERR_OR_ZERO(other), -EINVAL, "a share with another handler");
	api_eq(t, ib_cm_listen(id->cm_id, service_id), -EBUSY, "a listener beside a shared one");
	/* It is there until its last share is gone. */
	ib_destroy_cm_id(second);
	api_eq(t, ib_cm_listen(id->cm_id, service_id), -EBUSY, "a listener beside one share");
	ib_destroy_cm_id(first);
	api_eq(t, ib_cm_listen(id->cm_id, service_id), 0, "a listener after the last share");
}

/* A context that a consumer sets afterwards counts as well. */
static void shared_with_context(struct api_test *t)
{
	__be64 service_id = api_service_id();
	struct ib_cm_id *first, *second;

	first = ib_cm_insert_listen(api_device.ib_device, api_handler, service_id);
	if (!api_eq(t, PTR_ERR_OR_ZERO(first), 0, "ib_cm_insert_listen"))
		return;
	first->context = &api_device;
	second = ib_cm_insert_listen(api_device.ib_device, api_handler, service_id);
	api_eq(t, PTR_ERR_OR_ZERO(second), -EINVAL, "a share of a listener with a context");
	first->context = NULL;
	second = ib_cm_insert_listen(api_device.ib_device, api_handler, service_id);
	if (api_check(t, second == first, "no share without a context"))
		ib_destroy_cm_id(second);
	ib_destroy_cm_id(first);
}

static void reasons(struct api_test *t)
{
	static const struct {
		int reason;
		const char *text;
	} some[] = {
		{ IB_CM_REJ_NO_QP, "no QP" },
		{ IB_CM_REJ_TIMEOUT, "timeout" },
		{ IB_CM_REJ_INVALID_COMM_ID, "invalid comm ID" },
		{ IB_CM_REJ_INVALID_SERVICE_ID, "invalid service ID" },
		{ IB_CM_REJ_STALE_CONN, "stale conn" },
		{ IB_CM_REJ_INVALID_GID, "invalid GID" },
		{ IB_CM_REJ_INVALID_ALT_GID, "invalid alt GID" },
		{ IB_CM_REJ_CONSUMER_DEFINED, "consumer defined" },
		{ IB_CM_REJ_DUPLICATE_LOCAL_COMM_ID, "duplicate local comm ID" },
		{ IB_CM_REJ_INVALID_ALT_FLOW_LABEL, "invalid alt flow label" },
		{ IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED, "vendor option is not supported" },
	};
	static const int none[] = { 0, 34, 36, 255, 65536 + 28, -1, INT_MAX, INT_MIN };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(some); i++)
		api_check(t, !strcmp(ibcm_reject_msg(some[i].reason), some[i].text),
			  "reason %d is '%s', expected '%s'", some[i].reason,
			  ibcm_reject_msg(some[i].reason), some[i].text);
	for (i = 0; i < ARRAY_SIZE(none); i++)
		api_check(t, !strcmp(ibcm_reject_msg(none[i]), "unrecognized reason"),
			  "reason %d is '%s'", none[i], ibcm_reject_msg(none[i]));
	for (i = 1; i <= IB_CM_REJ_INVALID_ALT_FLOW_LABEL; i++)
		api_check(t, strcmp(ibcm_reject_msg(i), "unrecognized reason"),
			  "reason %u has no words", i);
}

/* --- ib_cm_notify --- */

struct irq_notify {
	struct irq_work work;
	struct completion done;
	struct ib_cm_id *cm_id;
	enum ib_event_type event;
	bool in_irq;
	int ret;
};

static void notify_in_irq(struct irq_work *work)
{
	struct irq_notify *call = container_of(work, struct irq_notify, work);

	call->in_irq = in_hardirq();
	call->ret = ib_cm_notify(call->cm_id, call->event);
	complete(&call->done);
}

static int notify_from_irq(struct api_test *t, struct api_id *id, enum ib_event_type event)
{
	struct irq_notify call = {
		/* A hard interrupt, except on a kernel that runs drivers' handlers in threads. */
		.work = IRQ_WORK_INIT(notify_in_irq),
		.cm_id = id->cm_id,
		.event = event,
	};

	init_completion(&call.done);
	irq_work_queue(&call.work);
	wait_for_completion(&call.done);
	irq_work_sync(&call.work);
	api_check(t, call.in_irq, "the call was not made in a hard interrupt");
	return call.ret;
}

/* Established by the queue pair, then once more, then by the RTU that comes too late. */
static void established_from_irq(struct api_test *t, enum ib_cm_state state)
{
	struct api_conn conn;
	struct api_id *id;

	api_conn_init(&conn, API_LIFE_TIME);
	id = api_reach(t, &conn, state);
	if (!id)
		return;
	api_eq(t, notify_from_irq(t, id, IB_EVENT_COMM_EST), 0, "COMM_EST from an interrupt");
	api_check(t, id->cm_id->state == IB_CM_ESTABLISHED, "COMM_EST did not establish");
	api_eq(t, notify_from_irq(t, id, IB_EVENT_COMM_EST), -EISCONN, "COMM_EST again");
	api_wait(t, id, IB_CM_USER_ESTABLISHED);
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_rtu");
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, NULL, 0), 0, "ib_send_cm_dreq");
	/* No event for the late RTU. */
	api_wait(t, id, IB_CM_DREQ_RECEIVED);
	api_end_case(t);
}

static void comm_est(struct api_test *t)
{
	struct api_conn conn;
	struct api_id *id;

	established_from_irq(t, IB_CM_REP_SENT);
	established_from_irq(t, IB_CM_MRA_REP_RCVD);

	api_conn_init(&conn, API_LIFE_TIME);
	id = api_reach(t, &conn, IB_CM_REQ_SENT);
	if (!id)
		return;
	api_eq(t, notify_from_irq(t, id, IB_EVENT_COMM_EST), -EINVAL, "COMM_EST in REQ_SENT");
	api_eq(t, notify_from_irq(t, id, IB_EVENT_PATH_MIG), -EINVAL, "PATH_MIG in REQ_SENT");
	api_eq(t, notify_from_irq(t, id, IB_EVENT_PORT_ERR), -EINVAL, "PORT_ERR in REQ_SENT");
}

static const struct api_case cases[] = {
	{ "a new identifier", created },
	{ "service IDs", service_ids },
	{ "assigned service IDs", assigned_ids },
	{ "a service ID that is in use", busy },
	{ "shared listeners", share_listeners },
	{ "shared listeners and a context", shared_with_context },
	{ "reasons in words", reasons },
	{ "ib_cm_notify from a hard interrupt", comm_est },
};

const struct api_suite api_suite_listen = API_SUITE("listen", cases);
