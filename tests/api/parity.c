// SPDX-License-Identifier: GPL-2.0
/*
 * A day of a connection manager: two hosts go through the table below, each as the active side of
 * its own connections and at the same time as the passive side of the other's. What each side
 * called, got and was told is written down, for a comparison of two modules.
 *
 * The first bytes of a message's private data say what the network does with it; see parity.sh:
 * the first one that says DROP is lost, all that say LOST are, and one that says TWIN comes twice.
 * Nothing is left to time: who expects a repetition waits until it was counted, and who expects
 * none waits for 4 s.
 */

#include <linux/delay.h>
#include <linux/hex.h>
#include <linux/inet.h>
#include <linux/vmalloc.h>

#include "parity.h"

static char *peer = "";
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IPv4 address of the host that the suite parity connects to");

static char *peer_mac = "";
module_param(peer_mac, charp, 0444);
MODULE_PARM_DESC(peer_mac, "its Ethernet address");

#define TEXT_SIZE	(64 * 1024)

const struct step steps[STEPS] = {
	{ "plain", ACTIVE_DREQ, .timewait = true },
	{ "ended by the passive side", PASSIVE_DREQ, .timewait = true },
	{ "REQ lost", ACTIVE_DREQ, .req = DROP },
	{ "REP lost", ACTIVE_DREQ, .rep = DROP },
	/* The repeated RTU would run against a DREQ of the active side. */
	{ "RTU lost", PASSIVE_DREQ, .rtu = DROP, .rep_again = true },
	{ "REQ twice", ACTIVE_DREQ, .req = TWIN, .req_again = true },
	{ "REP twice", ACTIVE_DREQ, .rep = TWIN, .rep_again = true, .fence = true },
	{ "RTU twice", ACTIVE_DREQ, .rtu = TWIN },
	{ "DREQ twice", ACTIVE_DREQ, .dreq = TWIN, .dreq_again = true },
	{ "DREP twice", ACTIVE_DREQ, .drep = TWIN, .timewait = true },
	{ "DREQ lost", ACTIVE_DREQ, .dreq = DROP },
	{ "DREP lost", ACTIVE_DREQ, .drep = DROP },
	{ "MRA to a REQ", ACTIVE_DREQ, .mra_req = true, .req_again = true },
	{ "RTU lost for ever", PASSIVE_DREQ, .rtu = LOST, .notify = true, .fence = true },
	{ "no listener", NO_LISTENER },
	{ "rejected", REJECTED, .reason = IB_CM_REJ_CONSUMER_DEFINED },
	{ "redirected", REJECTED, .reason = IB_CM_REJ_PORT_CM_REDIRECT },
	{ "REP rejected", REP_REJECTED, .reason = IB_CM_REJ_INSUFFICIENT_RESP_RESOURCES },
	{ "handler fails", HANDLER_FAILS },
	{ "handler has no memory", ACTIVE_DREQ, .no_memory = true },
	{ "no answer to a REQ", NO_ANSWER, .req = LOST },
	{ "no answer to a REP", NO_RTU, .rtu = LOST, .rep_again = true },
	/* The passive side is busy with the one before for a while: a patient one follows. */
	{ "queue pair number in use", SAME_QPN },
	{ "no answer to a DREQ", NO_DREP, .dreq = LOST },
	{ "destroyed in REQ_SENT", DESTROYED_REQ_SENT, .req = LOST },
	{ "destroyed in REQ_RCVD", DESTROYED_REQ_RCVD },
	{ "destroyed in REP_SENT", DESTROYED_REP_SENT },
	{ "destroyed in REP_RCVD", DESTROYED_REP_RCVD },
	{ "destroyed in ESTABLISHED", DESTROYED_ESTABLISHED },
	{ "destroyed in DREQ_RCVD", DESTROYED_DREQ_RCVD },
	{ "wrong calls", ERRORS, .timewait = true },
	/* Far behind the other MRA, so that the one that is sent first is that to a REQ. */
	{ "MRA to a REP", ACTIVE_DREQ, .mra_rep = true, .rep_again = true },
	{ "SIDR", SIDR },
	{ "SIDR REQ lost", SIDR, .req = DROP },
	{ "SIDR REQ twice", SIDR, .req = TWIN, .req_again = true },
	{ "SIDR REP twice", SIDR, .rep = TWIN },
	{ "SIDR without listener", SIDR_NO_LISTENER },
	{ "SIDR without answer", SIDR_NO_ANSWER, .req = LOST },
	{ "SIDR rejected", SIDR_REJECTED },
	{ "the end", BYE, .reason = IB_CM_REJ_CONSUMER_DEFINED },
};

