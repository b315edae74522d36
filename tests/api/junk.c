// SPDX-License-Identifier: GPL-2.0
/* Messages that make no sense: dropped or rejected, counted, and harmless. */

#include <linux/random.h>

#include "wire.h"

#define RANDOM_BODIES	100

static void still_works(struct api_test *t)
{
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	if (api_connect(t, &conn))
		api_disconnect(t, &conn);
	api_end_case(t);
}

/* Not even counted: no message of a connection manager has these. */
static void headers(struct api_test *t)
{
	static const u16 attr_ids[] = { 0, 1, 0x0f, 0x1b, 0x20, 0x1010, 0xffff };
	static const u8 class_versions[] = { 0, 1, 3, 255 };
	static const u8 methods[] = { 0x01, 0x02, 0x05, 0x06, 0x07, 0x7f, 0x81, 0x83 };
	struct wire_counters expected;
	union wire_mad mad;
	unsigned int i;

	if (!wire_begin(t, &expected))
		return;
	for (i = 0; i < ARRAY_SIZE(attr_ids); i++) {
		wire_format(&mad, WIRE_DREQ);
		mad.hdr.attr_id = cpu_to_be16(attr_ids[i]);
		wire_send_and_compare(t, &mad, &expected, "an unknown attribute");
	}
	for (i = 0; i < ARRAY_SIZE(class_versions); i++) {
		wire_format(&mad, WIRE_DREQ);
		mad.hdr.class_version = class_versions[i];
		wire_send_and_compare(t, &mad, &expected, "another class version");
	}
	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		wire_format(&mad, WIRE_DREQ);
		mad.hdr.method = methods[i];
		wire_send_and_compare(t, &mad, &expected, "another method");
	}
	wire_close();
	still_works(t);
}

/* IDs that nobody has. */
static void unknown_ids(struct api_test *t)
{
	__be32 local_id = cpu_to_be32(get_random_u32()), remote_id = cpu_to_be32(get_random_u32());
	struct wire_counters expected;
	union wire_mad mad;
	unsigned int i;

	if (!wire_begin(t, &expected))
		return;
	for (i = 0; i < 4; i++) {
		wire_ids(&mad, WIRE_MRA, local_id, remote_id);
		IBA_SET(CM_MRA_MESSAGE_MRAED, &mad.mra, i);
		IBA_SET(CM_MRA_SERVICE_TIMEOUT, &mad.mra, i & 1 ? 31 : 0);
		wire_expect(&expected, WIRE_RX, WIRE_MRA, 1);
		wire_send_and_compare(t, &mad, &expected, "MRA for an unknown ID");
	}
	for (i = 0; i < 8; i++) {
		wire_ids(&mad, WIRE_REJ, local_id, remote_id);
		IBA_SET(CM_REJ_MESSAGE_REJECTED, &mad.rej, i);
		IBA_SET(CM_REJ_REASON, &mad.rej, i < 4 ? IB_CM_REJ_TIMEOUT : IB_CM_REJ_STALE_CONN);
		IBA_SET(CM_REJ_REJECTED_INFO_LENGTH, &mad.rej, i & 1 ? 127 : 0);
		wire_expect(&expected, WIRE_RX, WIRE_REJ, 1);
		wire_send_and_compare(t, &mad, &expected, "REJ for an unknown ID");
	}
	wire_ids(&mad, WIRE_RTU, local_id, remote_id);
	wire_expect(&expected, WIRE_RX, WIRE_RTU, 1);
	wire_send_and_compare(t, &mad, &expected, "RTU for an unknown ID");

	wire_ids(&mad, WIRE_DREP, local_id, remote_id);
	wire_expect(&expected, WIRE_RX, WIRE_DREP, 1);
	wire_send_and_compare(t, &mad, &expected, "DREP for an unknown ID");

	wire_ids(&mad, WIRE_LAP, local_id, remote_id);
	wire_expect(&expected, WIRE_RX, WIRE_LAP, 1);
	wire_send_and_compare(t, &mad, &expected, "LAP for an unknown ID");

	wire_ids(&mad, WIRE_APR, local_id, remote_id);
	wire_expect(&expected, WIRE_RX, WIRE_APR, 1);
	wire_send_and_compare(t, &mad, &expected, "APR for an unknown ID");

	wire_format(&mad, WIRE_SIDR_REP);
	IBA_SET(CM_SIDR_REP_REQUESTID, &mad.sidr_rep, be32_to_cpu(remote_id));
	wire_expect(&expected, WIRE_RX, WIRE_SIDR_REP, 1);
	wire_send_and_compare(t, &mad, &expected, "SIDR REP for an unknown ID");

	/* The peer that asks has a connection which we forgot: it may end it. */
	wire_ids(&mad, WIRE_DREQ, local_id, remote_id);
	wire_expect(&expected, WIRE_RX, WIRE_DREQ, 1);
	wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_DREQ, 1);
	wire_expect_repeated(&expected, WIRE_DREP);
	wire_send_and_compare(t, &mad, &expected, "DREQ for an unknown ID");

	/* So does one that replies to a request which we forgot. The C module lets it repeat. */
	wire_ids(&mad, WIRE_REP, local_id, remote_id);
	wire_expect(&expected, WIRE_RX, WIRE_REP, 1);
	if (!api_on_c())
		wire_expect_sent(&expected, WIRE_REJ);
	wire_send_and_compare(t, &mad, &expected, "REP for an unknown ID");
	wire_close();
	still_works(t);
}

