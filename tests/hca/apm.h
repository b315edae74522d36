/* SPDX-License-Identifier: GPL-2.0 */
#ifndef IB_APM_TEST_H
#define IB_APM_TEST_H

#include <rdma/ib_cm.h>

int apm_send_lap(struct ib_cm_id *from, struct ib_cm_id *to, u32 remote_qpn,
		 struct sa_path_rec *primary, struct sa_path_rec *alternate);
int apm_send_apr(struct ib_cm_id *from, struct ib_cm_id *to, struct sa_path_rec *path);

#endif
