// SPDX-License-Identifier: GPL-2.0
/*
 * Bad parameters in a state where the call is allowed: the errno comes back, the state stays, and
 * the same identifier can still do what it could before.
 */

#include "api.h"

static u8 filling[256];

/* A call that carries private data or additional information. */
struct carrier {
	const char *name;
	enum ib_cm_state state;
	unsigned int most;
	int (*call)(struct api_conn *conn, struct api_id *id, const void *data, u8 len);
};

static int carry_req(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	conn->req.private_data = data;
	conn->req.private_data_len = len;
	return ib_send_cm_req(id->cm_id, &conn->req);
}

static int carry_rep(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	conn->rep.private_data = data;
	conn->rep.private_data_len = len;
	return ib_send_cm_rep(id->cm_id, &conn->rep);
}

static int carry_rtu(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	return ib_send_cm_rtu(id->cm_id, data, len);
}

static int carry_dreq(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	return ib_send_cm_dreq(id->cm_id, data, len);
}

static int carry_drep(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	return ib_send_cm_drep(id->cm_id, data, len);
}

static int carry_rej(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	return ib_send_cm_rej(id->cm_id, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0, data, len);
}

static int carry_ari(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	return ib_send_cm_rej(id->cm_id, IB_CM_REJ_CONSUMER_DEFINED, (void *)data, len, NULL, 0);
}

static int carry_sidr_req(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	struct ib_cm_sidr_req_param param = {
		.path = &conn->path,
		.sgid_attr = api_device.attr,
		.service_id = conn->req.service_id,
		.timeout_ms = 1000,
		.max_cm_retries = 15,
		.private_data = data,
		.private_data_len = len,
	};

	return ib_send_cm_sidr_req(id->cm_id, &param);
}

static int carry_sidr_rep(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	struct ib_cm_sidr_rep_param param = { .private_data = data, .private_data_len = len };

	return ib_send_cm_sidr_rep(id->cm_id, &param);
}

static int carry_sidr_info(struct api_conn *conn, struct api_id *id, const void *data, u8 len)
{
	struct ib_cm_sidr_rep_param param = { .info = data, .info_length = len };

	return ib_send_cm_sidr_rep(id->cm_id, &param);
}

static const struct carrier carriers[] = {
	{ "ib_send_cm_req", IB_CM_IDLE, IB_CM_REQ_PRIVATE_DATA_SIZE, carry_req },
	{ "ib_send_cm_rep", IB_CM_REQ_RCVD, IB_CM_REP_PRIVATE_DATA_SIZE, carry_rep },
	{ "ib_send_cm_rtu", IB_CM_REP_RCVD, IB_CM_RTU_PRIVATE_DATA_SIZE, carry_rtu },
	{ "ib_send_cm_dreq", IB_CM_ESTABLISHED, IB_CM_DREQ_PRIVATE_DATA_SIZE, carry_dreq },
	{ "ib_send_cm_drep", IB_CM_DREQ_RCVD, IB_CM_DREP_PRIVATE_DATA_SIZE, carry_drep },
	{ "ib_send_cm_rej", IB_CM_REQ_RCVD, IB_CM_REJ_PRIVATE_DATA_SIZE, carry_rej },
	{ "ib_send_cm_rej ari", IB_CM_REQ_RCVD, IB_CM_REJ_ARI_LENGTH, carry_ari },
	{ "ib_send_cm_sidr_req", IB_CM_IDLE, IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE, carry_sidr_req },
	{ "ib_send_cm_sidr_rep", IB_CM_SIDR_REQ_RCVD, IB_CM_SIDR_REP_PRIVATE_DATA_SIZE,
	  carry_sidr_rep },
	{ "ib_send_cm_sidr_rep info", IB_CM_SIDR_REQ_RCVD, IB_CM_SIDR_REP_INFO_LENGTH,
	  carry_sidr_info },
};

/* One length that is accepted. */
static void accepted(struct api_test *t, const struct carrier *carrier, const void *data, u8 len)
{
	struct api_conn conn;
	struct api_id *id;

	api_conn_init(&conn, API_LIFE_TIME);
	id = api_reach(t, &conn, carrier->state);
	if (id)
		api_eq(t, carrier->call(&conn, id, data, len), 0, "%s with %s and length %u",
		       carrier->name, data ? "data" : "NULL", len);
	api_end_case(t);
}