static void unknown_services(struct api_test *t)
{
	struct wire_counters expected;
	struct api_conn conn;
	union wire_mad mad;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.active = api_create(t);
	if (!conn.active || !wire_begin(t, &expected))
		return;
	wire_req(&mad, &conn);
	wire_expect(&expected, WIRE_RX, WIRE_REQ, 1);
	wire_expect_sent(&expected, WIRE_REJ);
	wire_send_and_compare(t, &mad, &expected, "REQ to no listener");

	wire_format(&mad, WIRE_SIDR_REQ);
	IBA_SET(CM_SIDR_REQ_REQUESTID, &mad.sidr_req, 0x12345678);
	IBA_SET(CM_SIDR_REQ_SERVICEID, &mad.sidr_req, be64_to_cpu(conn.req.service_id));
	wire_expect(&expected, WIRE_RX, WIRE_SIDR_REQ, 1);
	wire_expect_sent(&expected, WIRE_SIDR_REP);
	wire_send_and_compare(t, &mad, &expected, "SIDR REQ to no listener");
	api_eq(t, conn.active->delivered, 0, "events of an idle identifier");
	wire_close();
}

static int refuse(struct api_id *id, const struct ib_cm_event *event)
{
	return -EINVAL;
}

static void set_service(union wire_mad *mad, enum wire_attr attr, __be64 service_id)
{
	if (attr == WIRE_REQ)
		IBA_SET(CM_REQ_SERVICE_ID, &mad->req, be64_to_cpu(service_id));
	else if (attr == WIRE_SIDR_REQ)
		IBA_SET(CM_SIDR_REQ_SERVICEID, &mad->sidr_req, be64_to_cpu(service_id));
}

/* Every message full of ones, zeros and noise, also to a listener that refuses. */
static void bodies(struct api_test *t)
{
	struct api_id *listener = api_listen(t, api_service_id());
	union wire_mad header, mad;
	unsigned int attr, i;

	if (!listener || !wire_open(t, &api_device))
		return;
	listener->hook = refuse;
	for (attr = 0; attr < WIRE_ATTRS; attr++) {
		for (i = 0; i < RANDOM_BODIES + 2; i++) {
			wire_format(&header, attr);
			if (i < 2)
				memset(&mad, i ? 0xff : 0, sizeof(mad));
			else
				get_random_bytes(&mad, sizeof(mad));
			if (i % 4 == 3)
				set_service(&mad, attr, listener->cm_id->service_id);
			mad.hdr = header.hdr;
			if (!wire_send(t, &mad))
				break;
		}
		wire_fence(t);
	}
	wire_close();
	still_works(t);
}

