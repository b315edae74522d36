// SPDX-License-Identifier: GPL-2.0
/*
 * ib_apm_test: a consumer of ib_cm that asks for an alternate path, over the two ports of an
 * InfiniBand adapter. Loading it runs the test; the log says how each step went.
 *
 * The primary path goes from port 1 to port 2, the alternate one from port 2 to port 1. Then the
 * primary one breaks: data goes on by the other, and so do the messages that end the connection.
 * All of it without and with a global route header. Then a connection across a router, which
 * knows no LIDs of the other side and gets its alternate path later, by a LAP. An APR that nobody
 * waits for changes nothing: no function of ib_cm sends a LAP, so it never waits for one.
 */

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>

#include "apm.h"
#include "ib_loop.h"

MODULE_DESCRIPTION("Connections with alternate paths, for tests");
MODULE_LICENSE("GPL");

#define SERVICE_ID	cpu_to_be64(0x0200000000a9a9ULL)
#define WAIT		(30 * HZ)
#define SIZE		4000

/* Hop limits of paths: without a global route header, with one in the subnet, across a router. */
#define NO_GRH		0
#define GRH_IN_SUBNET	1
#define ROUTED		64

/* Far from each other, so that a swap shows. */
#define ACTIVE_PSN	0x111111
#define PASSIVE_PSN	0xfffffe

static char *device = "ibloop0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "adapter with two ports");

struct end {
	const char *name;
	struct ib_device *ibdev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_cm_id *id;
	struct completion events[IB_CM_SIDR_REP_RECEIVED + 1];
	struct completion migrated;
	u8 *buffer;
};

static struct end active = { .name = "active" }, passive = { .name = "passive" };
static struct ib_cm_id *listener;
static int failures;

/* step - says how it went */
static bool step(bool good, const char *text)
{
	pr_notice("ib_apm_test: %s %s\n", good ? "ok" : "not ok", text);
	failures += !good;
	return good;
}

static bool came(struct completion *what)
{
	return wait_for_completion_timeout(what, WAIT);
}

static void qp_event(struct ib_event *event, void *context)
{
	struct end *end = context;

	if (event->event != IB_EVENT_PATH_MIG)
		return;
	/* What a consumer owes to the connection manager (it may be called with interrupts off). */
	if (ib_cm_notify(end->id, IB_EVENT_PATH_MIG))
		pr_err("ib_apm_test: the %s id does not migrate\n", end->name);
	complete(&end->migrated);
}

static int cm_event(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct end *end = id == active.id ? &active : &passive;

	if (event->event == IB_CM_REQ_RECEIVED)
		end->id = id;
	complete(&end->events[event->event]);
	return 0;
}

static int to_state(struct end *end, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = ib_cm_init_qp_attr(end->id, &attr, &mask);
	/* A number that a consumer chooses with its REP, which it may not send earlier. */
	if (end == &passive && state == IB_QPS_RTR)
		attr.rq_psn = PASSIVE_PSN;
	return ret ?: ib_modify_qp(end->qp, &attr, mask);
}

static int make_end(struct end *end, struct ib_device *ibdev)
{
	struct ib_qp_init_attr init = {
		.event_handler = qp_event,
		.qp_context = end,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(end->events); i++)
		init_completion(&end->events[i]);
	init_completion(&end->migrated);
	end->ibdev = ibdev;
	end->buffer = kzalloc(SIZE, GFP_KERNEL);
	if (!end->buffer)
		return -ENOMEM;
	end->pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(end->pd))
		return PTR_ERR(end->pd);
	end->cq = ib_alloc_cq(ibdev, NULL, 32, 0, IB_POLL_DIRECT);
	if (IS_ERR(end->cq))
		return PTR_ERR(end->cq);
	init.send_cq = end->cq;
	init.recv_cq = end->cq;
	end->qp = ib_create_qp(end->pd, &init);
	return PTR_ERR_OR_ZERO(end->qp);
}

