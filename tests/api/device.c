// SPDX-License-Identifier: GPL-2.0
/*
 * Identifiers that outlive their device: one suite makes them, another one uses them after the
 * device was removed. The memory of the device stays, as its reference is held.
 */

#include "api.h"

static struct ib_device *held;
static struct api_id *idle, *unused, *listener;
static struct api_conn conn;

static void hold(struct api_test *t)
{
	held = api_device.ib_device;
	get_device(&held->dev);
	idle = api_create(t);
	unused = api_create(t);
	listener = api_listen(t, api_service_id());
	if (api_on_c()) {
		/* Its addresses keep references on the GIDs of a device that goes. */
		api_expected_difference("a connection that outlives its device");
		return;
	}
	api_conn_init(&conn, API_LIFE_TIME);
	api_connect(t, &conn);
}

/* Every call returns, and none does harm. */
static void use_connection(struct api_test *t, struct api_id *id, const char *side)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	struct ib_cm_rep_param rep = {};
	int mask = 0;

	api_note("the %s side is in %s after the removal of its device", side,
		 api_state_name(id->cm_id->state));
	api_check(t, ib_cm_notify(id->cm_id, IB_EVENT_COMM_EST) < 0, "COMM_EST succeeded");
	api_check(t, ib_send_cm_rep(id->cm_id, &rep) < 0, "ib_send_cm_rep succeeded");
	api_check(t, ib_send_cm_rtu(id->cm_id, NULL, 0) < 0, "ib_send_cm_rtu succeeded");
	api_check(t, ib_send_cm_dreq(id->cm_id, NULL, 0) < 0, "ib_send_cm_dreq succeeded");
	api_check(t, ib_send_cm_drep(id->cm_id, NULL, 0) < 0, "ib_send_cm_drep succeeded");
	api_check(t, ib_send_cm_rej(id->cm_id, IB_CM_REJ_NO_QP, NULL, 0, NULL, 0) < 0,
		  "ib_send_cm_rej succeeded");
	api_check(t, ib_prepare_cm_mra(id->cm_id) < 0, "ib_prepare_cm_mra succeeded");
	ib_cm_init_qp_attr(id->cm_id, &attr, &mask);
}

static void gone(struct api_test *t)
{
	struct ib_cm_sidr_req_param sidr = {
		.service_id = api_service_id(),
		.timeout_ms = 100,
		.max_cm_retries = 1,
	};
	struct sa_path_rec path = {
		.rec_type = SA_PATH_REC_TYPE_ROCE_V2,
		.sgid = api_device.gid,
		.dgid = api_device.gid,
		.pkey = cpu_to_be16(0xffff),
		.mtu = IB_MTU_1024,
	};
	struct ib_cm_req_param req = {
		.primary_path = &path,
		.qp_type = IB_QPT_RC,
		.service_id = sidr.service_id,
	};

	if (!api_check(t, held && idle && unused && listener, "nothing is held"))
		return;
	api_eq(t, ib_cm_notify(idle->cm_id, IB_EVENT_COMM_EST), -ENODEV, "COMM_EST");
	api_eq(t, ib_cm_notify(listener->cm_id, IB_EVENT_COMM_EST), -ENODEV,
	       "COMM_EST of a listener");
	api_eq(t, ib_cm_notify(idle->cm_id, IB_EVENT_PATH_MIG), -EINVAL, "PATH_MIG");
	api_eq(t, ib_send_cm_req(idle->cm_id, &req), -EINVAL, "ib_send_cm_req");
	sidr.path = &path;
	api_eq(t, ib_send_cm_sidr_req(idle->cm_id, &sidr), -EINVAL, "ib_send_cm_sidr_req");
	api_eq(t, ib_cm_listen(unused->cm_id, api_service_id()), 0, "ib_cm_listen");
	if (!api_on_c() && conn.active && conn.passive) {
		use_connection(t, conn.active, "active");
		use_connection(t, conn.passive, "passive");
	}
	api_end_case(t);
	put_device(&held->dev);
	held = NULL;
}

static const struct api_case hold_cases[] = {
	{ "identifiers are made", hold },
};

static const struct api_case gone_cases[] = {
	{ "calls after the removal of the device", gone },
};

const struct api_suite api_suite_device_hold = {
	.name = "device-hold",
	.cases = hold_cases,
	.count = ARRAY_SIZE(hold_cases),
	.keep = true,
};

const struct api_suite api_suite_device_gone = {
	.name = "device-gone",
	.cases = gone_cases,
	.count = ARRAY_SIZE(gone_cases),
	.no_device = true,
};
