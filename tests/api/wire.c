// SPDX-License-Identifier: GPL-2.0
/* An agent that sends whatever it is told to the connection manager of its own device. */

#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/slab.h>

#include "wire.h"

static struct ib_mad_agent *agent;
static struct ib_ah *ah;
static char device_name[IB_DEVICE_NAME_MAX];
static struct completion sent;

static const char * const groups[WIRE_GROUPS] = {
	"cm_tx_msgs", "cm_tx_retries", "cm_rx_msgs", "cm_rx_duplicates",
};

static const char * const attrs[WIRE_ATTRS] = {
	"req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep", "lap", "apr",
};

static void send_done(struct ib_mad_agent *mad_agent, struct ib_mad_send_wc *wc)
{
	ib_free_send_mad(wc->send_buf);
	complete(&sent);
}

bool wire_open(struct api_test *t, const struct roce_device *device)
{
	struct rdma_ah_attr ah_attr;
	struct sa_path_rec path;
	int ret;

	init_completion(&sent);
	strscpy(device_name, dev_name(&device->ib_device->dev));
	agent = ib_register_mad_agent(device->ib_device, device->port, IB_QPT_GSI, NULL, 0,
				      send_done, NULL, NULL, 0);
	if (!api_check(t, !IS_ERR(agent), "no agent: %pe", agent))
		return false;
	api_path(&path, API_LIFE_TIME);
	path.sgid = device->gid;
	path.dgid = device->gid;
	memcpy(path.roce.dmac, device->netdev->dev_addr, ETH_ALEN);
	ret = ib_init_ah_attr_from_path(device->ib_device, device->port, &path, &ah_attr,
					device->attr);
	if (!api_eq(t, ret, 0, "the address of the device itself"))
		goto unregister;
	ah = rdma_create_ah(agent->qp->pd, &ah_attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&ah_attr);
	if (!api_check(t, !IS_ERR(ah), "no address handle: %pe", ah))
		goto unregister;
	return true;

unregister:
	ib_unregister_mad_agent(agent);
	return false;
}

void wire_close(void)
{
	/* What is in flight uses the address handle. */
	ib_unregister_mad_agent(agent);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

void wire_format(union wire_mad *mad, enum wire_attr attr)
{
	static u32 tid;

	memset(mad, 0, sizeof(*mad));
	mad->hdr.base_version = IB_MGMT_BASE_VERSION;
	mad->hdr.mgmt_class = IB_MGMT_CLASS_CM;
	mad->hdr.class_version = WIRE_CLASS_VERSION;
	mad->hdr.method = IB_MGMT_METHOD_SEND;
	mad->hdr.attr_id = cpu_to_be16(WIRE_FIRST_ATTR + attr);
	mad->hdr.tid = cpu_to_be64(++tid);
}

bool wire_send(struct api_test *t, union wire_mad *mad)
{
	struct ib_mad_send_buf *buf;
	int ret;

	buf = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, GFP_KERNEL,
				 IB_MGMT_BASE_VERSION);
	if (!api_check(t, !IS_ERR(buf), "no send buffer: %pe", buf))
		return false;
	memcpy(buf->mad, mad, sizeof(*mad));
	buf->ah = ah;
	reinit_completion(&sent);
	ret = ib_post_send_mad(buf, NULL);
	if (!api_eq(t, ret, 0, "ib_post_send_mad")) {
		ib_free_send_mad(buf);
		return false;
	}
	return api_check(t, wait_for_completion_timeout(&sent, msecs_to_jiffies(API_WAIT_MS)),
			 "a MAD is not sent");
}

void wire_req(union wire_mad *mad, const struct api_conn *conn)
{
	struct cm_req_msg *req = &mad->req;

	wire_format(mad, WIRE_REQ);
	IBA_SET(CM_REQ_LOCAL_COMM_ID, req, be32_to_cpu(conn->active->cm_id->local_id));
	IBA_SET(CM_REQ_SERVICE_ID, req, be64_to_cpu(conn->req.service_id));
	IBA_SET(CM_REQ_LOCAL_CA_GUID, req, be64_to_cpu(api_device.ib_device->node_guid));
	IBA_SET(CM_REQ_LOCAL_QPN, req, conn->req.qp_num);
	IBA_SET(CM_REQ_REMOTE_CM_RESPONSE_TIMEOUT, req, conn->req.remote_cm_response_timeout);
	IBA_SET(CM_REQ_LOCAL_CM_RESPONSE_TIMEOUT, req, conn->req.local_cm_response_timeout);
	IBA_SET(CM_REQ_MAX_CM_RETRIES, req, conn->req.max_cm_retries);
	IBA_SET(CM_REQ_PARTITION_KEY, req, 0xffff);
	IBA_SET(CM_REQ_PATH_PACKET_PAYLOAD_MTU, req, IB_MTU_1024);
	IBA_SET(CM_REQ_PRIMARY_LOCAL_PORT_LID, req, 0xffff);
	IBA_SET(CM_REQ_PRIMARY_REMOTE_PORT_LID, req, 0xffff);
	*IBA_GET_MEM_PTR(CM_REQ_PRIMARY_LOCAL_PORT_GID, req) = conn->path.sgid;
	*IBA_GET_MEM_PTR(CM_REQ_PRIMARY_REMOTE_PORT_GID, req) = conn->path.dgid;
	IBA_SET(CM_REQ_PRIMARY_HOP_LIMIT, req, 64);
	IBA_SET(CM_REQ_PRIMARY_PACKET_RATE, req, IB_RATE_10_GBPS);
	IBA_SET(CM_REQ_PRIMARY_LOCAL_ACK_TIMEOUT, req, 15);
}