static void transports(struct api_test *t)
{
	static const struct {
		u8 service, extended;
		enum ib_qp_type qp_type;
	} types[] = {
		{ 0, 0, IB_QPT_RC },
		{ 0, 7, IB_QPT_RC },
		{ 1, 0, IB_QPT_UC },
		{ 3, 1, IB_QPT_XRC_TGT },
		/* A consumer sees that it is none that it knows. */
		{ 2, 0, 0 },
		{ 3, 0, 0 },
		{ 3, 2, 0 },
		{ 3, 7, 0 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct api_event *event;
		struct api_conn conn;
		union wire_mad mad;

		api_conn_init(&conn, API_LIFE_TIME);
		conn.active = api_create(t);
		conn.listener = api_listen(t, conn.req.service_id);
		if (!conn.active || !conn.listener || !wire_open(t, &api_device))
			return;
		wire_req(&mad, &conn);
		IBA_SET(CM_REQ_TRANSPORT_SERVICE_TYPE, &mad.req, types[i].service);
		IBA_SET(CM_REQ_EXTENDED_TRANSPORT_TYPE, &mad.req, types[i].extended);
		wire_send(t, &mad);
		wire_close();
		conn.passive = api_wait_child(t, conn.listener);
		event = conn.passive ? api_wait(t, conn.passive, IB_CM_REQ_RECEIVED) : NULL;
		if (event)
			api_eq(t, event->event.param.req_rcvd.qp_type, types[i].qp_type,
			       "queue pair type of the transport %u.%u", types[i].service,
			       types[i].extended);
		api_end_case(t);
	}
}

/* What a request asks for that its listener's port cannot give: rejected with the port's own GID
 * beside the reason, and not shown to the listener. The one who gets the rejection is in REQ_SENT
 * for something else; the request bears its ID, but another GUID.
 */
static void bad_primary(struct api_test *t, void (*spoil)(struct cm_req_msg *req), const char *what)
{
	struct api_event *event;
	struct api_conn conn;
	union wire_mad mad;
	union ib_gid gid;

	api_conn_init(&conn, API_LIFE_TIME_LONG);
	if (!api_reach(t, &conn, IB_CM_REQ_SENT) || !wire_open(t, &api_device))
		return;
	wire_req(&mad, &conn);
	IBA_SET(CM_REQ_LOCAL_CA_GUID, &mad.req, ~be64_to_cpu(api_device.ib_device->node_guid));
	spoil(&mad.req);
	wire_send(t, &mad);
	wire_close();
	event = api_wait(t, conn.active, IB_CM_REJ_RECEIVED);
	if (event) {
		const struct ib_cm_rej_event_param *rej = &event->event.param.rej_rcvd;

		api_eq(t, rej->reason, IB_CM_REJ_INVALID_GID, "%s: reason", what);
		api_eq(t, rej->ari_length, sizeof(gid), "%s: length of the information", what);
		api_eq(t, rdma_query_gid(api_device.ib_device, api_device.port, 0, &gid), 0,
		       "the first GID of the port");
		api_check(t, !memcmp(event->info, &gid, sizeof(gid)), "%s: another GID", what);
	}
	api_check(t, list_empty(&conn.listener->children), "%s: shown to the listener", what);
	api_end_case(t);
}

static void spoil_pkey(struct cm_req_msg *req)
{
	IBA_SET(CM_REQ_PARTITION_KEY, req, 0x9234);
}

static void spoil_gid(struct cm_req_msg *req)
{
	union ib_gid *gid = IBA_GET_MEM_PTR(CM_REQ_PRIMARY_LOCAL_PORT_GID, req);

	/* No IPv4 address any more, while the other one is. */
	gid->raw[0] = 0xfd;
}

static void primaries(struct api_test *t)
{
	bad_primary(t, spoil_pkey, "a P_Key that the port does not have");
	bad_primary(t, spoil_gid, "a GID that cannot be reached");
}

/* A DREQ on one device that names a connection of another one. */
static void other_device(struct api_test *t)
{
	struct roce_device other;
	struct api_conn conn;
	union wire_mad mad;

	if (api_on_c()) {
		api_expected_difference("a message that names an ID of another device");
		return;
	}
	if (roce_open(&other, "v1")) {
		api_note("skipped: there is no RoCE device on v1");
		return;
	}
	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_connect(t, &conn) || !wire_open(t, &other))
		goto close;
	wire_ids(&mad, WIRE_DREQ, conn.active->cm_id->local_id, conn.passive->cm_id->local_id);
	IBA_SET(CM_DREQ_REMOTE_QPN_EECN, &mad.dreq, conn.rep.qp_num);
	wire_send(t, &mad);
	wire_ids(&mad, WIRE_REJ, conn.active->cm_id->local_id, conn.passive->cm_id->local_id);
	IBA_SET(CM_REJ_MESSAGE_REJECTED, &mad.rej, 2);
	IBA_SET(CM_REJ_REASON, &mad.rej, IB_CM_REJ_CONSUMER_DEFINED);
	wire_send(t, &mad);
	wire_close();
	/* Another message of that device is answered, so these were looked at. */
	if (wire_open(t, &other)) {
		struct wire_counters expected;

		wire_count(&expected);
		wire_ids(&mad, WIRE_DREQ, cpu_to_be32(get_random_u32()), cpu_to_be32(1));
		wire_expect(&expected, WIRE_RX, WIRE_DREQ, 1);
		wire_expect(&expected, WIRE_RX_DUPLICATES, WIRE_DREQ, 1);
		wire_expect_repeated(&expected, WIRE_DREP);
		wire_send(t, &mad);
		wire_compare(t, &expected, "DREQ for an unknown ID of another device");
		wire_close();
	}
	api_eq(t, conn.passive->cm_id->state, IB_CM_ESTABLISHED, "state afterwards");
	api_disconnect(t, &conn);
close:
	roce_close(&other);
}

static const struct api_case cases[] = {
	{ "headers of no message", headers },
	{ "unknown IDs", unknown_ids },
	{ "unknown services", unknown_services },
	{ "ones, zeros and noise", bodies },
	{ "transports", transports },
	{ "P_Keys and GIDs that do not fit", primaries },
	{ "IDs of another device", other_device },
};

const struct api_suite api_suite_junk = API_SUITE("junk", cases);