static void lengths_of(struct api_test *t, const struct carrier *carrier)
{
	struct api_conn conn;
	struct api_id *id;

	api_conn_init(&conn, API_LIFE_TIME);
	id = api_reach(t, &conn, carrier->state);
	if (!id)
		return;
	api_eq(t, carrier->call(&conn, id, filling, carrier->most + 1), -EINVAL,
	       "%s with length %u", carrier->name, carrier->most + 1);
	api_eq(t, carrier->call(&conn, id, filling, 255), -EINVAL, "%s with length 255",
	       carrier->name);
	api_check(t, id->cm_id->state == carrier->state, "%s with a length led from %s to %s",
		  carrier->name, api_state_name(carrier->state),
		  api_state_name(id->cm_id->state));
	/* The same identifier, with all that there is room for. */
	api_eq(t, carrier->call(&conn, id, filling, carrier->most), 0, "%s with length %u",
	       carrier->name, carrier->most);
	api_end_case(t);

	accepted(t, carrier, filling, 0);
	accepted(t, carrier, NULL, 0);
	/* Without data the length means nothing. */
	accepted(t, carrier, NULL, 255);
}

static void private_data(struct api_test *t)
{
	unsigned int i;

	memset(filling, 0xa5, sizeof(filling));
	for (i = 0; i < ARRAY_SIZE(carriers); i++)
		lengths_of(t, &carriers[i]);
}

/* --- REQ --- */

/* A request that fails must leave its identifier as it was. The C module keeps its TimeWait
 * information, and warns at the next request; so it gets a new identifier for each.
 */
static void try_req(struct api_test *t, struct api_conn *conn, int want, const char *what)
{
	struct api_id *id = api_create(t);

	if (!id)
		return;
	api_eq(t, ib_send_cm_req(id->cm_id, &conn->req), want, "ib_send_cm_req with %s", what);
	api_check(t, id->cm_id->state == IB_CM_IDLE, "ib_send_cm_req with %s led to %s", what,
		  api_state_name(id->cm_id->state));
	if (!api_on_c()) {
		struct api_conn good;

		api_conn_init(&good, API_LIFE_TIME);
		api_listen(t, good.req.service_id);
		api_eq(t, ib_send_cm_req(id->cm_id, &good.req), 0,
		       "ib_send_cm_req after one with %s", what);
	}
	api_end_case(t);
}

static void req_qp_types(struct api_test *t)
{
	static const enum ib_qp_type wrong[] = {
		IB_QPT_SMI, IB_QPT_GSI, IB_QPT_UD, IB_QPT_RAW_IPV6, IB_QPT_RAW_ETHERTYPE,
		IB_QPT_RAW_PACKET, IB_QPT_XRC_TGT, IB_QPT_DRIVER, IB_QPT_MAX,
	};
	static const enum ib_qp_type right[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_XRC_INI };
	struct api_conn conn;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		api_conn_init(&conn, API_LIFE_TIME);
		conn.req.qp_type = wrong[i];
		try_req(t, &conn, -EINVAL, "a queue pair type that does not connect");
	}
	for (i = 0; i < ARRAY_SIZE(right); i++) {
		api_conn_init(&conn, API_LIFE_TIME);
		conn.req.qp_type = right[i];
		api_reach(t, &conn, IB_CM_REQ_SENT);
		api_end_case(t);
	}
}

static void req_path(struct api_test *t)
{
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.primary_path = NULL;
	try_req(t, &conn, -EINVAL, "no path");

	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.ppath_sgid_attr = NULL;
	conn.path.sgid.raw[0] = 0xfd;
	conn.path.sgid.raw[1] = 0x99;
	try_req(t, &conn, -EINVAL, "a source GID that no port has");

	/* The P_Key table of a RoCE port holds the default one alone. */
	api_conn_init(&conn, API_LIFE_TIME);
	conn.path.pkey = cpu_to_be16(0x9234);
	try_req(t, &conn, -ENOENT, "a P_Key that the port does not have");

	/* Without the attribute of its GID a path is searched on all devices. */
	api_conn_init(&conn, API_LIFE_TIME);
	conn.req.ppath_sgid_attr = NULL;
	api_reach(t, &conn, IB_CM_REQ_SENT);
}

