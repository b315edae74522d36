// SPDX-License-Identifier: GPL-2.0
/*
 * What parameters of the module change, each beside what the C module does: the suites named
 * "...-as-c" run with the defaults, and on the C module, the others with the parameter set.
 */

#include <linux/delay.h>
#include <linux/ktime.h>

#include "wire.h"

/* The first repetition in ms, as the scenario sets first_retry_ms. */
#define FIRST_RETRY_MS	500
/* 4096 ms, and the way there and back. */
#define LONG_RESPONSE	20
#define LONG_MS		4096
/* 64 ms, before an MRA asks for 2048 ms. */
#define SHORT_RESPONSE	14
#define SHORT_MS	64
#define MRA_RESPONSE	19
#define MRA_MS		2048
/* Timers count ticks, which are up to 10 ms long. */
#define TICK_MS		10
#define MSG_REQ		0

/* Waits until more than `before` REQs were received; ms since `start`. */
static s64 next_req(struct api_test *t, long before, ktime_t start)
{
	ktime_t deadline = ktime_add_ms(ktime_get(), API_WAIT_MS);

	while (wire_counter(&api_device, WIRE_RX, WIRE_REQ) <= before) {
		if (ktime_after(ktime_get(), deadline)) {
			api_check(t, false, "no further REQ");
			break;
		}
		usleep_range(1000, 2000);
	}
	return ktime_ms_delta(ktime_get(), start);
}

/* A request that its listener leaves without an answer. */
static bool ask_in_vain(struct api_test *t, struct api_conn *conn, u8 response, ktime_t *start)
{
	api_conn_init(conn, API_LIFE_TIME);
	conn->req.remote_cm_response_timeout = response;
	conn->req.local_cm_response_timeout = response;
	*start = ktime_get();
	return api_request(t, conn);
}

/* Ends it; the repetitions are counted when the send is over. */
static void give_up(struct api_test *t, struct api_conn *conn, long retries, long received)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(API_WAIT_MS);
	long repeated, again;

	api_destroy(conn->active);
	do {
		usleep_range(1000, 2000);
		repeated = wire_counter(&api_device, WIRE_TX_RETRIES, WIRE_REQ) - retries;
		again = wire_counter(&api_device, WIRE_RX, WIRE_REQ) - received - 1;
	} while (repeated != again && time_before(jiffies, deadline));
	api_eq(t, repeated, again, "cm_tx_retries/req, and REQs that came again");
}

static void retries_as_c(struct api_test *t)
{
	long retries = wire_counter(&api_device, WIRE_TX_RETRIES, WIRE_REQ);
	long received = wire_counter(&api_device, WIRE_RX, WIRE_REQ);
	struct api_conn conn;
	ktime_t start;
	s64 ms;

	if (!ask_in_vain(t, &conn, LONG_RESPONSE, &start))
		return;
	ms = next_req(t, received + 1, start);
	api_note("repeated after %lld ms", ms);
	api_check(t, ms >= LONG_MS - TICK_MS, "a REQ is repeated after %lld ms", ms);
	give_up(t, &conn, retries, received);
}

/* All repetitions come before the first one of the C module. */
static void retries_back_off(struct api_test *t)
{
	long retries = wire_counter(&api_device, WIRE_TX_RETRIES, WIRE_REQ);
	long received = wire_counter(&api_device, WIRE_RX, WIRE_REQ);
	s64 ms, earliest = 0, wait = FIRST_RETRY_MS;
	struct api_conn conn;
	ktime_t start;
	int i;

	if (!ask_in_vain(t, &conn, LONG_RESPONSE, &start))
		return;
	for (i = 1; i <= 4; i++, wait = min(2 * wait, LONG_MS)) {
		earliest += wait;
		ms = next_req(t, received + i, start);
		api_note("repetition %d after %lld ms, planned %lld", i, ms, earliest);
		api_check(t, ms >= earliest - i * TICK_MS, "repetition %d after %lld ms", i, ms);
		if (i == 1)
			api_check(t, ms < LONG_MS, "the first repetition after %lld ms", ms);
	}
	give_up(t, &conn, retries, received);
}

/* Repetitions after an MRA: when the first and the second come, since the MRA. */
static bool after_mra(struct api_test *t, s64 ms[2])
{
	long retries = wire_counter(&api_device, WIRE_TX_RETRIES, WIRE_REQ);
	long received = wire_counter(&api_device, WIRE_RX, WIRE_REQ);
	struct api_conn conn;
	union wire_mad mad;
	ktime_t start;
	bool good;
	int i;

	if (!wire_open(t, &api_device))
		return false;
	good = ask_in_vain(t, &conn, SHORT_RESPONSE, &start);
	if (!good)
		goto close;
	wire_ids(&mad, WIRE_MRA, conn.passive->cm_id->local_id, conn.active->cm_id->local_id);
	IBA_SET(CM_MRA_MESSAGE_MRAED, &mad.mra, MSG_REQ);
	IBA_SET(CM_MRA_SERVICE_TIMEOUT, &mad.mra, MRA_RESPONSE);
	start = ktime_get();
	good = wire_send(t, &mad) && api_wait(t, conn.active, IB_CM_MRA_RECEIVED);
	if (good) {
		long before = wire_counter(&api_device, WIRE_RX, WIRE_REQ);

		for (i = 0; i < 2; i++)
			ms[i] = next_req(t, before + i, start);
		api_note("repeated %lld and %lld ms after the MRA", ms[0], ms[1]);
		api_check(t, ms[0] >= MRA_MS - TICK_MS, "the MRA is not heeded: %lld ms", ms[0]);
	}
	give_up(t, &conn, retries, received);
close:
	wire_close();
	return good;
}

