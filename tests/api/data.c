// SPDX-License-Identifier: GPL-2.0
/* What one side passes and the other gets: private data of every length, and every field. */

#include "api.h"

/* As long as the largest, and different in each place and for each length. */
static u8 pattern[IB_CM_DREP_PRIVATE_DATA_SIZE + 1];

static void fill(unsigned int len)
{
	unsigned int i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = i < len ? i * 7 + len + 1 : 0;
}

static u8 upto(unsigned int len, unsigned int most)
{
	return min(len, most);
}

/* The rest of the space for private data is zero. */
static void compare(struct api_test *t, const struct api_event *event, unsigned int len,
		    unsigned int most)
{
	if (!event)
		return;
	len = upto(len, most);
	api_check(t, !memcmp(event->private_data, pattern, len), "%s: other private data, length %u",
		  api_event_name(event->event.event), len);
	api_check(t, !memchr_inv(event->private_data + len, 0, most - len),
		  "%s: more private data than %u", api_event_name(event->event.event), len);
}

static bool one_connection(struct api_test *t, unsigned int len)
{
	struct api_event *event;
	struct api_conn conn;

	fill(len);
	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.private_data = pattern;
	conn.req.private_data_len = upto(len, IB_CM_REQ_PRIVATE_DATA_SIZE);
	conn.rep.private_data = pattern;
	conn.rep.private_data_len = upto(len, IB_CM_REP_PRIVATE_DATA_SIZE);
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return false;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	conn.passive = api_wait_child(t, conn.listener);
	if (!conn.passive)
		return false;
	event = api_wait(t, conn.passive, IB_CM_REQ_RECEIVED);
	compare(t, event, len, IB_CM_REQ_PRIVATE_DATA_SIZE);
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	event = api_wait(t, conn.active, IB_CM_REP_RECEIVED);
	compare(t, event, len, IB_CM_REP_PRIVATE_DATA_SIZE);
	api_eq(t, ib_send_cm_rtu(conn.active->cm_id, pattern,
				 upto(len, IB_CM_RTU_PRIVATE_DATA_SIZE)), 0, "ib_send_cm_rtu");
	event = api_wait(t, conn.passive, IB_CM_RTU_RECEIVED);
	compare(t, event, len, IB_CM_RTU_PRIVATE_DATA_SIZE);
	api_eq(t, ib_send_cm_dreq(conn.active->cm_id, pattern,
				  upto(len, IB_CM_DREQ_PRIVATE_DATA_SIZE)), 0, "ib_send_cm_dreq");
	event = api_wait(t, conn.passive, IB_CM_DREQ_RECEIVED);
	compare(t, event, len, IB_CM_DREQ_PRIVATE_DATA_SIZE);
	api_eq(t, ib_send_cm_drep(conn.passive->cm_id, pattern,
				  upto(len, IB_CM_DREP_PRIVATE_DATA_SIZE)), 0, "ib_send_cm_drep");
	event = api_wait(t, conn.active, IB_CM_DREP_RECEIVED);
	compare(t, event, len, IB_CM_DREP_PRIVATE_DATA_SIZE);
	return event;
}

static void connections(struct api_test *t)
{
	unsigned int len;

	for (len = 0; len <= IB_CM_DREP_PRIVATE_DATA_SIZE; len++) {
		if (!one_connection(t, len))
			break;
		api_end_case(t);
	}
}

static bool one_rejection(struct api_test *t, unsigned int len)
{
	u8 ari_length = upto(len, IB_CM_REJ_ARI_LENGTH);
	struct api_event *event;
	struct api_conn conn;

	fill(len);
	api_conn_init(&conn, API_LIFE_TIME);
	if (!api_request(t, &conn))
		return false;
	api_eq(t, ib_send_cm_rej(conn.passive->cm_id, IB_CM_REJ_NO_QP, pattern, ari_length, pattern,
				 upto(len, IB_CM_REJ_PRIVATE_DATA_SIZE)), 0, "ib_send_cm_rej");
	event = api_wait(t, conn.active, IB_CM_REJ_RECEIVED);
	if (!event)
		return false;
	compare(t, event, len, IB_CM_REJ_PRIVATE_DATA_SIZE);
	api_eq(t, event->event.param.rej_rcvd.ari_length, ari_length, "length of the information");
	api_check(t, !memcmp(event->info, pattern, ari_length), "other information, length %u",
		  ari_length);
	api_check(t, !memchr_inv(event->info + ari_length, 0, IB_CM_REJ_ARI_LENGTH - ari_length),
		  "more information than %u", ari_length);
	return true;
}

static void rejections(struct api_test *t)
{
	unsigned int len;

	for (len = 0; len <= IB_CM_REJ_PRIVATE_DATA_SIZE; len++) {
		if (!one_rejection(t, len))
			break;
		api_end_case(t);
	}
}

/* --- reasons --- */

