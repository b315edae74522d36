/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The input of bindgen: the headers whose types and functions rust/rdma uses.
 */
#include <rdma/ib_verbs.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_sysfs.h>
#include <rdma/opa_addr.h>
#include <rdma/rdma_cm_ib.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/uverbs_types.h>

#include "ib_cm_core.h"
#include "ib_cm_helpers.h"
#include "ib_cm_trace_calls.h"