static void free_end(struct end *end)
{
	if (!IS_ERR_OR_NULL(end->id))
		ib_destroy_cm_id(end->id);
	if (!IS_ERR_OR_NULL(end->qp))
		ib_destroy_qp(end->qp);
	if (!IS_ERR_OR_NULL(end->cq))
		ib_free_cq(end->cq);
	if (!IS_ERR_OR_NULL(end->pd))
		ib_dealloc_pd(end->pd);
	kfree(end->buffer);
	end->id = NULL;
	end->qp = NULL;
	end->cq = NULL;
	end->pd = NULL;
	end->buffer = NULL;
}

static int make_path(struct ib_device *ibdev, int from, int to, u8 hop_limit,
		     struct sa_path_rec *path)
{
	struct ib_port_attr source, target;
	int ret;

	memset(path, 0, sizeof(*path));
	ret = ib_query_port(ibdev, from, &source) ?: ib_query_port(ibdev, to, &target) ?:
		rdma_query_gid(ibdev, from, 0, &path->sgid) ?:
		rdma_query_gid(ibdev, to, 0, &path->dgid);
	if (ret)
		return ret;
	path->rec_type = SA_PATH_REC_TYPE_IB;
	sa_path_set_slid(path, source.lid);
	sa_path_set_dlid(path, target.lid);
	path->hop_limit = hop_limit;
	path->pkey = cpu_to_be16(0xffff);
	path->mtu_selector = IB_SA_EQ;
	path->mtu = IB_MTU_2048;
	path->rate_selector = IB_SA_EQ;
	path->rate = IB_RATE_10_GBPS;
	path->packet_life_time_selector = IB_SA_EQ;
	path->packet_life_time = 10;
	path->reversible = 1;
	path->numb_path = 1;
	return 0;
}

static int send_req(u8 hop_limit)
{
	struct sa_path_rec primary, alternate;
	struct ib_cm_req_param req = {
		.primary_path = &primary,
		/* One message cannot name two paths across a router: there are no LIDs in it. */
		.alternate_path = hop_limit == ROUTED ? NULL : &alternate,
		.service_id = SERVICE_ID,
		.qp_num = active.qp->qp_num,
		.qp_type = IB_QPT_RC,
		.starting_psn = ACTIVE_PSN,
		.responder_resources = 1,
		.initiator_depth = 1,
		.remote_cm_response_timeout = 18,
		.local_cm_response_timeout = 18,
		.retry_count = 1,
		.rnr_retry_count = 7,
		.max_cm_retries = 7,
	};
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE,
	};

	return make_path(active.ibdev, 1, 2, hop_limit, &primary) ?:
		make_path(active.ibdev, 2, 1, hop_limit, &alternate) ?:
		ib_modify_qp(active.qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			     IB_QP_ACCESS_FLAGS) ?:
		ib_send_cm_req(active.id, &req);
}

static int send_rep(void)
{
	struct ib_cm_rep_param rep = {
		.qp_num = passive.qp->qp_num,
		.starting_psn = PASSIVE_PSN,
		.responder_resources = 1,
		.initiator_depth = 1,
		.rnr_retry_count = 7,
	};

	return to_state(&passive, IB_QPS_INIT) ?: to_state(&passive, IB_QPS_RTR) ?:
		ib_send_cm_rep(passive.id, &rep);
}

static bool poll(struct end *end)
{
	unsigned long until = jiffies + WAIT;
	struct ib_wc wc;

	while (time_before(jiffies, until)) {
		if (ib_poll_cq(end->cq, 1, &wc) == 1) {
			if (wc.status != IB_WC_SUCCESS)
				pr_err("ib_apm_test: %s: %s\n", end->name,
				       ib_wc_status_msg(wc.status));
			return wc.status == IB_WC_SUCCESS;
		}
		usleep_range(500, 1000);
	}
	return false;
}