static void req_alternate_path(struct api_test *t)
{
	struct sa_path_rec alternate;
	struct api_event *event;
	struct api_conn conn;
	struct api_id *id;

	api_conn_init(&conn, API_LIFE_TIME);
	api_path(&alternate, API_LIFE_TIME);
	alternate.pkey = cpu_to_be16(0x7fff);
	conn.req.alternate_path = &alternate;
	try_req(t, &conn, -EINVAL, "an alternate path of another P_Key");

	api_path(&alternate, API_LIFE_TIME);
	alternate.mtu = IB_MTU_512;
	try_req(t, &conn, -EINVAL, "an alternate path of another MTU");

	api_path(&alternate, API_LIFE_TIME);
	alternate.sgid.raw[0] = 0xfd;
	alternate.sgid.raw[1] = 0x99;
	try_req(t, &conn, -EINVAL, "an alternate path whose source GID no port has");

	/* A RoCE port accepts no alternate path, and says so with its own primary GID. */
	api_conn_init(&conn, API_LIFE_TIME);
	api_path(&alternate, API_LIFE_TIME);
	conn.req.alternate_path = &alternate;
	api_listen(t, conn.req.service_id);
	id = api_create(t);
	if (!id)
		return;
	api_eq(t, ib_send_cm_req(id->cm_id, &conn.req), 0, "ib_send_cm_req with an alternate path");
	event = api_wait(t, id, IB_CM_REJ_RECEIVED);
	if (!event)
		return;
	api_eq(t, event->event.param.rej_rcvd.reason, IB_CM_REJ_INVALID_ALT_GID,
	       "reason for an alternate path");
	api_eq(t, event->event.param.rej_rcvd.ari_length, sizeof(api_device.gid),
	       "information beside the reason");
	api_check(t, !memcmp(event->info, &api_device.gid, sizeof(api_device.gid)),
		  "the information is another GID");
}

/* The order of the checks: which errno comes when several things are wrong. */
static void req_order(struct api_test *t)
{
	struct api_conn conn, other;
	struct api_id *id;

	api_conn_init(&conn, API_LIFE_TIME);
	id = api_reach(t, &conn, IB_CM_REQ_SENT);
	if (!id)
		return;
	api_conn_init(&other, API_LIFE_TIME);
	other.path.pkey = cpu_to_be16(0x9234);
	api_eq(t, ib_send_cm_req(id->cm_id, &other.req), -EINVAL,
	       "ib_send_cm_req in REQ_SENT with a P_Key that the port does not have");
}

/* --- SIDR REQ --- */

static void try_sidr(struct api_test *t, struct api_conn *conn, struct sa_path_rec *path, int want,
		     const char *what)
{
	struct ib_cm_sidr_req_param param = {
		.path = path,
		.service_id = conn->req.service_id,
		.timeout_ms = 1000,
		.max_cm_retries = 15,
	};
	struct api_id *id = api_create(t);

	if (!id)
		return;
	api_eq(t, ib_send_cm_sidr_req(id->cm_id, &param), want, "ib_send_cm_sidr_req with %s",
	       what);
	api_check(t, id->cm_id->state == (want ? IB_CM_IDLE : IB_CM_SIDR_REQ_SENT),
		  "ib_send_cm_sidr_req with %s led to %s", what,
		  api_state_name(id->cm_id->state));
	if (!want)
		return;
	/* Nothing stays of it: the same identifier can ask. */
	param.path = &conn->path;
	api_eq(t, ib_send_cm_sidr_req(id->cm_id, &param), 0, "ib_send_cm_sidr_req after one with %s",
	       what);
}

static void sidr_path(struct api_test *t)
{
	struct sa_path_rec path;
	struct api_conn conn;

	api_conn_init(&conn, API_LIFE_TIME);
	api_listen(t, conn.req.service_id);
	try_sidr(t, &conn, NULL, -EINVAL, "no path");

	api_path(&path, API_LIFE_TIME);
	path.sgid.raw[0] = 0xfd;
	path.sgid.raw[1] = 0x99;
	try_sidr(t, &conn, &path, -EINVAL, "a source GID that no port has");

	api_path(&path, API_LIFE_TIME);
	path.pkey = cpu_to_be16(0x9234);
	try_sidr(t, &conn, &path, -ENOENT, "a P_Key that the port does not have");

	api_path(&path, API_LIFE_TIME);
	try_sidr(t, &conn, &path, 0, "a path without the attribute of its GID");
}

static const struct api_case cases[] = {
	{ "lengths of private data and information", private_data },
	{ "REQ of each queue pair type", req_qp_types },
	{ "REQ and its path", req_path },
	{ "REQ and its alternate path", req_alternate_path },
	{ "REQ with more than one fault", req_order },
	{ "SIDR REQ and its path", sidr_path },
};

const struct api_suite api_suite_errno_param = API_SUITE("errno-param", cases);