static void reasons(struct api_test *t)
{
	unsigned int reason;

	for (reason = 0; reason <= 40; reason++) {
		/* "timeout" is looked up by the GUID in the information, which is none here. */
		u16 value = reason == IB_CM_REJ_TIMEOUT ? 0xffff : reason;
		struct api_event *event;
		struct api_conn conn;

		api_conn_init(&conn, API_LIFE_TIME);
		if (!api_request(t, &conn))
			return;
		api_eq(t, ib_send_cm_rej(conn.passive->cm_id, value, NULL, 0, NULL, 0), 0,
		       "ib_send_cm_rej with the reason %u", value);
		event = api_wait(t, conn.active, IB_CM_REJ_RECEIVED);
		if (!event)
			return;
		api_eq(t, event->event.param.rej_rcvd.reason, value, "reason");
		api_eq(t, event->event.param.rej_rcvd.ari_length, 0, "length of no information");
		/* After "stale connection" there is a TimeWait. */
		api_eq(t, event->state, value == IB_CM_REJ_STALE_CONN ? IB_CM_TIMEWAIT : IB_CM_IDLE,
		       "state after the reason %u", value);
		if (value == IB_CM_REJ_STALE_CONN)
			api_wait(t, conn.active, IB_CM_TIMEWAIT_EXIT);
		api_end_case(t);
	}
}

/* --- fields --- */

static void req_fields(struct api_test *t)
{
	const struct ib_cm_req_event_param *got;
	const struct sa_path_rec *path;
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.path.flow_label = cpu_to_be32(0x54321);
	conn.path.traffic_class = 0x40;
	conn.path.sl = 3;
	conn.req.qp_num = api_qpn();
	conn.req.starting_psn = 0xfedcba;
	conn.req.flow_control = 1;
	conn.req.srq = 1;
	conn.req.retry_count = 5;
	conn.req.rnr_retry_count = 2;
	conn.req.remote_cm_response_timeout = 17;
	conn.req.local_cm_response_timeout = 19;
	conn.req.ece.vendor_id = 0xabcdef;
	conn.req.ece.attr_mod = 0x89abcdef;
	conn.listener = api_listen(t, conn.req.service_id);
	conn.active = api_create(t);
	if (!conn.listener || !conn.active)
		return;
	api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
	conn.passive = api_wait_child(t, conn.listener);
	event = conn.passive ? api_wait(t, conn.passive, IB_CM_REQ_RECEIVED) : NULL;
	if (!event)
		return;
	got = &event->event.param.req_rcvd;
	api_eq(t, got->bth_pkey, 0xffff, "P_Key of the message");
	api_eq(t, got->port, api_device.port, "port");
	api_check(t, got->ppath_sgid_attr == api_device.attr, "another source GID");
	api_check(t, got->remote_ca_guid == api_device.ib_device->node_guid, "another GUID");
	api_eq(t, got->remote_qkey, 0, "Q_Key");
	api_eq(t, got->remote_qpn, conn.req.qp_num, "remote QPN");
	api_eq(t, got->qp_type, IB_QPT_RC, "queue pair type");
	api_eq(t, got->starting_psn, 0xfedcba, "PSN");
	/* The peer's responder is our initiator. */
	api_eq(t, got->responder_resources, conn.req.initiator_depth, "responder resources");
	api_eq(t, got->initiator_depth, conn.req.responder_resources, "initiator depth");
	api_eq(t, got->local_cm_response_timeout, 17, "local timeout");
	api_eq(t, got->remote_cm_response_timeout, 19, "remote timeout");
	api_eq(t, got->flow_control, 1, "flow control");
	api_eq(t, got->retry_count, 5, "retries");
	api_eq(t, got->rnr_retry_count, 2, "RNR retries");
	api_eq(t, got->srq, 1, "shared receive queue");
	api_eq(t, got->ece.vendor_id, 0xabcdef, "ECE vendor");
	api_eq(t, got->ece.attr_mod, 0x89abcdef, "ECE attribute modifier");
	api_check(t, !got->alternate_path, "an alternate path");

	path = &event->path[0];
	api_eq(t, path->rec_type, SA_PATH_REC_TYPE_ROCE_V2, "type of the path");
	api_check(t, !memcmp(&path->sgid, &api_device.gid, sizeof(path->sgid)), "another sgid");
	api_check(t, !memcmp(&path->dgid, &api_device.gid, sizeof(path->dgid)), "another dgid");
	api_eq(t, be32_to_cpu(path->flow_label), 0x54321, "flow label");
	api_eq(t, path->traffic_class, 0x40, "traffic class");
	api_eq(t, path->sl, 3, "SL");
	api_eq(t, be16_to_cpu(path->pkey), 0xffff, "P_Key");
	api_eq(t, path->mtu, IB_MTU_1024, "MTU");
	api_eq(t, path->rate, IB_RATE_10_GBPS, "rate");
	api_eq(t, path->reversible, 1, "reversible");
	api_check(t, path->service_id == conn.req.service_id, "another service ID");
	/* One less than the timeout that came: the adapter's delay of 15. */
	api_eq(t, path->packet_life_time, 14, "life time");
}

