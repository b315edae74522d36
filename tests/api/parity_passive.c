// SPDX-License-Identifier: GPL-2.0
/* The side of a day that is connected to. */

#include "parity.h"

bool was_out_of_memory;

static const struct step *step_of(const struct api_event *event)
{
	unsigned int i = event->private_data[4];

	return i < ARRAY_SIZE(steps) ? &steps[i] : NULL;
}

int refuse_to_hear(struct api_id *id, const struct ib_cm_event *event)
{
	const u8 *private_data = event->private_data;
	unsigned int i;

	if (event->event != IB_CM_REQ_RECEIVED)
		return 0;
	i = private_data[4];
	if (i >= ARRAY_SIZE(steps))
		return 0;
	if (steps[i].how == HANDLER_FAILS)
		return -EINVAL;
	if (steps[i].no_memory && !was_out_of_memory) {
		was_out_of_memory = true;
		return -ENOMEM;
	}
	return 0;
}

static void reply(struct side *side, struct api_id *id)
{
	struct ib_cm_rep_param rep = {
		.qp_num = api_qpn(),
		.starting_psn = 0x654321,
		.responder_resources = 4,
		.initiator_depth = 2,
		.rnr_retry_count = 1,
		.private_data = data(side, side->step->rep),
		.private_data_len = sizeof(side->mine),
	};

	CALL(side, ib_send_cm_rep(id->cm_id, &rep));
}

static void answer(struct side *side, struct api_id *id)
{
	struct ib_cm_sidr_rep_param param = {
		.qp_num = 0x4321,
		.qkey = 0x1234,
		.status = side->step->how == SIDR_REJECTED ? IB_SIDR_REJECT : IB_SIDR_SUCCESS,
		.private_data = data(side, side->step->fence ? PASS : side->step->rep),
		.private_data_len = sizeof(side->mine),
	};

	if (side->step->req_again)
		wait_again(side, WIRE_SIDR_REQ);
	CALL(side, ib_send_cm_sidr_rep(id->cm_id, &param));
	api_destroy(id);
}

/* The active side says how far it is: a DREQ that comes before it has sent an RTU is refused. */
static void hear_of_it(struct side *side)
{
	struct api_id *id = api_wait_child(&side->t, parity_listener);

	if (id && expect(side, id, IB_CM_SIDR_REQ_RECEIVED))
		answer(side, id);
}

/* What is left of a connection when it is established, or never will be. */
static void end(struct side *side, struct api_id *id)
{
	const struct step *step = side->step;

	switch (step->how) {
	case NO_DREP:
		return;
	case NO_RTU:
		expect(side, id, IB_CM_REP_ERROR);
		break;
	case REP_REJECTED:
	case DESTROYED_REP_RCVD:
		expect(side, id, IB_CM_REJ_RECEIVED);
		break;
	case DESTROYED_REP_SENT:
		break;
	case PASSIVE_DREQ:
	case DESTROYED_DREQ_RCVD:
		CALL(side, ib_send_cm_dreq(id->cm_id, DATA(side, step->dreq)));
		expect(side, id, IB_CM_DREP_RECEIVED);
		break;
	case SAME_QPN:
		expect(side, id, IB_CM_DREP_RECEIVED);
		break;
	default:
		if (!expect(side, id, IB_CM_DREQ_RECEIVED))
			break;
		if (step->dreq_again)
			wait_again(side, WIRE_DREQ);
		CALL(side, ib_send_cm_drep(id->cm_id, DATA(side, step->drep)));
	}
	if (step->timewait)
		expect(side, id, IB_CM_TIMEWAIT_EXIT);
	api_destroy(id);
}

static void accept(struct side *side, struct api_id *id)
{
	const struct step *step = side->step;
	static const char information[] = "why";

	if (step->mra_req)
		CALL(side, ib_prepare_cm_mra(id->cm_id));
	if (step->req_again)
		wait_again(side, WIRE_REQ);
	if (step->mra_req)
		wait_mras_sent(side, 1);
	if (step->how == REJECTED || step->how == BYE) {
		CALL(side, ib_send_cm_rej(id->cm_id, step->reason, (void *)information,
					  sizeof(information), DATA(side, PASS)));
		api_destroy(id);
		return;
	}
	if (step->how == DESTROYED_REQ_RCVD) {
		api_destroy(id);
		return;
	}
	reply(side, id);
	if (step->mra_rep)
		expect(side, id, IB_CM_MRA_RECEIVED);
	if (step->fence && !step->notify)
		hear_of_it(side);
	if (step->notify) {
		CALL(side, ib_cm_notify(id->cm_id, IB_EVENT_COMM_EST));
		expect(side, id, IB_CM_USER_ESTABLISHED);
		if (step->fence)
			hear_of_it(side);
	} else if (step->how != NO_RTU && step->how != REP_REJECTED &&
		   step->how != DESTROYED_REP_SENT && step->how != DESTROYED_REP_RCVD) {
		expect(side, id, IB_CM_RTU_RECEIVED);
	}
	end(side, id);
}

void run_passive(struct side *side)
{
	struct api_event *event;
	struct api_id *id;

	do {
		id = api_wait_child(&side->t, parity_listener);
		event = id ? api_wait_ms(id, TOO_LONG_MS) : NULL;
		side->step = event ? step_of(event) : NULL;
		if (!side->step) {
			tell(side, "no more requests");
			break;
		}
		tell_event(side, event);
		if (!id->cm_id)
			continue;
		/* A second REQ that is refused has no identifier; this one lives. */
		if (event->event.event == IB_CM_SIDR_REQ_RECEIVED)
			answer(side, id);
		else
			accept(side, id);
	} while (side->step->how != BYE);
}
