/* SPDX-License-Identifier: GPL-2.0 */
/* Messages that no connection manager made: sent from a MAD agent of the tests' own. */
#ifndef IB_CM_API_TEST_WIRE_H
#define IB_CM_API_TEST_WIRE_H

#include <rdma/ib_mad.h>
#include <rdma/ibta_vol1_c12.h>

#include "api.h"

#define WIRE_CLASS_VERSION	2
#define WIRE_ATTRS		11
#define WIRE_FIRST_ATTR		0x10

enum wire_group {
	WIRE_TX,
	WIRE_TX_RETRIES,
	WIRE_RX,
	WIRE_RX_DUPLICATES,
	WIRE_GROUPS,
};

enum wire_attr {
	WIRE_REQ,
	WIRE_MRA,
	WIRE_REJ,
	WIRE_REP,
	WIRE_RTU,
	WIRE_DREQ,
	WIRE_DREP,
	WIRE_SIDR_REQ,
	WIRE_SIDR_REP,
	WIRE_LAP,
	WIRE_APR,
};

/* All of the messages have one size. */
union wire_mad {
	struct ib_mad_hdr hdr;
	u8 bytes[IB_MGMT_MAD_SIZE];
	struct cm_req_msg req;
	struct cm_mra_msg mra;
	struct cm_rej_msg rej;
	struct cm_rep_msg rep;
	struct cm_rtu_msg rtu;
	struct cm_dreq_msg dreq;
	struct cm_drep_msg drep;
	struct cm_lap_msg lap;
	struct cm_apr_msg apr;
	struct cm_sidr_req_msg sidr_req;
	struct cm_sidr_rep_msg sidr_rep;
};

struct wire_counters {
	long value[WIRE_GROUPS][WIRE_ATTRS];
};

/* Opens an agent on the device that sends to the device itself. */
bool wire_open(struct api_test *t, const struct roce_device *device);
void wire_close(void);

/* Opens one on the usual device, and counts when all that was before is over. */
bool wire_begin(struct api_test *t, struct wire_counters *counters);

void wire_format(union wire_mad *mad, enum wire_attr attr);
bool wire_send(struct api_test *t, union wire_mad *mad);

/* The messages of a connection, as its other end sends them. */
void wire_req(union wire_mad *mad, const struct api_conn *conn);
void wire_ids(union wire_mad *mad, enum wire_attr attr, __be32 local_id, __be32 remote_id);

void wire_count(struct wire_counters *counters);

/* One counter of a device, which needs no agent. */
long wire_counter(const struct roce_device *device, enum wire_group group, enum wire_attr attr);

/* Returns when all messages that were sent before have been looked at. */
bool wire_fence(struct api_test *t);

/* Adds what is expected of one message: received, and what comes of it. */
void wire_expect(struct wire_counters *expected, enum wire_group group, enum wire_attr attr,
		 long number);

/* A message that is sent once, and received by the same device. */
void wire_expect_sent(struct wire_counters *expected, enum wire_attr attr);

/* The same, of an answer that is counted as a repetition. */
void wire_expect_repeated(struct wire_counters *expected, enum wire_attr attr);

/* Waits until the counters are as expected. */
void wire_compare(struct api_test *t, const struct wire_counters *expected, const char *what);

/* Sends, waits, and compares all the counters with those expected, which start as they are. */
void wire_send_and_compare(struct api_test *t, union wire_mad *mad, struct wire_counters *expected,
			   const char *what);

#endif /* IB_CM_API_TEST_WIRE_H */
