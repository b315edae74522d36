// SPDX-License-Identifier: GPL-2.0
/*
 * A consumer of ib_cm that records its events, and notices what the contract forbids: two
 * handlers of one identifier at the same time, a handler after the destruction.
 */

#include <linux/delay.h>
#include <linux/inetdevice.h>
#include <linux/slab.h>

#include "api.h"

struct roce_device api_device;
struct api_id *api_shared_listener;
unsigned int api_wait_limit = API_WAIT_MS;
atomic_t api_other_calls;

/* Identifiers of the running case, and those of cases before it. */
static LIST_HEAD(living);
static LIST_HEAD(graves);
static DEFINE_SPINLOCK(lists_lock);

static u64 next_service = API_SERVICE_ID_BASE;
/* Far from the numbers of real queue pairs. */
static u32 next_qpn = 0x400000;

static const char * const state_names[] = {
	[IB_CM_IDLE] = "IDLE",
	[IB_CM_LISTEN] = "LISTEN",
	[IB_CM_REQ_SENT] = "REQ_SENT",
	[IB_CM_REQ_RCVD] = "REQ_RCVD",
	[IB_CM_MRA_REQ_SENT] = "MRA_REQ_SENT",
	[IB_CM_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
	[IB_CM_REP_SENT] = "REP_SENT",
	[IB_CM_REP_RCVD] = "REP_RCVD",
	[IB_CM_MRA_REP_SENT] = "MRA_REP_SENT",
	[IB_CM_MRA_REP_RCVD] = "MRA_REP_RCVD",
	[IB_CM_ESTABLISHED] = "ESTABLISHED",
	[IB_CM_DREQ_SENT] = "DREQ_SENT",
	[IB_CM_DREQ_RCVD] = "DREQ_RCVD",
	[IB_CM_TIMEWAIT] = "TIMEWAIT",
	[IB_CM_SIDR_REQ_SENT] = "SIDR_REQ_SENT",
	[IB_CM_SIDR_REQ_RCVD] = "SIDR_REQ_RCVD",
};

static const char * const event_names[] = {
	[IB_CM_REQ_ERROR] = "REQ_ERROR",
	[IB_CM_REQ_RECEIVED] = "REQ_RECEIVED",
	[IB_CM_REP_ERROR] = "REP_ERROR",
	[IB_CM_REP_RECEIVED] = "REP_RECEIVED",
	[IB_CM_RTU_RECEIVED] = "RTU_RECEIVED",
	[IB_CM_USER_ESTABLISHED] = "USER_ESTABLISHED",
	[IB_CM_DREQ_ERROR] = "DREQ_ERROR",
	[IB_CM_DREQ_RECEIVED] = "DREQ_RECEIVED",
	[IB_CM_DREP_RECEIVED] = "DREP_RECEIVED",
	[IB_CM_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
	[IB_CM_MRA_RECEIVED] = "MRA_RECEIVED",
	[IB_CM_REJ_RECEIVED] = "REJ_RECEIVED",
	[IB_CM_LAP_ERROR] = "LAP_ERROR",
	[IB_CM_LAP_RECEIVED] = "LAP_RECEIVED",
	[IB_CM_APR_RECEIVED] = "APR_RECEIVED",
	[IB_CM_SIDR_REQ_ERROR] = "SIDR_REQ_ERROR",
	[IB_CM_SIDR_REQ_RECEIVED] = "SIDR_REQ_RECEIVED",
	[IB_CM_SIDR_REP_RECEIVED] = "SIDR_REP_RECEIVED",
};

const char *api_state_name(enum ib_cm_state state)
{
	return (unsigned int)state < ARRAY_SIZE(state_names) ? state_names[state] : "(no state)";
}

const char *api_event_name(enum ib_cm_event_type event)
{
	return (unsigned int)event < ARRAY_SIZE(event_names) ? event_names[event] : "(no event)";
}

__be64 api_service_id(void)
{
	return cpu_to_be64(next_service++);
}

u32 api_qpn(void)
{
	return next_qpn++;
}

/* --- events --- */

static size_t private_data_size(enum ib_cm_event_type event)
{
	switch (event) {
	case IB_CM_REQ_RECEIVED:
		return IB_CM_REQ_PRIVATE_DATA_SIZE;
	case IB_CM_REP_RECEIVED:
		return IB_CM_REP_PRIVATE_DATA_SIZE;
	case IB_CM_RTU_RECEIVED:
		return IB_CM_RTU_PRIVATE_DATA_SIZE;
	case IB_CM_DREQ_RECEIVED:
		return IB_CM_DREQ_PRIVATE_DATA_SIZE;
	case IB_CM_DREP_RECEIVED:
		return IB_CM_DREP_PRIVATE_DATA_SIZE;
	case IB_CM_MRA_RECEIVED:
		return IB_CM_MRA_PRIVATE_DATA_SIZE;
	case IB_CM_REJ_RECEIVED:
		return IB_CM_REJ_PRIVATE_DATA_SIZE;
	case IB_CM_SIDR_REQ_RECEIVED:
		return IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE;
	case IB_CM_SIDR_REP_RECEIVED:
		return IB_CM_SIDR_REP_PRIVATE_DATA_SIZE;
	default:
		return 0;
	}
}

/* Copies all that the event points at, which a consumer may do. */
static struct api_event *copy_event(const struct ib_cm_event *event, enum ib_cm_state state)
{
	struct api_event *copy = kzalloc(sizeof(*copy), GFP_KERNEL);
	const struct ib_cm_req_event_param *req = &event->param.req_rcvd;
	size_t size = private_data_size(event->event);

	if (!copy)
		return NULL;
	copy->event = *event;
	copy->state = state;
	if (size)
		memcpy(copy->private_data, event->private_data, size);
	switch (event->event) {
	case IB_CM_REQ_RECEIVED:
		copy->path[0] = *req->primary_path;
		if (req->alternate_path)
			copy->path[1] = *req->alternate_path;
		break;
	case IB_CM_REJ_RECEIVED:
		memcpy(copy->info, event->param.rej_rcvd.ari, sizeof(copy->info));
		break;
	case IB_CM_SIDR_REP_RECEIVED:
		memcpy(copy->info, event->param.sidr_rep_rcvd.info, sizeof(copy->info));
		break;
	default:
		break;
	}
	return copy;
}

static void enter_handler(struct api_id *id)
{
	bool bad_context = !in_task() || irqs_disabled();
	unsigned long flags;

	spin_lock_irqsave(&id->lock, flags);
	if (id->running++)
		id->overlaps++;
	if (id->gone)
		id->late++;
	id->bad_context += bad_context;
	id->delivered++;
	spin_unlock_irqrestore(&id->lock, flags);
}

static void leave_handler(struct api_id *id, struct api_event *copy, bool gone)
{
	unsigned long flags;

	spin_lock_irqsave(&id->lock, flags);
	id->running--;
	if (gone) {
		id->gone = true;
		id->cm_id = NULL;
	}
	list_add_tail(&copy->link, &id->events);
	spin_unlock_irqrestore(&id->lock, flags);
	wake_up_all(&id->wait);
}

static void publish_child(struct api_id *listener, struct api_id *child)
{
	unsigned long flags;

	spin_lock_irqsave(&listener->lock, flags);
	list_add_tail(&child->sibling, &listener->children);
	spin_unlock_irqrestore(&listener->lock, flags);
	wake_up_all(&listener->wait);
}

int api_handler(struct ib_cm_id *cm_id, const struct ib_cm_event *event)
{
	struct api_id *id = cm_id->context, *listener = NULL;
	struct api_event *copy = copy_event(event, cm_id->state);
	int ret = 0;

	if (!copy)
		return 0;
	if (event->event == IB_CM_REQ_RECEIVED || event->event == IB_CM_SIDR_REQ_RECEIVED) {
		listener = id ? id : api_shared_listener;
		id = api_new();
		if (!id) {
			kfree(copy);
			return -ENOMEM;
		}
		id->cm_id = cm_id;
		id->listener = listener;
		id->hook = listener->hook;
		id->hook_data = listener->hook_data;
		cm_id->context = id;
	}
	enter_handler(id);
	if (id->hook)
		ret = id->hook(id, event);
	leave_handler(id, copy, ret);
	if (listener)
		publish_child(listener, id);
	return ret;
}

/* The same as another function: for listeners that may not be shared, and for consumers that
 * change the handler of an identifier.
 */
int api_other_handler(struct ib_cm_id *cm_id, const struct ib_cm_event *event)
{
	atomic_inc(&api_other_calls);
	return api_handler(cm_id, event);
}

/* --- identifiers --- */

struct api_id *api_new(void)
{
	struct api_id *id = kzalloc(sizeof(*id), GFP_KERNEL);

	if (!id)
		return NULL;
	spin_lock_init(&id->lock);
	INIT_LIST_HEAD(&id->events);
	INIT_LIST_HEAD(&id->taken);
	INIT_LIST_HEAD(&id->children);
	INIT_LIST_HEAD(&id->sibling);
	init_waitqueue_head(&id->wait);
	spin_lock_irq(&lists_lock);
	list_add_tail(&id->link, &living);
	spin_unlock_irq(&lists_lock);
	return id;
}

struct api_id *api_create(struct api_test *t)
{
	struct api_id *id = api_new();
	struct ib_cm_id *cm_id;

	if (!api_check(t, id, "no memory"))
		return NULL;
	cm_id = ib_create_cm_id(api_device.ib_device, api_handler, id);
	if (!api_check(t, !IS_ERR(cm_id), "ib_create_cm_id: %pe", cm_id)) {
		id->gone = true;
		return NULL;
	}
	id->cm_id = cm_id;
	return id;
}

struct api_id *api_listen(struct api_test *t, __be64 service_id)
{
	struct api_id *id = api_create(t);

	if (!id || !api_eq(t, ib_cm_listen(id->cm_id, service_id), 0, "ib_cm_listen"))
		return NULL;
	return id;
}

void api_destroy(struct api_id *id)
{
	struct ib_cm_id *cm_id = id->cm_id;
	unsigned long flags;

	if (!cm_id)
		return;
	ib_destroy_cm_id(cm_id);
	spin_lock_irqsave(&id->lock, flags);
	id->cm_id = NULL;
	id->gone = true;
	/* Nothing may run now. */
	id->late += id->running;
	spin_unlock_irqrestore(&id->lock, flags);
}

static struct api_event *take_event(struct api_id *id)
{
	struct api_event *event;
	unsigned long flags;

	spin_lock_irqsave(&id->lock, flags);
	event = list_first_entry_or_null(&id->events, struct api_event, link);
	if (event)
		list_move_tail(&event->link, &id->taken);
	spin_unlock_irqrestore(&id->lock, flags);
	return event;
}

struct api_event *api_wait_ms(struct api_id *id, unsigned int ms)
{
	struct api_event *event = NULL;

	wait_event_timeout(id->wait, (event = take_event(id)), msecs_to_jiffies(ms));
	return event;
}

struct api_event *api_wait(struct api_test *t, struct api_id *id, enum ib_cm_event_type want)
{
	struct api_event *event = api_wait_ms(id, api_wait_limit);

	if (!api_check(t, event, "no event came, expected %s", api_event_name(want)))
		return NULL;
	if (!api_check(t, event->event.event == want, "got the event %s in %s, expected %s",
		       api_event_name(event->event.event), api_state_name(event->state),
		       api_event_name(want)))
		return NULL;
	return event;
}

bool api_wait_state(struct api_id *id, enum ib_cm_state want)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(API_WAIT_MS);

	while (READ_ONCE(id->cm_id->state) != want) {
		if (time_after(jiffies, deadline))
			return false;
		usleep_range(1000, 2000);
	}
	return true;
}

struct api_id *api_take_child(struct api_id *listener)
{
	struct api_id *child;
	unsigned long flags;

	spin_lock_irqsave(&listener->lock, flags);
	child = list_first_entry_or_null(&listener->children, struct api_id, sibling);
	if (child)
		list_del_init(&child->sibling);
	spin_unlock_irqrestore(&listener->lock, flags);
	return child;
}

struct api_id *api_wait_child(struct api_test *t, struct api_id *listener)
{
	struct api_id *child = NULL;

	wait_event_timeout(listener->wait, (child = api_take_child(listener)),
			   msecs_to_jiffies(api_wait_limit));
	api_check(t, child, "the listener got no request");
	return child;
}

/* --- the end --- */

static struct api_id *next_living(void)
{
	struct api_id *id;

	spin_lock_irq(&lists_lock);
	id = list_first_entry_or_null(&living, struct api_id, link);
	if (id)
		list_move_tail(&id->link, &graves);
	spin_unlock_irq(&lists_lock);
	return id;
}

void api_end_case(struct api_test *t)
{
	struct api_id *id;

	/* The destruction of a listener can be preceded by one more request: until none is left. */
	while ((id = next_living()))
		api_destroy(id);
	api_shared_listener = NULL;
}

void api_end_suite(struct api_test *t)
{
	unsigned int late = 0, overlaps = 0, bad_context = 0;
	struct api_id *id;

	list_for_each_entry(id, &graves, link) {
		late += id->late;
		overlaps += id->overlaps;
		bad_context += id->bad_context;
	}
	api_eq(t, late, 0, "handlers after the end of their identifier");
	api_eq(t, overlaps, 0, "handlers beside another of the same identifier");
	api_eq(t, bad_context, 0, "handlers outside process context");
}

static void free_events(struct list_head *list)
{
	struct api_event *event, *next;

	list_for_each_entry_safe(event, next, list, link)
		kfree(event);
}

void api_free_all(void)
{
	struct api_id *id, *next;

	list_for_each_entry_safe(id, next, &graves, link) {
		free_events(&id->events);
		free_events(&id->taken);
		list_del(&id->link);
		kfree(id);
	}
}
