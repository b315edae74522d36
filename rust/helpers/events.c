// SPDX-License-Identifier: GPL-2.0
/*
 * The bit fields of events. Where a bit field stands is the C compiler's choice: bindgen puts some
 * elsewhere when they begin in the middle of a word.
 */
#include <rdma/ib_cm.h>

#include "ib_cm_helpers.h"

void ib_cm_helper_req_event_bits(struct ib_cm_req_event_param *param, u8 local_cm_response_timeout,
				 bool flow_control, u8 remote_cm_response_timeout, u8 retry_count,
				 u8 rnr_retry_count, bool srq)
{
	param->local_cm_response_timeout = local_cm_response_timeout;
	param->flow_control = flow_control;
	param->remote_cm_response_timeout = remote_cm_response_timeout;
	param->retry_count = retry_count;
	param->rnr_retry_count = rnr_retry_count;
	param->srq = srq;
}

void ib_cm_helper_rep_event_bits(struct ib_cm_rep_event_param *param, u8 target_ack_delay,
				 u8 failover_accepted, bool flow_control, u8 rnr_retry_count,
				 bool srq)
{
	param->target_ack_delay = target_ack_delay;
	param->failover_accepted = failover_accepted;
	param->flow_control = flow_control;
	param->rnr_retry_count = rnr_retry_count;
	param->srq = srq;
}
