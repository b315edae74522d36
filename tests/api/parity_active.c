// SPDX-License-Identifier: GPL-2.0
/* The side of a day that connects, asks and gives up. */

#include "parity.h"

struct attempt {
	struct sa_path_rec path;
	struct ib_cm_req_param req;
};

static void prepare(struct attempt *attempt, const struct step *step)
{
	bool soon = step->req == DROP || step->dreq == DROP || step->drep == DROP ||
		    step->dreq == LOST || step->req == LOST || step->mra_req || step->no_memory;
	bool reply_soon = step->rep == DROP || step->rtu == DROP || step->mra_rep ||
			  step->how == NO_RTU;
	bool unanswered = step->how == NO_ANSWER || step->how == NO_RTU || step->how == NO_DREP;

	memset(attempt, 0, sizeof(*attempt));
	path_to_peer(&attempt->path);
	attempt->req = (struct ib_cm_req_param) {
		.primary_path = &attempt->path,
		.ppath_sgid_attr = api_device.attr,
		.service_id = cpu_to_be64(step->how == NO_LISTENER ? NO_SERVICE_ID : SERVICE_ID),
		.qp_num = api_qpn(),
		.qp_type = IB_QPT_RC,
		.starting_psn = 0x123456,
		.responder_resources = 3,
		.initiator_depth = 5,
		.remote_cm_response_timeout = step->how == NO_ANSWER ? IN_VAIN :
					      soon ? SOON : PATIENT,
		.local_cm_response_timeout = reply_soon ? SOON : PATIENT,
		.retry_count = 6,
		.rnr_retry_count = 7,
		.max_cm_retries = unanswered ? 1 : 15,
	};
}

static struct api_id *request(struct side *side, struct attempt *attempt)
{
	struct api_id *id = api_create(&side->t);

	if (!id)
		return NULL;
	attempt->req.private_data = data(side, side->step->req);
	attempt->req.private_data_len = sizeof(side->mine);
	CALL(side, ib_send_cm_req(id->cm_id, &attempt->req));
	return id;
}

/* What is wrong in every state that this is called in. */
static void wrong_calls(struct side *side, struct api_id *id)
{
	struct ib_cm_id *cm_id = id->cm_id;
	struct ib_cm_rep_param rep = { .qp_num = 1 };
	struct ib_cm_sidr_rep_param answer = {};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	int mask;

	tell(side, "wrong calls in %s", api_state_name(cm_id->state));
	CALL(side, ib_send_cm_rep(cm_id, &rep));
	CALL(side, ib_send_cm_rtu(cm_id, NULL, 0));
	CALL(side, ib_send_cm_drep(cm_id, NULL, 0));
	CALL(side, ib_send_cm_rej(cm_id, IB_CM_REJ_NO_QP, NULL, 0, NULL, 0));
	CALL(side, ib_send_cm_rej(cm_id, IB_CM_REJ_NO_QP, NULL, 0, NULL, 149));
	CALL(side, ib_prepare_cm_mra(cm_id));
	CALL(side, ib_cm_notify(cm_id, IB_EVENT_COMM_EST));
	CALL(side, ib_cm_notify(cm_id, IB_EVENT_QP_FATAL));
	CALL(side, ib_send_cm_sidr_rep(cm_id, &answer));
	CALL(side, ib_cm_init_qp_attr(cm_id, &attr, &mask));
	if (cm_id->state != IB_CM_IDLE)
		CALL(side, ib_cm_listen(cm_id, cpu_to_be64(SERVICE_ID)));
}

static void qp_attributes(struct side *side, struct api_id *id)
{
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS };
	struct ib_qp_attr attr;
	unsigned int i;
	int mask, ret;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = states[i];
		mask = 0;
		ret = ib_cm_init_qp_attr(id->cm_id, &attr, &mask);
		tell(side, "ib_cm_init_qp_attr(%d) = %d, mask %#x access %#x timeout %u", states[i],
		     ret, mask, attr.qp_access_flags, attr.timeout);
	}
}

static void ask(struct side *side)
{
	const struct step *step = side->step;
	struct ib_cm_sidr_req_param param = {};
	struct attempt attempt;
	struct api_id *id = api_create(&side->t);

	if (!id)
		return;
	prepare(&attempt, step);
	param.path = &attempt.path;
	param.sgid_attr = api_device.attr;
	param.service_id = cpu_to_be64(step->how == SIDR_NO_LISTENER ? NO_SERVICE_ID : SERVICE_ID);
	param.timeout_ms = step->how == SIDR_NO_ANSWER ? SIDR_IN_VAIN_MS :
			   step->req == DROP ? SIDR_SOON_MS : SIDR_PATIENT_MS;
	param.max_cm_retries = 1;
	param.private_data = data(side, step->req);
	param.private_data_len = sizeof(side->mine);
	CALL(side, ib_send_cm_sidr_req(id->cm_id, &param));
	expect(side, id, step->how == SIDR_NO_ANSWER ? IB_CM_SIDR_REQ_ERROR :
						       IB_CM_SIDR_REP_RECEIVED);
	api_destroy(id);
}

