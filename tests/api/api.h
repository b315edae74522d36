/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of the ib_cm symbols share: cases and checks, a consumer that records its
 * events, and connections of a device to itself that are brought to any state.
 */
#ifndef IB_CM_API_TEST_H
#define IB_CM_API_TEST_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <rdma/ib_cm.h>

#include "roce.h"

/* How long to wait for something that must happen; emulated machines are slow. */
#define API_WAIT_MS		20000

/* Nothing else uses these; the top byte is not that of assigned IDs. */
#define API_SERVICE_ID_BASE	0x1000a91000000000ULL

/* --- cases and checks (main.c) --- */

struct api_test {
	unsigned int checks;
	unsigned int failures;
	bool quiet;		/* what fails is expected to */
};

struct api_case {
	const char *name;
	void (*run)(struct api_test *t);
};

struct api_suite {
	const char *name;
	const struct api_case *cases;
	unsigned int count;
	bool keep;		/* what it makes stays */
	bool no_device;		/* runs without one */
	bool beside;		/* runs beside another, whose results hold its own */
};

#define API_SUITE(_name, _cases) \
	{ .name = (_name), .cases = (_cases), .count = ARRAY_SIZE(_cases) }

extern const struct api_suite api_suite_errno_state;
extern const struct api_suite api_suite_errno_param;
extern const struct api_suite api_suite_listen;
extern const struct api_suite api_suite_qp_attr;
extern const struct api_suite api_suite_order;
extern const struct api_suite api_suite_handlers;
extern const struct api_suite api_suite_refused;
extern const struct api_suite api_suite_data;
extern const struct api_suite api_suite_destroy;
extern const struct api_suite api_suite_junk;
extern const struct api_suite api_suite_duplicates;
extern const struct api_suite api_suite_stale;
extern const struct api_suite api_suite_parity_listen;
extern const struct api_suite api_suite_parity;
extern const struct api_suite api_suite_parity_passive;
extern const struct api_suite api_suite_device_hold;
extern const struct api_suite api_suite_device_gone;
extern const struct api_suite api_suite_many;
extern const struct api_suite api_suite_many_gone;
extern const struct api_suite api_suite_optional_as_c;
extern const struct api_suite api_suite_first_retry;
extern const struct api_suite api_suite_mra_once;
extern const struct api_suite api_suite_sidr_replay;
extern const struct api_suite api_suite_slow_handler;

/* Destroys what the suite "many" has made. */
void api_many_free(void);

/* True when the module under test is the C one. */
bool api_on_c(void);

/* A remark in the results. */
__printf(1, 2) void api_note(const char *fmt, ...);

/* Says that the C module is known to be wrong here, and is therefore not asked. */
__printf(1, 2) void api_expected_difference(const char *fmt, ...);

__printf(3, 4) bool api_check(struct api_test *t, bool good, const char *fmt, ...);

#define api_eq(t, got, want, fmt, ...)						\
({										\
	long long __got = (long long)(got), __want = (long long)(want);		\
										\
	api_check(t, __got == __want, fmt ": got %lld, expected %lld",		\
		  ##__VA_ARGS__, __got, __want);				\
})

/* --- a consumer (consumer.c) --- */

/* The device that a suite runs on; valid during the suite. */
extern struct roce_device api_device;

/* An event with everything that is valid in the handler only. */
struct api_event {
	struct list_head link;
	struct ib_cm_event event;
	enum ib_cm_state state;
	u8 private_data[IB_CM_DREP_PRIVATE_DATA_SIZE];
	u8 info[IB_CM_REJ_ARI_LENGTH];
	struct sa_path_rec path[2];
};

struct api_id;

/* Runs inside the handler, after the event was recorded; its result is the handler's. */
typedef int (*api_hook)(struct api_id *id, const struct ib_cm_event *event);

/* An identifier of a consumer. It stays in memory when the ib_cm_id is gone. */
struct api_id {
	struct list_head link;
	struct ib_cm_id *cm_id;
	struct api_id *listener;
	spinlock_t lock;	/* of what follows */
	struct list_head events;
	struct list_head taken;
	struct list_head children;
	struct list_head sibling;
	wait_queue_head_t wait;
	unsigned int delivered;
	unsigned int running;
	unsigned int overlaps;
	unsigned int late;
	unsigned int bad_context;
	bool gone;
	api_hook hook;
	void *hook_data;
};

int api_handler(struct ib_cm_id *cm_id, const struct ib_cm_event *event);
int api_other_handler(struct ib_cm_id *cm_id, const struct ib_cm_event *event);

extern atomic_t api_other_calls;

/* How long api_wait and api_wait_child wait. */
extern unsigned int api_wait_limit;
extern unsigned int api_slow;

/* The listener whose ib_cm_id has no context, because it is shared. */
extern struct api_id *api_shared_listener;

struct api_id *api_new(void);
struct api_id *api_create(struct api_test *t);
struct api_id *api_listen(struct api_test *t, __be64 service_id);
void api_destroy(struct api_id *id);

/* The next event, or NULL when none comes in time. */
struct api_event *api_wait_ms(struct api_id *id, unsigned int ms);
struct api_event *api_wait(struct api_test *t, struct api_id *id, enum ib_cm_event_type want);
bool api_wait_state(struct api_id *id, enum ib_cm_state want);

/* The next identifier that a REQ or SIDR REQ made, or NULL. */
struct api_id *api_wait_child(struct api_test *t, struct api_id *listener);

/* One that is there already, or NULL. */
struct api_id *api_take_child(struct api_id *listener);

/* Destroys what a case left, and counts what must not have happened. */
void api_end_case(struct api_test *t);
void api_end_suite(struct api_test *t);
void api_free_all(void);

__be64 api_service_id(void);
u32 api_qpn(void);
const char *api_state_name(enum ib_cm_state state);
const char *api_event_name(enum ib_cm_event_type event);

/* --- connections (connection.c) --- */

struct api_conn {
	struct api_id *listener;
	struct api_id *active;
	struct api_id *passive;
	struct sa_path_rec path;
	struct ib_cm_req_param req;
	struct ib_cm_rep_param rep;
};

#define API_LIFE_TIME		9	/* a REQ is repeated after about 260 ms */
#define API_LIFE_TIME_LONG	18	/* TimeWait takes 2 s */

void api_path(struct sa_path_rec *path, u8 packet_life_time);
void api_conn_init(struct api_conn *conn, u8 packet_life_time);

/* Brings a connection to where one of its ends is in the state, and returns that end. */
struct api_id *api_reach(struct api_test *t, struct api_conn *conn, enum ib_cm_state state);

/* The parts of it. */
bool api_request(struct api_test *t, struct api_conn *conn);
bool api_connect(struct api_test *t, struct api_conn *conn);
bool api_disconnect(struct api_test *t, struct api_conn *conn);

/* The life time that makes a state last long enough for a test. */
u8 api_life_time(enum ib_cm_state state);

#endif /* IB_CM_API_TEST_H */