static const char mark_names[][4] = { "PASS", "DROP", "LOST", "TWIN" };

static struct side active = { .name = "active" }, passive = { .name = "passive" };
static DECLARE_COMPLETION(begun);
static DECLARE_COMPLETION(ended);
struct api_id *parity_listener;

void path_to_peer(struct sa_path_rec *path)
{
	api_path(path, API_LIFE_TIME);
	ipv6_addr_set_v4mapped(in_aton(peer), (struct in6_addr *)path->dgid.raw);
	mac_pton(peer_mac, path->roce.dmac);
}

void tell(struct side *side, const char *fmt, ...)
{
	va_list args;

	side->len += scnprintf(side->text + side->len, TEXT_SIZE - side->len, "%s, %s: ",
			       side->name, side->step ? side->step->name : "(before)");
	va_start(args, fmt);
	side->len += vscnprintf(side->text + side->len, TEXT_SIZE - side->len, fmt, args);
	va_end(args);
	if (side->len < TEXT_SIZE - 1)
		side->text[side->len++] = '\n';
}

const void *data(struct side *side, enum mark mark)
{
	memcpy(side->mine, mark_names[mark], 4);
	side->mine[4] = side->step - steps;
	return side->mine;
}

/* --- what is waited for --- */

static void wait_counted(struct side *side, enum wire_group group, enum wire_attr attr, long number)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(TOO_LONG_MS);

	while (wire_counter(&api_device, group, attr) < number) {
		if (time_after(jiffies, deadline)) {
			tell(side, "not counted as expected");
			side->broken = true;
			return;
		}
		usleep_range(2000, 4000);
	}
}

void wait_again(struct side *side, enum wire_attr attr)
{
	side->again[attr]++;
	wait_counted(side, WIRE_RX_DUPLICATES, attr, side->base[attr] + side->again[attr]);
}

void wait_mras_sent(struct side *side, long number)
{
	/* Each is the answer to a repetition, and counts as one itself: twice. */
	wait_counted(side, WIRE_TX, WIRE_MRA, side->mras + 2 * number);
}

void tell_event(struct side *side, const struct api_event *got)
{
	const struct ib_cm_event *event = &got->event;
	const struct ib_cm_req_event_param *req = &event->param.req_rcvd;
	const struct ib_cm_rep_event_param *rep = &event->param.rep_rcvd;
	char more[160] = "";

	switch (event->event) {
	case IB_CM_REQ_RECEIVED:
		snprintf(more, sizeof(more), " psn %#x type %d resources %u/%u timeouts %u %u retries %u %u srq %u",
			 req->starting_psn, req->qp_type, req->responder_resources,
			 req->initiator_depth, req->local_cm_response_timeout,
			 req->remote_cm_response_timeout, req->retry_count,
			 req->rnr_retry_count, req->srq);
		break;
	case IB_CM_REP_RECEIVED:
		snprintf(more, sizeof(more), " psn %#x resources %u/%u ack delay %u rnr %u srq %u",
			 rep->starting_psn, rep->responder_resources, rep->initiator_depth,
			 rep->target_ack_delay, rep->rnr_retry_count, rep->srq);
		break;
	case IB_CM_REJ_RECEIVED:
		snprintf(more, sizeof(more), " reason %d information %u: %*phN",
			 event->param.rej_rcvd.reason, event->param.rej_rcvd.ari_length, 4,
			 got->info);
		break;
	case IB_CM_MRA_RECEIVED:
		snprintf(more, sizeof(more), " timeout %u", event->param.mra_rcvd.service_timeout);
		break;
	case IB_CM_SIDR_REP_RECEIVED:
		snprintf(more, sizeof(more), " status %d qkey %#x information %u",
			 event->param.sidr_rep_rcvd.status, event->param.sidr_rep_rcvd.qkey,
			 event->param.sidr_rep_rcvd.info_len);
		break;
	case IB_CM_REQ_ERROR:
	case IB_CM_REP_ERROR:
	case IB_CM_DREQ_ERROR:
	case IB_CM_SIDR_REQ_ERROR:
		snprintf(more, sizeof(more), " status %d", event->param.send_status);
		break;
	default:
		break;
	}
	tell(side, "%s in %s, data %*phN%s", api_event_name(event->event),
	     api_state_name(got->state), 5, got->private_data, more);
}