/* Up to the RTU. NULL when the connection does not get there, and is not meant to. */
static struct api_id *connect(struct side *side, struct attempt *attempt)
{
	const struct step *step = side->step;
	struct api_id *id;

	prepare(attempt, step);
	id = request(side, attempt);
	if (!id)
		return NULL;
	if (step->mra_req)
		expect(side, id, IB_CM_MRA_RECEIVED);
	switch (step->how) {
	case DESTROYED_REQ_SENT:
		break;
	case NO_ANSWER:
		expect(side, id, IB_CM_REQ_ERROR);
		break;
	case NO_LISTENER:
	case REJECTED:
	case HANDLER_FAILS:
	case DESTROYED_REQ_RCVD:
	case BYE:
		expect(side, id, IB_CM_REJ_RECEIVED);
		break;
	default:
		if (!expect(side, id, IB_CM_REP_RECEIVED))
			break;
		if (step->mra_rep)
			CALL(side, ib_prepare_cm_mra(id->cm_id));
		if (step->rep_again && step->rtu == PASS)
			wait_again(side, WIRE_REP);
		/* The second one is counted before the state is looked at. */
		if (step->fence && !step->notify)
			ask(side);
		if (step->mra_rep)
			wait_mras_sent(side, 2);
		if (step->how == REP_REJECTED)
			CALL(side, ib_send_cm_rej(id->cm_id, step->reason, NULL, 0,
						  DATA(side, PASS)));
		if (step->how == DESTROYED_REP_SENT)
			expect(side, id, IB_CM_REJ_RECEIVED);
		if (step->how == REP_REJECTED || step->how == DESTROYED_REP_SENT ||
		    step->how == DESTROYED_REP_RCVD)
			break;
		if (step->how == ERRORS)
			qp_attributes(side, id);
		CALL(side, ib_send_cm_rtu(id->cm_id, DATA(side, step->rtu)));
		if (step->rep_again && step->rtu != PASS)
			wait_again(side, WIRE_REP);
		/* What tells the passive side that a lost RTU was sent. */
		if (step->fence && step->notify)
			ask(side);
		return id;
	}
	api_destroy(id);
	return NULL;
}

static void take_queue_pair(struct side *side, struct attempt *attempt, struct api_id *id)
{
	struct api_id *second = request(side, attempt);

	if (!second)
		return;
	expect(side, second, IB_CM_REJ_RECEIVED);
	api_destroy(second);
	if (expect(side, id, IB_CM_DREQ_RECEIVED))
		CALL(side, ib_send_cm_drep(id->cm_id, DATA(side, PASS)));
}

static void disconnect(struct side *side, struct attempt *attempt, struct api_id *id)
{
	const struct step *step = side->step;

	switch (step->how) {
	case NO_RTU:
		return;
	case PASSIVE_DREQ:
		if (expect(side, id, IB_CM_DREQ_RECEIVED))
			CALL(side, ib_send_cm_drep(id->cm_id, DATA(side, step->drep)));
		break;
	case DESTROYED_ESTABLISHED:
		break;
	case DESTROYED_DREQ_RCVD:
		expect(side, id, IB_CM_DREQ_RECEIVED);
		break;
	case SAME_QPN:
		take_queue_pair(side, attempt, id);
		break;
	default:
		if (step->how == ERRORS)
			wrong_calls(side, id);
		CALL(side, ib_send_cm_dreq(id->cm_id, DATA(side, step->dreq)));
		expect(side, id, step->how == NO_DREP ? IB_CM_DREQ_ERROR : IB_CM_DREP_RECEIVED);
		if (step->how == ERRORS)
			wrong_calls(side, id);
	}
	if (step->timewait)
		expect(side, id, IB_CM_TIMEWAIT_EXIT);
	api_destroy(id);
}

void run_active(struct side *side)
{
	struct attempt attempt;
	struct api_id *id;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		side->step = &steps[i];
		if (side->broken && side->step->how != BYE)
			continue;
		if (steps[i].how >= SIDR && steps[i].how <= SIDR_REJECTED) {
			ask(side);
			continue;
		}
		if (steps[i].how == ERRORS) {
			id = api_create(&side->t);
			if (id)
				wrong_calls(side, id);
		}
		id = connect(side, &attempt);
		if (id)
			disconnect(side, &attempt, id);
	}
}