static void mra_as_c(struct api_test *t)
{
	s64 ms[2];

	if (after_mra(t, ms))
		api_check(t, ms[1] >= 2 * (MRA_MS - TICK_MS), "again after %lld ms", ms[1]);
}

static void mra_once(struct api_test *t)
{
	s64 ms[2];

	if (after_mra(t, ms)) {
		api_check(t, ms[1] >= MRA_MS + SHORT_MS - 2 * TICK_MS, "again after %lld ms", ms[1]);
		api_check(t, ms[1] < 2 * MRA_MS, "again after %lld ms", ms[1]);
	}
}

/* A question is answered, and asked again since the answer was lost. */
static void ask_again(struct api_test *t, bool replayed)
{
	struct ib_cm_sidr_rep_param rep = {
		.qp_num = 0x123456,
		.qkey = 0x1ee7,
		.status = IB_SIDR_SUCCESS,
	};
	struct wire_counters expected;
	struct api_id *listener, *child;
	__be64 service = api_service_id();
	union wire_mad mad;

	listener = api_listen(t, service);
	if (!listener || !wire_begin(t, &expected))
		return;
	wire_format(&mad, WIRE_SIDR_REQ);
	IBA_SET(CM_SIDR_REQ_REQUESTID, &mad.sidr_req, 0x51d4);
	IBA_SET(CM_SIDR_REQ_SERVICEID, &mad.sidr_req, be64_to_cpu(service));
	IBA_SET(CM_SIDR_REQ_PARTITION_KEY, &mad.sidr_req, 0xffff);
	wire_send(t, &mad);
	child = api_wait_child(t, listener);
	if (!child || !api_wait(t, child, IB_CM_SIDR_REQ_RECEIVED))
		goto close;
	api_eq(t, ib_send_cm_sidr_rep(child->cm_id, &rep), 0, "ib_send_cm_sidr_rep");
	api_destroy(child);
	/* Sent by the agent of this test, which counts nothing. */
	wire_expect(&expected, WIRE_RX, WIRE_SIDR_REQ, 1);
	wire_expect_sent(&expected, WIRE_SIDR_REP);
	wire_compare(t, &expected, "the answer");

	wire_expect(&expected, WIRE_RX, WIRE_SIDR_REQ, 1);
	if (replayed) {
		wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_SIDR_REQ, 1);
		wire_expect_repeated(&expected, WIRE_SIDR_REP);
		wire_send_and_compare(t, &mad, &expected, "the question again");
		api_check(t, !api_take_child(listener), "the consumer is asked a second time");
		/* Another one, of the same sender. */
		mad.hdr.tid = ~mad.hdr.tid;
		wire_send(t, &mad);
		child = api_wait_child(t, listener);
	} else {
		wire_send(t, &mad);
		child = api_wait_child(t, listener);
		wire_compare(t, &expected, "the question again");
	}
	api_check(t, child && api_wait(t, child, IB_CM_SIDR_REQ_RECEIVED), "no question");
close:
	wire_close();
}

static void sidr_as_c(struct api_test *t)
{
	ask_again(t, false);
}

static void sidr_replay(struct api_test *t)
{
	ask_again(t, true);
}

static const struct api_case as_c_cases[] = {
	{ "a REQ is repeated after the time that the consumer asks for", retries_as_c },
	{ "an MRA lengthens each wait", mra_as_c },
	{ "a SIDR_REQ that comes again after its answer is a new one", sidr_as_c },
};

static const struct api_case retry_cases[] = {
	{ "the first repetition comes early, the others ever later", retries_back_off },
};

static const struct api_case mra_cases[] = {
	{ "an MRA lengthens one wait", mra_once },
};

static const struct api_case sidr_cases[] = {
	{ "a SIDR_REQ that comes again gets its answer again", sidr_replay },
};

const struct api_suite api_suite_optional_as_c = API_SUITE("optional-as-c", as_c_cases);
const struct api_suite api_suite_first_retry = API_SUITE("first-retry", retry_cases);
const struct api_suite api_suite_mra_once = API_SUITE("mra-once", mra_cases);
const struct api_suite api_suite_sidr_replay = API_SUITE("sidr-replay", sidr_cases);
