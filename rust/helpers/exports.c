// SPDX-License-Identifier: GPL-2.0
/*
 * The symbols of the module. The functions are written in Rust; they are exported from C so that
 * a kernel with MODVERSIONS computes its checksums from the prototypes in <rdma/ib_cm.h>.
 */
#include <linux/export.h>
#include <rdma/ib_cm.h>

EXPORT_SYMBOL(ibcm_reject_msg);

EXPORT_SYMBOL(ib_create_cm_id);
EXPORT_SYMBOL(ib_destroy_cm_id);
EXPORT_SYMBOL(ib_cm_listen);
EXPORT_SYMBOL(ib_cm_insert_listen);

EXPORT_SYMBOL(ib_send_cm_req);
EXPORT_SYMBOL(ib_send_cm_rep);
EXPORT_SYMBOL(ib_send_cm_rtu);
EXPORT_SYMBOL(ib_send_cm_dreq);
EXPORT_SYMBOL(ib_send_cm_drep);
EXPORT_SYMBOL(ib_send_cm_rej);
EXPORT_SYMBOL(ib_prepare_cm_mra);
EXPORT_SYMBOL(ib_send_cm_sidr_req);
EXPORT_SYMBOL(ib_send_cm_sidr_rep);

EXPORT_SYMBOL(ib_cm_notify);
EXPORT_SYMBOL(ib_cm_init_qp_attr);