bool expect(struct side *side, struct api_id *id, enum ib_cm_event_type want)
{
	struct api_event *event = api_wait_ms(id, TOO_LONG_MS);
	bool good = event && event->event.event == want;

	if (event)
		tell_event(side, event);
	if (!good) {
		tell(side, "expected was %s", api_event_name(want));
		side->broken = true;
	}
	return good;
}

/* --- the suites --- */

static void begin(struct side *side)
{
	unsigned int i;

	side->len = 0;
	side->step = NULL;
	side->broken = false;
	memset(&side->t, 0, sizeof(side->t));
	memset(side->again, 0, sizeof(side->again));
	for (i = 0; i < WIRE_ATTRS; i++)
		side->base[i] = wire_counter(&api_device, WIRE_RX_DUPLICATES, i);
	side->mras = wire_counter(&api_device, WIRE_TX, WIRE_MRA);
}

static void show(struct side *side)
{
	char *rest = side->text, *line;

	side->text[side->len] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (*line)
			api_note("%s", line);
}

static void listen_all_day(struct api_test *t)
{
	was_out_of_memory = false;
	parity_listener = api_listen(t, cpu_to_be64(SERVICE_ID));
	if (parity_listener)
		parity_listener->hook = refuse_to_hear;
}

/* The passive side has a process of its own, because kernel threads do not see /sys. */
static void passive_day(struct api_test *t)
{
	if (!wait_for_completion_timeout(&begun, msecs_to_jiffies(API_WAIT_MS)))
		return;
	run_passive(&passive);
	complete(&ended);
}

static void day(struct api_test *t)
{
	active.text = vmalloc(TEXT_SIZE + 1);
	passive.text = vmalloc(TEXT_SIZE + 1);
	if (!api_check(t, active.text && passive.text && parity_listener, "not ready"))
		goto free;
	begin(&active);
	begin(&passive);
	api_wait_limit = TOO_LONG_MS;
	complete(&begun);
	run_active(&active);
	/* It gives up by itself when nothing comes. */
	wait_for_completion(&ended);
	api_wait_limit = API_WAIT_MS;
	show(&active);
	show(&passive);
	api_check(t, !active.broken && !passive.broken, "not all went as it should");
	t->failures += active.t.failures + passive.t.failures;
	t->checks += active.t.checks + passive.t.checks;
free:
	vfree(active.text);
	vfree(passive.text);
}

static const struct api_case morning[] = { { "a listener", listen_all_day } };
static const struct api_case all_day[] = { { "day", day } };
static const struct api_case all_day_passive[] = { { "passive side", passive_day } };

const struct api_suite api_suite_parity_listen = {
	.name = "parity-listen", .cases = morning, .count = 1, .keep = true,
};

const struct api_suite api_suite_parity = API_SUITE("parity", all_day);

const struct api_suite api_suite_parity_passive = {
	.name = "parity-passive", .cases = all_day_passive, .count = 1, .beside = true,
};
