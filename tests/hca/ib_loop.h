/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ib_loop: one adapter with two InfiniBand ports that are cabled to each other.
 *
 * There is no wire format. A work item of each QP takes the requests of its send queue in turn
 * and copies them into the receive queue, or the memory, of the QP that they are for.
 *
 * Locks: the r_lock of a QP before its s_lock, as in rdmavt; never locks of two QPs at once.
 * While data is copied only the r_lock of the receiving QP is held.
 */
#ifndef IB_LOOP_H
#define IB_LOOP_H

#include <linux/pci.h>
#include <linux/workqueue.h>
#include <rdma/ib_hdrs.h>
#include <rdma/ib_mad.h>
#include <rdma/rdma_vt.h>
#include <rdma/rdmavt_qp.h>

#define LOOP_PORTS	2
#define LOOP_PKEYS	RVT_MAX_PKEY_VALUES
#define LOOP_MTU	IB_MTU_4096

/* Physical port states of a PortInfo attribute (IBA 14.2.5.6). */
enum {
	LOOP_PHYS_POLLING = 2,
	LOOP_PHYS_LINK_UP = 5,
};

struct loop_port {
	struct rvt_ibport rvp;
	u16 pkeys[LOOP_PKEYS];
	u16 lid;
	u8 lmc;
	u8 state;		/* enum ib_port_state */
};

struct loop_dev {
	struct rvt_dev_info rdi;	/* first, because rdmavt allocates it */
	struct pci_dev pci;		/* a name for the messages of rdmavt, nothing more */
	struct loop_port ports[LOOP_PORTS];
	__be64 node_guid;
	struct workqueue_struct *wq;	/* send queues, delayed datagrams */
	bool link_up;
};

/* The driver's part of a QP. */
struct loop_qp {
	struct rvt_qp *qp;
	struct work_struct send;
	bool tell_migrated;	/* the consumer has to be told that it did */
};

/* What is sent on a QP, and by which path it goes. */
struct loop_path {
	struct loop_dev *dev;
	const struct rdma_ah_attr *ah;
	int from;		/* port number */
	int to;			/* port number, 0 when no port has the LID */
	u16 pkey;
};

static inline struct loop_dev *to_loop(struct rvt_dev_info *rdi)
{
	return container_of(rdi, struct loop_dev, rdi);
}

static inline struct loop_dev *ibdev_to_loop(struct ib_device *ibdev)
{
	return to_loop(ib_to_rvt(ibdev));
}

static inline struct loop_port *loop_port(struct loop_dev *dev, int port_num)
{
	return &dev->ports[port_num - 1];
}

/* The other end of the cable. */
static inline int loop_peer(int port_num)
{
	return 3 - port_num;
}

/* main.c */
__be64 loop_port_guid(struct loop_dev *dev, int port_num);
bool loop_port_carries(struct loop_dev *dev, int port_num);
void loop_event(struct loop_dev *dev, int port_num, enum ib_event_type event);
void loop_set_link(struct loop_dev *dev, bool up);

/* sma.c */
int loop_process_mad(struct ib_device *ibdev, int mad_flags, u32 port_num,
		     const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		     const struct ib_mad *in, struct ib_mad *out, size_t *out_size,
		     u16 *out_pkey_index);

/* qp.c */
extern const struct rvt_operation_params loop_post_parms[RVT_OPERATION_MAX];
extern const enum ib_wc_opcode loop_wc_opcode[RVT_OPERATION_MAX];
void loop_set_qp_hooks(struct rvt_driver_provided *f);
void loop_copy(struct rvt_qp *qp, struct rvt_sge_state *to, bool put_to,
	       struct rvt_sge_state *from, bool put_from, u32 length);
void loop_wqe_sges(struct rvt_swqe *wqe, struct rvt_sge_state *ss);
void loop_receive_done(struct rvt_qp *qp, struct ib_wc *wc, bool solicited);
bool loop_pkeys_match(u16 a, u16 b);

/* rc.c: what became of a request. */
enum loop_result {
	LOOP_DONE,		/* complete it, with the status */
	LOOP_RECEIVER_NOT_READY,
	LOOP_NO_ANSWER,		/* nobody there, or the path is broken */
};

struct loop_answer {
	enum loop_result result;
	enum ib_wc_status status;
	u8 rnr_timer;
	bool not_migrated;	/* the responder is on its primary path */
};

void loop_rc_send(struct rvt_qp *qp, struct rvt_swqe *wqe, struct loop_answer *answer);
void loop_migrate(struct rvt_qp *qp);
void loop_tell_migrated(struct rvt_qp *qp);
void loop_arm(struct rvt_qp *qp, bool not_migrated);

/* ud.c */
void loop_ud_send(struct rvt_qp *qp, struct rvt_swqe *wqe);
void loop_ud_exit(void);

/* ipoib.c */
int loop_ipoib_init(struct loop_dev *dev);
void loop_ipoib_exit(void);

/* control.c */
enum loop_fault {
	LOOP_PASS,
	LOOP_DROP,
	LOOP_REPEAT,
	LOOP_DELAY,
};

enum loop_fault loop_fault_of(int port_num, u16 attr_id, unsigned int *delay_ms);
bool loop_rnr_gives_up(void);
void loop_break_port(int port_num);
bool loop_port_is_broken(int port_num);
void loop_control_init(struct loop_dev *dev);
void loop_control_exit(void);

#endif
