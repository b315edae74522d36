/* SPDX-License-Identifier: GPL-2.0 */
/* A day of a connection manager; see parity.c. */
#ifndef IB_CM_API_TEST_PARITY_H
#define IB_CM_API_TEST_PARITY_H

#include "wire.h"

#define SERVICE_ID	(API_SERVICE_ID_BASE | 0x10000)
#define NO_SERVICE_ID	(API_SERVICE_ID_BASE | 0x10001)
/* Longer than any wait of the day. */
#define TOO_LONG_MS	8000

/* Response timeouts, in units of 4.096 us times a power of two: 4.3 s, 1.07 s, and 0.27 s where
 * nothing ever comes back.
 */
#define PATIENT		20
#define SOON		18
#define IN_VAIN		16
#define SIDR_PATIENT_MS	4000
#define SIDR_SOON_MS	1000
#define SIDR_IN_VAIN_MS	300

enum mark { PASS, DROP, LOST, TWIN };

/* How a connection, or an attempt at one, ends. */
enum how {
	ACTIVE_DREQ,
	PASSIVE_DREQ,
	NO_LISTENER,
	NO_ANSWER,
	REJECTED,
	REP_REJECTED,
	HANDLER_FAILS,
	NO_RTU,			/* both keep what they have until the end of the day */
	NO_DREP,
	SAME_QPN,		/* a second REQ names the queue pair of a connection */
	DESTROYED_REQ_SENT,
	DESTROYED_REQ_RCVD,
	DESTROYED_REP_SENT,
	DESTROYED_REP_RCVD,
	DESTROYED_ESTABLISHED,
	DESTROYED_DREQ_RCVD,
	ERRORS,			/* every call that is wrong, in several states */
	SIDR,
	SIDR_NO_LISTENER,
	SIDR_NO_ANSWER,
	SIDR_REJECTED,
	BYE,
};

struct step {
	const char *name;
	enum how how;
	enum mark req, rep, rtu, dreq, drep;
	bool req_again, rep_again, dreq_again;	/* the other side's REQ etc. comes again */
	bool mra_req, mra_rep;			/* an MRA is the answer to that */
	bool no_memory;				/* the handler of the first REQ says so */
	bool notify;				/* no RTU, but the queue pair has received */
	bool fence;				/* one more question, behind which all is done */
	bool timewait;				/* both wait for its end */
	enum ib_cm_rej_reason reason;
};

#define STEPS	40

extern const struct step steps[STEPS];

/* What a side wrote, and how many repetitions of each message it has waited for. */
struct side {
	const char *name;
	const struct step *step;
	char *text;
	size_t len;
	struct api_test t;
	long base[WIRE_ATTRS], again[WIRE_ATTRS], mras;
	u8 mine[8];
	bool broken;		/* the rest of the day makes no sense */
};

__printf(2, 3) void tell(struct side *side, const char *fmt, ...);

/* A call, and what it returned. */
#define CALL(side, call) tell(side, "%.*s = %d", (int)strcspn(#call, "("), #call, call)

/* Private data for a message of this step. */
const void *data(struct side *side, enum mark mark);

#define DATA(side, mark)	data(side, mark), sizeof((side)->mine)

/* Returns when one more of these has come that was not the first of its kind. */
void wait_again(struct side *side, enum wire_attr attr);

/* Returns when that many MRAs were sent in this day, by either side. */
void wait_mras_sent(struct side *side, long number);

void tell_event(struct side *side, const struct api_event *got);

/* The next event of an identifier, written down. True when it is the one that should come. */
bool expect(struct side *side, struct api_id *id, enum ib_cm_event_type want);

/* The other host. */
void path_to_peer(struct sa_path_rec *path);

/* Both sides of the day. The passive one hears of requests by a listener with this hook. */
void run_active(struct side *side);
void run_passive(struct side *side);
int refuse_to_hear(struct api_id *id, const struct ib_cm_event *event);

extern struct api_id *parity_listener;
extern bool was_out_of_memory;

#endif /* IB_CM_API_TEST_PARITY_H */