/* Small fields stand side by side: each value of one beside each of its neighbours. */
static void req_small_fields(struct api_test *t)
{
	const struct ib_cm_req_event_param *got;
	struct api_event *event;
	struct api_conn conn;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		api_conn_init(&conn, API_LIFE_TIME);
		conn.req.rnr_retry_count = i & 7;
		conn.req.srq = i >> 3 & 1;
		conn.req.flow_control = i >> 4 & 1;
		conn.req.retry_count = ~i & 7;
		conn.req.remote_cm_response_timeout = 20 - (i & 3);
		conn.req.local_cm_response_timeout = 16 + (i & 7);
		conn.listener = api_listen(t, conn.req.service_id);
		conn.active = api_create(t);
		if (!conn.listener || !conn.active)
			return;
		api_eq(t, ib_send_cm_req(conn.active->cm_id, &conn.req), 0, "ib_send_cm_req");
		conn.passive = api_wait_child(t, conn.listener);
		event = conn.passive ? api_wait(t, conn.passive, IB_CM_REQ_RECEIVED) : NULL;
		if (!event)
			return;
		got = &event->event.param.req_rcvd;
		api_eq(t, got->rnr_retry_count, conn.req.rnr_retry_count, "RNR retries");
		api_eq(t, got->srq, conn.req.srq, "shared receive queue");
		api_eq(t, got->flow_control, conn.req.flow_control, "flow control");
		api_eq(t, got->retry_count, conn.req.retry_count, "retries");
		api_eq(t, got->local_cm_response_timeout, conn.req.remote_cm_response_timeout,
		       "local timeout");
		api_eq(t, got->remote_cm_response_timeout, conn.req.local_cm_response_timeout,
		       "remote timeout");
		api_end_case(t);
	}
}

static void rep_small_fields(struct api_test *t)
{
	const struct ib_cm_rep_event_param *got;
	struct api_event *event;
	struct api_conn conn;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		api_conn_init(&conn, API_LIFE_TIME);
		conn.rep.rnr_retry_count = i & 7;
		conn.rep.srq = i >> 3 & 1;
		conn.rep.flow_control = i >> 4 & 1;
		conn.rep.failover_accepted = ~i & 3;
		if (!api_request(t, &conn))
			return;
		api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
		event = api_wait(t, conn.active, IB_CM_REP_RECEIVED);
		if (!event)
			return;
		got = &event->event.param.rep_rcvd;
		api_eq(t, got->rnr_retry_count, conn.rep.rnr_retry_count, "RNR retries");
		api_eq(t, got->srq, conn.rep.srq, "shared receive queue");
		api_eq(t, got->flow_control, conn.rep.flow_control, "flow control");
		api_eq(t, got->failover_accepted, conn.rep.failover_accepted, "failover");
		api_end_case(t);
	}
}

static void rep_fields(struct api_test *t)
{
	const struct ib_cm_rep_event_param *got;
	struct api_event *event;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.rep.starting_psn = 0xabcdef;
	conn.rep.responder_resources = 11;
	conn.rep.initiator_depth = 12;
	conn.rep.failover_accepted = 2;
	conn.rep.flow_control = 1;
	conn.rep.rnr_retry_count = 5;
	conn.rep.srq = 1;
	conn.rep.ece.vendor_id = 0x123456;
	conn.rep.ece.attr_mod = 0x76543210;
	if (!api_request(t, &conn))
		return;
	api_eq(t, ib_send_cm_rep(conn.passive->cm_id, &conn.rep), 0, "ib_send_cm_rep");
	event = api_wait(t, conn.active, IB_CM_REP_RECEIVED);
	if (!event)
		return;
	got = &event->event.param.rep_rcvd;
	api_check(t, got->remote_ca_guid == api_device.ib_device->node_guid, "another GUID");
	api_eq(t, got->remote_qkey, 0, "Q_Key");
	api_eq(t, got->remote_qpn, conn.rep.qp_num, "remote QPN");
	api_eq(t, got->starting_psn, 0xabcdef, "PSN");
	api_eq(t, got->responder_resources, 12, "responder resources");
	api_eq(t, got->initiator_depth, 11, "initiator depth");
	api_eq(t, got->target_ack_delay, api_device.ib_device->attrs.local_ca_ack_delay, "delay");
	api_eq(t, got->failover_accepted, 2, "failover");
	api_eq(t, got->flow_control, 1, "flow control");
	api_eq(t, got->rnr_retry_count, 5, "RNR retries");
	api_eq(t, got->srq, 1, "shared receive queue");
	api_eq(t, got->ece.vendor_id, 0x123456, "ECE vendor");
	api_eq(t, got->ece.attr_mod, 0x76543210, "ECE attribute modifier");
}

static const struct api_case cases[] = {
	{ "private data of connections, each length", connections },
	{ "private data of rejections, each length", rejections },
	{ "each reason", reasons },
	{ "fields of a REQ", req_fields },
	{ "fields of a REP", rep_fields },
	{ "small fields of a REQ", req_small_fields },
	{ "small fields of a REP", rep_small_fields },
};

const struct api_suite api_suite_data = API_SUITE("data", cases);
