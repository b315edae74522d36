// SPDX-License-Identifier: GPL-2.0
/*
 * Where the C compiler puts the structs that Rust shares with C. Never linked: Kbuild compiles
 * this file to assembly and turns each line marked with "->" into an assertion that the Rust
 * compiler checks against the bindings (see rust/rdma/layout.rs).
 */
#include <linux/stddef.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_types.h>

#define SIZE(type) \
	asm volatile("\n.ascii \"->size " #type " %c0\"" : : "i"(sizeof(struct type)))

/* A field whose name in the bindings is another one. */
#define FIELD_AS(type, field, rust) \
	asm volatile("\n.ascii \"->field " #type " " #rust " %c0\"" : : \
		     "i"(offsetof(struct type, field)))

#define FIELD(type, field) FIELD_AS(type, field, field)

void ib_cm_layout(void);

void ib_cm_layout(void)
{
	SIZE(ib_cm_id);
	FIELD(ib_cm_id, cm_handler);
	FIELD(ib_cm_id, context);
	FIELD(ib_cm_id, device);
	FIELD(ib_cm_id, service_id);
	FIELD(ib_cm_id, state);
	FIELD(ib_cm_id, lap_state);
	FIELD(ib_cm_id, local_id);
	FIELD(ib_cm_id, remote_id);
	FIELD(ib_cm_id, remote_cm_qpn);

	SIZE(ib_cm_event);
	FIELD(ib_cm_event, event);
	FIELD(ib_cm_event, param);
	FIELD(ib_cm_event, private_data);

	SIZE(ib_cm_req_event_param);
	FIELD(ib_cm_req_event_param, listen_id);
	FIELD(ib_cm_req_event_param, bth_pkey);
	FIELD(ib_cm_req_event_param, port);
	FIELD(ib_cm_req_event_param, primary_path);
	FIELD(ib_cm_req_event_param, alternate_path);
	FIELD(ib_cm_req_event_param, ppath_sgid_attr);
	FIELD(ib_cm_req_event_param, remote_ca_guid);
	FIELD(ib_cm_req_event_param, remote_qkey);
	FIELD(ib_cm_req_event_param, remote_qpn);
	FIELD(ib_cm_req_event_param, qp_type);
	FIELD(ib_cm_req_event_param, starting_psn);
	FIELD(ib_cm_req_event_param, responder_resources);
	FIELD(ib_cm_req_event_param, initiator_depth);
	FIELD(ib_cm_req_event_param, ece);

	SIZE(ib_cm_rep_event_param);
	FIELD(ib_cm_rep_event_param, remote_ca_guid);
	FIELD(ib_cm_rep_event_param, remote_qkey);
	FIELD(ib_cm_rep_event_param, remote_qpn);
	FIELD(ib_cm_rep_event_param, starting_psn);
	FIELD(ib_cm_rep_event_param, responder_resources);
	FIELD(ib_cm_rep_event_param, initiator_depth);
	FIELD(ib_cm_rep_event_param, ece);

	SIZE(ib_cm_rej_event_param);
	FIELD(ib_cm_rej_event_param, reason);
	FIELD(ib_cm_rej_event_param, ari);
	FIELD(ib_cm_rej_event_param, ari_length);

	SIZE(ib_cm_mra_event_param);
	SIZE(ib_cm_lap_event_param);

	SIZE(ib_cm_apr_event_param);
	FIELD(ib_cm_apr_event_param, ap_status);
	FIELD(ib_cm_apr_event_param, apr_info);
	FIELD(ib_cm_apr_event_param, info_len);

	SIZE(ib_cm_sidr_req_event_param);
	FIELD(ib_cm_sidr_req_event_param, listen_id);
	FIELD(ib_cm_sidr_req_event_param, service_id);
	FIELD(ib_cm_sidr_req_event_param, sgid_attr);
	FIELD(ib_cm_sidr_req_event_param, bth_pkey);
	FIELD(ib_cm_sidr_req_event_param, port);
	FIELD(ib_cm_sidr_req_event_param, pkey);

	SIZE(ib_cm_sidr_rep_event_param);
	FIELD(ib_cm_sidr_rep_event_param, status);
	FIELD(ib_cm_sidr_rep_event_param, qkey);
	FIELD(ib_cm_sidr_rep_event_param, qpn);
	FIELD(ib_cm_sidr_rep_event_param, info);
	FIELD(ib_cm_sidr_rep_event_param, sgid_attr);
	FIELD(ib_cm_sidr_rep_event_param, info_len);

	SIZE(ib_cm_req_param);
	FIELD(ib_cm_req_param, primary_path);
	FIELD(ib_cm_req_param, primary_path_inbound);
	FIELD(ib_cm_req_param, primary_path_outbound);
	FIELD(ib_cm_req_param, alternate_path);
	FIELD(ib_cm_req_param, ppath_sgid_attr);
	FIELD(ib_cm_req_param, service_id);
	FIELD(ib_cm_req_param, qp_num);
	FIELD(ib_cm_req_param, qp_type);
	FIELD(ib_cm_req_param, starting_psn);
	FIELD(ib_cm_req_param, private_data);
	FIELD(ib_cm_req_param, private_data_len);
	FIELD(ib_cm_req_param, responder_resources);
	FIELD(ib_cm_req_param, initiator_depth);
	FIELD(ib_cm_req_param, remote_cm_response_timeout);
	FIELD(ib_cm_req_param, flow_control);
	FIELD(ib_cm_req_param, local_cm_response_timeout);
	FIELD(ib_cm_req_param, retry_count);
	FIELD(ib_cm_req_param, rnr_retry_count);
	FIELD(ib_cm_req_param, max_cm_retries);
	FIELD(ib_cm_req_param, srq);
	FIELD(ib_cm_req_param, ece);

	SIZE(ib_cm_rep_param);
	FIELD(ib_cm_rep_param, qp_num);
	FIELD(ib_cm_rep_param, starting_psn);
	FIELD(ib_cm_rep_param, private_data);
	FIELD(ib_cm_rep_param, private_data_len);
	FIELD(ib_cm_rep_param, responder_resources);
	FIELD(ib_cm_rep_param, initiator_depth);
	FIELD(ib_cm_rep_param, failover_accepted);
	FIELD(ib_cm_rep_param, flow_control);
	FIELD(ib_cm_rep_param, rnr_retry_count);
	FIELD(ib_cm_rep_param, srq);
	FIELD(ib_cm_rep_param, ece);

	SIZE(ib_cm_sidr_req_param);
	FIELD(ib_cm_sidr_req_param, path);
	FIELD(ib_cm_sidr_req_param, sgid_attr);
	FIELD(ib_cm_sidr_req_param, service_id);
	FIELD(ib_cm_sidr_req_param, timeout_ms);
	FIELD(ib_cm_sidr_req_param, private_data);
	FIELD(ib_cm_sidr_req_param, private_data_len);
	FIELD(ib_cm_sidr_req_param, max_cm_retries);

	SIZE(ib_cm_sidr_rep_param);
	FIELD(ib_cm_sidr_rep_param, qp_num);
	FIELD(ib_cm_sidr_rep_param, qkey);
	FIELD(ib_cm_sidr_rep_param, status);
	FIELD(ib_cm_sidr_rep_param, info);
	FIELD(ib_cm_sidr_rep_param, info_length);
	FIELD(ib_cm_sidr_rep_param, private_data);
	FIELD(ib_cm_sidr_rep_param, private_data_len);
	FIELD(ib_cm_sidr_rep_param, ece);

	SIZE(sa_path_rec);
	FIELD(sa_path_rec, dgid);
	FIELD(sa_path_rec, sgid);
	FIELD(sa_path_rec, service_id);
	FIELD(sa_path_rec, flow_label);
	FIELD(sa_path_rec, hop_limit);
	FIELD(sa_path_rec, traffic_class);
	FIELD(sa_path_rec, pkey);
	FIELD(sa_path_rec, sl);
	FIELD(sa_path_rec, mtu);
	FIELD(sa_path_rec, rate);
	FIELD(sa_path_rec, packet_life_time);
	FIELD_AS(sa_path_rec, ib, __bindgen_anon_1);
	FIELD(sa_path_rec, rec_type);
	FIELD(sa_path_rec, flags);

	SIZE(rdma_ah_attr);
	FIELD(rdma_ah_attr, grh);
	FIELD(rdma_ah_attr, sl);
	FIELD(rdma_ah_attr, static_rate);
	FIELD(rdma_ah_attr, port_num);
	FIELD(rdma_ah_attr, ah_flags);
	FIELD_AS(rdma_ah_attr, type, type_);
	FIELD_AS(rdma_ah_attr, ib, __bindgen_anon_1);

	SIZE(ib_global_route);
	FIELD(ib_global_route, sgid_attr);
	FIELD(ib_global_route, dgid);
	FIELD(ib_global_route, flow_label);
	FIELD(ib_global_route, sgid_index);
	FIELD(ib_global_route, hop_limit);
	FIELD(ib_global_route, traffic_class);

	SIZE(ib_gid_attr);
	FIELD(ib_gid_attr, device);
	FIELD(ib_gid_attr, gid);
	FIELD(ib_gid_attr, gid_type);
	FIELD(ib_gid_attr, index);
	FIELD(ib_gid_attr, port_num);

	SIZE(ib_wc);
	FIELD(ib_wc, status);
	FIELD(ib_wc, src_qp);
	FIELD(ib_wc, slid);
	FIELD(ib_wc, wc_flags);
	FIELD(ib_wc, pkey_index);
	FIELD(ib_wc, sl);
	FIELD(ib_wc, dlid_path_bits);
	FIELD(ib_wc, port_num);
	FIELD(ib_wc, network_hdr_type);

	SIZE(ib_mad_hdr);
	FIELD(ib_mad_hdr, attr_id);

	SIZE(ib_mad_recv_wc);
	FIELD(ib_mad_recv_wc, wc);
	FIELD(ib_mad_recv_wc, recv_buf);
	FIELD(ib_mad_recv_wc, mad_len);

	SIZE(ib_mad_recv_buf);
	FIELD(ib_mad_recv_buf, grh);
	FIELD_AS(ib_mad_recv_buf, mad, __bindgen_anon_1);

	SIZE(ib_mad_send_buf);
	FIELD(ib_mad_send_buf, mad);
	FIELD(ib_mad_send_buf, mad_agent);
	FIELD(ib_mad_send_buf, ah);
	FIELD(ib_mad_send_buf, context);
	FIELD(ib_mad_send_buf, timeout_ms);
	FIELD(ib_mad_send_buf, retries);

	SIZE(ib_mad_send_wc);
	FIELD(ib_mad_send_wc, send_buf);
	FIELD(ib_mad_send_wc, status);

	SIZE(ib_mad_agent);
	FIELD(ib_mad_agent, device);
	FIELD(ib_mad_agent, qp);
	FIELD(ib_mad_agent, context);
	FIELD(ib_mad_agent, hi_tid);
	FIELD(ib_mad_agent, port_num);

	SIZE(ib_mad_reg_req);
	FIELD(ib_mad_reg_req, method_mask);

	SIZE(ib_client);
	FIELD(ib_client, add);
	FIELD(ib_client, remove);
	FIELD(ib_client, client_id);

	SIZE(ib_device);
	FIELD(ib_device, ops);
	FIELD(ib_device, node_guid);
	FIELD(ib_device, attrs);
	FIELD(ib_device, phys_port_cnt);
	SIZE(ib_device_ops);
	FIELD(ib_device_ops, ufile_hw_cleanup);
	FIELD(ib_device_ops, destroy_qp);

	SIZE(ib_qp);
	FIELD(ib_qp, device);
	FIELD(ib_qp, qp_num);
	FIELD(ib_qp, qp_type);
	FIELD(ib_qp, real_qp);
	FIELD(ib_qp, uobject);

	SIZE(ib_qp_attr);
	FIELD(ib_qp_attr, qp_state);
	FIELD(ib_qp_attr, path_mtu);
	FIELD(ib_qp_attr, qkey);
	FIELD(ib_qp_attr, rq_psn);
	FIELD(ib_qp_attr, sq_psn);
	FIELD(ib_qp_attr, dest_qp_num);
	FIELD(ib_qp_attr, qp_access_flags);
	FIELD(ib_qp_attr, ah_attr);
	FIELD(ib_qp_attr, alt_ah_attr);
	FIELD(ib_qp_attr, pkey_index);
	FIELD(ib_qp_attr, alt_pkey_index);
	FIELD(ib_qp_attr, max_rd_atomic);
	FIELD(ib_qp_attr, max_dest_rd_atomic);
	FIELD(ib_qp_attr, min_rnr_timer);
	FIELD(ib_qp_attr, port_num);
	FIELD(ib_qp_attr, timeout);
	FIELD(ib_qp_attr, retry_cnt);
	FIELD(ib_qp_attr, rnr_retry);
	FIELD(ib_qp_attr, alt_port_num);
	FIELD(ib_qp_attr, alt_timeout);

	SIZE(ib_uverbs_file);
	FIELD(ib_uverbs_file, list);
	FIELD(ib_uverbs_file, uobjects_lock);
	FIELD(ib_uverbs_file, uobjects);
	SIZE(ib_uobject);
	FIELD(ib_uobject, list);
	FIELD(ib_uobject, object);
	FIELD(ib_uobject, uapi_object);
}