/* All messages but REQ and SIDR have both IDs in one place. */
void wire_ids(union wire_mad *mad, enum wire_attr attr, __be32 local_id, __be32 remote_id)
{
	wire_format(mad, attr);
	IBA_SET(CM_DREQ_LOCAL_COMM_ID, &mad->dreq, be32_to_cpu(local_id));
	IBA_SET(CM_DREQ_REMOTE_COMM_ID, &mad->dreq, be32_to_cpu(remote_id));
}

/* --- counters --- */

static long read_counter(const char *device, enum wire_group group, enum wire_attr attr)
{
	char path[128], text[32] = {};
	struct file *file;
	loff_t pos = 0;
	long value;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s/%s", device,
		 groups[group], attrs[attr]);
	file = filp_open(path, O_RDONLY, 0);
	if (IS_ERR(file))
		return -1;
	if (kernel_read(file, text, sizeof(text) - 1, &pos) <= 0 || kstrtol(text, 10, &value))
		value = -1;
	filp_close(file, NULL);
	return value;
}

void wire_count(struct wire_counters *counters)
{
	unsigned int group, attr;

	for (group = 0; group < WIRE_GROUPS; group++)
		for (attr = 0; attr < WIRE_ATTRS; attr++)
			counters->value[group][attr] = read_counter(device_name, group, attr);
}

long wire_counter(const struct roce_device *device, enum wire_group group, enum wire_attr attr)
{
	return read_counter(dev_name(&device->ib_device->dev), group, attr);
}

void wire_expect(struct wire_counters *expected, enum wire_group group, enum wire_attr attr,
		 long number)
{
	expected->value[group][attr] += number;
}

void wire_expect_sent(struct wire_counters *expected, enum wire_attr attr)
{
	wire_expect(expected, WIRE_TX, attr, 1);
	wire_expect(expected, WIRE_RX, attr, 1);
}

void wire_expect_repeated(struct wire_counters *expected, enum wire_attr attr)
{
	wire_expect(expected, WIRE_TX, attr, 2);
	wire_expect(expected, WIRE_TX_RETRIES, attr, 1);
	wire_expect(expected, WIRE_RX, attr, 1);
}

void wire_compare(struct api_test *t, const struct wire_counters *expected, const char *what)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(5000);
	struct wire_counters got;
	unsigned int group, attr;

	do {
		wire_count(&got);
		if (!memcmp(&got, expected, sizeof(got)))
			break;
		usleep_range(5000, 10000);
	} while (time_before(jiffies, deadline));
	for (group = 0; group < WIRE_GROUPS; group++)
		for (attr = 0; attr < WIRE_ATTRS; attr++)
			api_eq(t, got.value[group][attr], expected->value[group][attr],
			       "%s: %s %s", what, groups[group], attrs[attr]);
}

static bool counted_more(const long before[2])
{
	unsigned long deadline = jiffies + msecs_to_jiffies(API_WAIT_MS);

	while (read_counter(device_name, WIRE_TX, WIRE_SIDR_REQ) <= before[0] ||
	       read_counter(device_name, WIRE_TX, WIRE_SIDR_REP) <= before[1]) {
		if (time_after(jiffies, deadline))
			return false;
		usleep_range(1000, 2000);
	}
	return true;
}

/* Counts when nothing more comes of what was before. */
bool wire_begin(struct api_test *t, struct wire_counters *counters)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(API_WAIT_MS);
	struct wire_counters now;

	if (!wire_open(t, &api_device))
		return false;
	if (!wire_fence(t))
		goto close;
	wire_count(counters);
	for (;;) {
		msleep(50);
		wire_count(&now);
		if (!memcmp(&now, counters, sizeof(now)))
			return true;
		*counters = now;
		if (!api_check(t, time_before(jiffies, deadline), "the counters do not rest"))
			goto close;
	}

close:
	wire_close();
	return false;
}

/* A question about a service that nobody has, from the same source, is answered after all that
 * was sent before it.
 */
bool wire_fence(struct api_test *t)
{
	struct ib_cm_sidr_req_param param = {
		.sgid_attr = api_device.attr,
		.service_id = api_service_id(),
		.timeout_ms = 5000,
		.max_cm_retries = 3,
	};
	long before[] = {
		read_counter(device_name, WIRE_TX, WIRE_SIDR_REQ),
		read_counter(device_name, WIRE_TX, WIRE_SIDR_REP),
	};
	struct sa_path_rec path;
	struct api_id *id = api_create(t);
	bool good;

	if (!id)
		return false;
	api_path(&path, API_LIFE_TIME);
	param.path = &path;
	api_eq(t, ib_send_cm_sidr_req(id->cm_id, &param), 0, "ib_send_cm_sidr_req");
	good = api_wait(t, id, IB_CM_SIDR_REP_RECEIVED);
	api_destroy(id);
	/* A message is counted when its send completes, which may be after its arrival. */
	return good && api_check(t, counted_more(before), "a message is not counted");
}

void wire_send_and_compare(struct api_test *t, union wire_mad *mad, struct wire_counters *expected,
			   const char *what)
{
	if (!wire_send(t, mad) || !wire_fence(t))
		return;
	wire_expect_sent(expected, WIRE_SIDR_REQ);
	wire_expect_sent(expected, WIRE_SIDR_REP);
	wire_compare(t, expected, what);
}