/* transfer - one message, and its contents */
static bool transfer(struct end *from, struct end *to, u8 fill)
{
	struct ib_sge sge = { .length = SIZE, .lkey = to->pd->local_dma_lkey };
	struct ib_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };
	struct ib_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND };
	u64 target = ib_dma_map_single(to->ibdev, to->buffer, SIZE, DMA_FROM_DEVICE);
	u64 source;
	bool good;

	memset(from->buffer, fill, SIZE);
	source = ib_dma_map_single(from->ibdev, from->buffer, SIZE, DMA_TO_DEVICE);
	sge.addr = target;
	good = !ib_post_recv(to->qp, &recv, NULL);
	sge.addr = source;
	sge.lkey = from->pd->local_dma_lkey;
	good = good && !ib_post_send(from->qp, &send, NULL) && poll(from) && poll(to);
	ib_dma_unmap_single(to->ibdev, target, SIZE, DMA_FROM_DEVICE);
	ib_dma_unmap_single(from->ibdev, source, SIZE, DMA_TO_DEVICE);
	return good && !memchr_inv(to->buffer, fill, SIZE);
}

/* The alternate path as ib_cm told it to the QP: of that port, to the LID of the other. */
static bool alternate_is(struct end *end, int port_num, int other, bool grh)
{
	struct ib_qp_init_attr init;
	struct ib_port_attr port;
	struct ib_qp_attr attr;

	if (ib_query_qp(end->qp, &attr, IB_QP_ALT_PATH, &init) ||
	    ib_query_port(end->ibdev, other, &port))
		return false;
	pr_notice("ib_apm_test: # %s: alternate port %u, LID %u, flags %#x\n", end->name,
		  rdma_ah_get_port_num(&attr.alt_ah_attr), rdma_ah_get_dlid(&attr.alt_ah_attr),
		  rdma_ah_get_ah_flags(&attr.alt_ah_attr));
	return rdma_ah_get_port_num(&attr.alt_ah_attr) == port_num &&
		rdma_ah_get_dlid(&attr.alt_ah_attr) == port.lid &&
		!!(rdma_ah_get_ah_flags(&attr.alt_ah_attr) & IB_AH_GRH) == grh;
}

/* Both ends are armed once a message was exchanged (IBA 17.2.8.1). */
static bool migration_state_is(enum ib_mig_state state)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr[2];

	return !ib_query_qp(active.qp, &attr[0], IB_QP_PATH_MIG_STATE, &init) &&
		!ib_query_qp(passive.qp, &attr[1], IB_QP_PATH_MIG_STATE, &init) &&
		attr[0].path_mig_state == state && attr[1].path_mig_state == state;
}

static bool connect_ends(u8 hop_limit)
{
	return step(!send_req(hop_limit), "a REQ is sent") &&
		step(came(&passive.events[IB_CM_REQ_RECEIVED]), "it arrives") &&
		step(!send_rep(), "the passive QP takes the paths, a REP is sent") &&
		step(came(&active.events[IB_CM_REP_RECEIVED]), "the REP arrives") &&
		step(!to_state(&active, IB_QPS_RTR) && !to_state(&active, IB_QPS_RTS),
		     "the active QP takes the paths") &&
		step(!ib_send_cm_rtu(active.id, NULL, 0), "an RTU is sent") &&
		step(came(&passive.events[IB_CM_RTU_RECEIVED]), "the RTU arrives") &&
		step(!to_state(&passive, IB_QPS_RTS), "the passive QP may send");
}

static bool migrate(u8 hop_limit)
{
	bool grh = hop_limit != NO_GRH;

	return step(alternate_is(&active, 2, 1, grh) && alternate_is(&passive, 1, 2, grh),
		    "the alternate paths of the QPs are those of the REQ") &&
		step(transfer(&active, &passive, 0xa1), "a message by the primary path") &&
		step(migration_state_is(IB_MIG_ARMED), "both ends are armed") &&
		step(transfer(&passive, &active, 0xa2), "and one back") &&
		(loop_break_port(1),
		 step(transfer(&active, &passive, 0xa3), "port 1 is broken: a message arrives")) &&
		step(came(&active.migrated) && came(&passive.migrated) &&
		     migration_state_is(IB_MIG_MIGRATED), "by the alternate path, of both ends") &&
		step((loop_break_port(0), transfer(&passive, &active, 0xa4)), "and one back");
}

