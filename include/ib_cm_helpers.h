/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions in rust/helpers for what Rust cannot call itself: inline functions, macros, variadic
 * functions, and what only C can declare. Each is named after what it wraps; rust/rdma is their
 * only caller.
 */
#ifndef IB_CM_HELPERS_H
#define IB_CM_HELPERS_H

#include <linux/sched.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_types.h>

struct dentry;
struct seq_file;
struct workqueue_struct;

/* spinlock.c */
unsigned long ib_cm_helper_spin_lock_irqsave(spinlock_t *lock);
void ib_cm_helper_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags);

/* wait.c */
typedef bool (*ib_cm_condition)(void *arg);

void ib_cm_helper_wait(void *point, ib_cm_condition condition, void *arg);
bool ib_cm_helper_wait_idle(void *point, ib_cm_condition condition, void *arg,
			    unsigned long timeout);
void ib_cm_helper_wake(void *point);

/* workqueue.c */
struct workqueue_struct *ib_cm_helper_alloc_workqueue(const char *name, int max_active);
void ib_cm_helper_destroy_workqueue(struct workqueue_struct *wq);
void ib_cm_helper_flush_workqueue(struct workqueue_struct *wq);

/* print.c */
bool ib_cm_helper_may_log(void);

/* debug.c */
struct ib_cm_table {
	void *(*open)(void);		/* a walk through the table; NULL: no memory */
	bool (*seek)(void *walk, u64 line);	/* to a line; false: behind the last one */
	void (*print)(void *walk, struct seq_file *file);	/* the line */
	void (*release)(void *walk);
};

struct dentry *ib_cm_helper_debug_dir(const char *name);
void ib_cm_helper_debug_table(struct dentry *dir, const char *name,
			      const struct ib_cm_table *table);
void ib_cm_helper_debug_remove(struct dentry *dir);
void ib_cm_helper_copy_device_name(const struct ib_device *device, char name[IB_DEVICE_NAME_MAX]);
void ib_cm_helper_copy_task_name(char name[TASK_COMM_LEN]);
void ib_cm_helper_symbol(char *to, size_t size, unsigned long address);
void ib_cm_helper_cond_resched(void);

/* module.c */
bool ib_cm_helper_can_wait_for_callers(void);
void ib_cm_helper_wait_for_callers(void);
bool ib_cm_helper_module_is_live(void);
void ib_cm_helper_pin_module(void);
unsigned int ib_cm_helper_device_users(const struct ib_device *device);

/* params.c */
extern u32 ib_cm_hold_point;	/* the address on which holds wait */

extern unsigned int ib_cm_hold_max_ms;
extern bool ib_cm_hold_explicit;
extern unsigned int ib_cm_history;
extern unsigned int ib_cm_first_retry_ms;
extern bool ib_cm_mra_once;
extern unsigned int ib_cm_sidr_replay;

/* sysfs.c */
#define IB_CM_COUNTER_GROUPS	4
#define IB_CM_COUNTERS		11

struct ib_cm_port_counters;

struct ib_cm_port_counters *
ib_cm_helper_register_counters(struct ib_device *device, u32 port_num,
			       const long values[IB_CM_COUNTER_GROUPS][IB_CM_COUNTERS]);
void ib_cm_helper_unregister_counters(struct ib_cm_port_counters *port);

/* verbs.c: devices and ports */
void ib_cm_helper_get_device(struct ib_device *device);
void ib_cm_helper_put_device(struct ib_device *device);
const char *ib_cm_helper_device_name(const struct ib_device *device);
u32 ib_cm_helper_start_port(const struct ib_device *device);
u32 ib_cm_helper_end_port(const struct ib_device *device);
bool ib_cm_helper_cap_ib_cm(const struct ib_device *device, u32 port);
bool ib_cm_helper_cap_opa_ah(struct ib_device *device, u32 port);
bool ib_cm_helper_protocol_roce(const struct ib_device *device, u32 port);

/* verbs.c: address attributes, path records, LIDs */
u32 ib_cm_helper_ah_dlid(const struct rdma_ah_attr *attr);
u32 ib_cm_helper_path_slid(const struct sa_path_rec *path);
u32 ib_cm_helper_path_dlid(const struct sa_path_rec *path);
void ib_cm_helper_path_set_slid(struct sa_path_rec *path, u32 slid);
void ib_cm_helper_path_set_dlid(struct sa_path_rec *path, u32 dlid);
bool ib_cm_helper_is_opa_gid(const union ib_gid *gid);
u32 ib_cm_helper_opa_lid(const union ib_gid *gid);

/* events.c */
struct ib_cm_req_event_param;
struct ib_cm_rep_event_param;

void ib_cm_helper_req_event_bits(struct ib_cm_req_event_param *param, u8 local_cm_response_timeout,
				 bool flow_control, u8 remote_cm_response_timeout, u8 retry_count,
				 u8 rnr_retry_count, bool srq);
void ib_cm_helper_rep_event_bits(struct ib_cm_rep_event_param *param, u8 target_ack_delay,
				 u8 failover_accepted, bool flow_control, u8 rnr_retry_count,
				 bool srq);

/* verbs.c: MADs */
u64 ib_cm_helper_mad_source(const struct ib_mad_recv_wc *mad);

#endif /* IB_CM_HELPERS_H */