/* lap_taken - what ib_cm says of the alternate path that a LAP brought */
static bool lap_taken(struct sa_path_rec *alternate)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	int mask;

	return passive.id->lap_state == IB_CM_LAP_RCVD &&
		!ib_cm_init_qp_attr(passive.id, &attr, &mask) &&
		mask == (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE) &&
		attr.alt_port_num == 1 && attr.path_mig_state == IB_MIG_REARM &&
		rdma_ah_get_dlid(&attr.alt_ah_attr) == be32_to_cpu(sa_path_get_slid(alternate));
}

static bool load_alternate(void)
{
	struct sa_path_rec primary, alternate;
	u32 qpn = passive.qp->qp_num;

	return step(!make_path(active.ibdev, 1, 2, NO_GRH, &primary) &&
		    !make_path(active.ibdev, 2, 1, NO_GRH, &alternate) &&
		    !apm_send_lap(active.id, passive.id, qpn, &primary, &alternate),
		    "a LAP is sent") &&
		step(came(&passive.events[IB_CM_LAP_RECEIVED]), "it arrives") &&
		step(lap_taken(&alternate), "with the alternate path") &&
		step(!apm_send_lap(active.id, passive.id, qpn, &primary, &alternate),
		     "and again, a duplicate") &&
		step(!apm_send_apr(passive.id, active.id, &alternate), "an APR is sent") &&
		step(transfer(&active, &passive, 0xb1) && transfer(&passive, &active, 0xb2),
		     "messages both ways");
}

/* The log of the test's caller shows by the counters which port sent these. */
static bool disconnect(void)
{
	return step(!ib_send_cm_dreq(active.id, NULL, 0), "a DREQ is sent") &&
		step(came(&passive.events[IB_CM_DREQ_RECEIVED]), "it arrives") &&
		step(!ib_send_cm_drep(passive.id, NULL, 0), "a DREP is sent") &&
		step(came(&active.events[IB_CM_DREP_RECEIVED]), "it arrives") &&
		step(came(&active.events[IB_CM_TIMEWAIT_EXIT]) &&
		     came(&passive.events[IB_CM_TIMEWAIT_EXIT]), "TimeWait ends at both ends");
}

/* apr_ignored - once a later message of the same port, the DREP, has arrived */
static bool apr_ignored(void)
{
	return step(active.id->lap_state == IB_CM_LAP_UNINIT &&
		    !completion_done(&active.events[IB_CM_APR_RECEIVED]),
		    "nobody was told of the APR");
}

static void run(struct ib_device *ibdev, u8 hop_limit)
{
	int ret;

	pr_notice("ib_apm_test: # hop limit %u\n", hop_limit);
	ret = make_end(&active, ibdev) ?: make_end(&passive, ibdev);
	if (step(!ret, "two QPs")) {
		active.id = ib_create_cm_id(ibdev, cm_event, NULL);
		if (step(!IS_ERR(active.id), "an id"))
			(void)(connect_ends(hop_limit) &&
			       (hop_limit == ROUTED ? load_alternate() : migrate(hop_limit)) &&
			       disconnect() && (hop_limit != ROUTED || apr_ignored()));
	}
	loop_break_port(0);
	free_end(&active);
	free_end(&passive);
}

static int found(struct ib_device *ibdev)
{
	if (strcmp(dev_name(&ibdev->dev), device))
		return -EOPNOTSUPP;
	listener = ib_create_cm_id(ibdev, cm_event, NULL);
	if (!step(!IS_ERR(listener), "a listener"))
		return 0;
	if (step(!ib_cm_listen(listener, SERVICE_ID), "it listens")) {
		run(ibdev, NO_GRH);
		run(ibdev, GRH_IN_SUBNET);
		run(ibdev, ROUTED);
	}
	ib_destroy_cm_id(listener);
	return 0;
}

static void gone(struct ib_device *ibdev, void *unused)
{
}

static struct ib_client client = {
	.name = "ib_apm_test",
	.add = found,
	.remove = gone,
};

static int __init ib_apm_test_init(void)
{
	int ret = ib_register_client(&client);

	if (!ret && (!listener || failures)) {
		ib_unregister_client(&client);
		ret = listener ? -EIO : -ENODEV;
	}
	return ret;
}
module_init(ib_apm_test_init);

static void __exit ib_apm_test_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(ib_apm_test_exit);
