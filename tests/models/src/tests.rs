// SPDX-License-Identifier: GPL-2.0
//! The models.

use std::rc::Rc;

use ib_cm_proto::state::State;
use ib_cm_proto::step::Input;
use ib_cm_proto::step::Report;
use ib_cm_proto::wire::AttrId;
use ib_cm_proto::wire::Drep;
use ib_cm_proto::wire::Dreq;
use ib_cm_proto::wire::Rej;
use ib_cm_proto::wire::RejReason;
use kernel::prelude::*;
use kernel::sync::Arc;
use loom::cell::UnsafeCell;
use loom::thread;

use crate::cm::act::With;
use crate::cm::hold::Holder;
use crate::cm::id::Id;
use crate::cm::manager;
use crate::cm::present::note;
use crate::rdma::gate::Gate;
use crate::rdma::qp::UserQp;
use crate::rdma::ufile::ClosingFile;
use crate::rdma::ufile::TeardownObserver;
use crate::stage::*;

/// Words of a thread's stack.
const STACK: usize = 0x40000;

/// Runs a model in all orders with at most `preemptions`, or as many as the environment says.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let wanted = std::env::var("IB_CM_PREEMPTIONS").ok();
    builder.preemption_bound = wanted
        .and_then(|wanted| wanted.parse().ok())
        .or(Some(preemptions));
    builder.max_branches = 100_000;
    let model = std::sync::Arc::new(model);
    builder.check(move || {
        let model = model.clone();
        // The checker's own stacks are small.
        let play = thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || model());
        play.expect("threads can be made")
            .join()
            .expect("a model ends well");
    });
}

/// Who enters a gate finds the value as it was made, or not at all; who closes gets it alone.
#[test]
fn a_gate_is_left_by_all_before_it_is_closed() {
    explore(3, || {
        kernel::wait::set_up();
        let gate = Rc::new(Gate::new(Shared(UnsafeCell::new(1))));
        let guests: Vec<_> = (0..2)
            .map(|_| {
                let gate = gate.clone();
                thread::spawn(move || {
                    if let Some(value) = gate.enter() {
                        // SAFETY: The checker watches.
                        value.0.with(|value| assert_eq!(unsafe { *value }, 1));
                        // Others may do something meanwhile.
                        thread::yield_now();
                        // SAFETY: As above.
                        value.0.with(|value| assert_eq!(unsafe { *value }, 1));
                    }
                })
            })
            .collect();
        let value = gate.close().expect("nobody else closes");
        // SAFETY: As above.
        value.0.with_mut(|value| unsafe { *value = 2 });
        assert!(gate.enter().is_none());
        for guest in guests {
            guest.join().expect("a guest leaves");
        }
        drop(gate);
        kernel::wait::tear_down();
    });
}

struct Shared(UnsafeCell<u32>);

// SAFETY: The model checker says where it is used wrongly.
unsafe impl Sync for Shared {}

fn rej_of_timeout() -> ib_cm_proto::Mad {
    let mut rej = Rej {
        local_comm_id: REMOTE_ID,
        reason: RejReason::TIMEOUT,
        message_rejected: 2,
        ..Rej::ZERO
    };
    rej.set_ari(&REMOTE_GUID.to_be_bytes());
    mad(|mad| rej.emit(mad, &[]))
}

fn dreq(id: &Arc<Id>) -> ib_cm_proto::Mad {
    let local_id = id.lock().conn.local_id;
    mad(|mad| {
        Dreq {
            tid: 9,
            local_comm_id: REMOTE_ID,
            remote_comm_id: local_id,
            remote_qpn_eecn: LOCAL_QPN,
        }
        .emit(mad, &[]);
    })
}

fn drep(id: &Arc<Id>) -> ib_cm_proto::Mad {
    let local_id = id.lock().conn.local_id;
    mad(|mad| {
        Drep {
            tid: 9,
            local_comm_id: REMOTE_ID,
            remote_comm_id: local_id,
        }
        .emit(mad, &[]);
    })
}

/// What a thread does.
struct Task<F>(F);

// SAFETY: All threads of a model are one thread of the host.
unsafe impl<F> Send for Task<F> {}

impl<F: FnOnce()> Task<F> {
    fn run(self) {
        (self.0)();
    }
}

/// A thread that has the stage.
fn act(stage: &Rc<Stage>, what: impl FnOnce(&Stage) + 'static) -> thread::JoinHandle<()> {
    let stage = stage.clone();
    let task = Task(move || what(&stage));
    let thread = thread::Builder::new().stack_size(STACK);
    thread
        .spawn(move || task.run())
        .expect("threads can be made")
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("a thread ends well");
    }
}

/// A REQ makes an identifier visible while its peer gives up: the identifier is complete for
/// whoever finds it, and the consumer hears of the REJ if it hears of the REQ first.
#[test]
fn an_identifier_is_published_while_it_is_looked_up() {
    explore(2, || {
        let stage = Stage::set();
        let listener = stage.listener();
        let threads = [
            act(&stage, |stage| {
                stage.receive(1, req());
                stage.work();
            }),
            act(&stage, |stage| {
                stage.receive(2, rej_of_timeout());
                stage.work();
            }),
        ];
        join(threads);
        stage.work();
        destroy(&listener);
        if let Some(id) = stage.asked() {
            match stage.count(&id, AttrId::Rej as u32) {
                0 => assert_eq!(id.lock().conn.state, State::ReqRcvd),
                rejs => assert_eq!(rejs, 1),
            }
            destroy(&id);
        }
        drop(listener);
        stage.strike();
    });
}

/// Two REQs with the same IDs come by different ways: one consumer is asked.
#[test]
fn of_two_reqs_with_the_same_ids_one_is_accepted() {
    explore(2, || {
        let stage = Stage::set();
        let listener = stage.listener();
        let threads = [1, 2].map(|source| {
            act(&stage, move |stage| {
                stage.receive(source, req());
                stage.work();
            })
        });
        join(threads);
        stage.work();
        destroy(&listener);
        drop(listener);
        let asked = notes(|notes| notes.events.len());
        assert_eq!(asked, 1);
        let id = stage.asked().expect("one is asked");
        destroy(&id);
        drop(id);
        stage.strike();
    });
}

/// What comes from one source takes effect in order, whoever works: a REJ after its REQ.
#[test]
fn a_rej_does_not_overtake_its_req() {
    explore(2, || {
        let stage = Stage::set();
        let listener = stage.listener();
        let worker = act(&stage, Stage::work);
        stage.receive(1, req());
        stage.receive(1, rej_of_timeout());
        stage.work();
        join([worker]);
        stage.work();
        destroy(&listener);
        drop(listener);
        let id = stage
            .asked()
            .expect("the REJ comes after the consumer was asked");
        assert_eq!(stage.count(&id, AttrId::Rej as u32), 1);
        destroy(&id);
        drop(id);
        stage.strike();
    });
}

/// Requests of one source may be prepared side by side, and take effect in order all the same: the
/// second one's queue pair shows that the first one's connection is stale, and not the other way.
#[test]
fn a_req_does_not_overtake_another() {
    explore(2, || {
        let stage = Stage::set();
        let listener = stage.listener();
        stage.receive(1, req());
        stage.receive(1, req_of(REMOTE_ID + 1));
        let worker = act(&stage, Stage::work);
        stage.work();
        join([worker]);
        stage.work();
        destroy(&listener);
        drop(listener);
        let id = stage.asked().expect("the consumer is asked for one");
        assert_eq!(id.lock().conn.remote_id, REMOTE_ID);
        destroy(&id);
        drop(id);
        stage.strike();
    });
}

/// A listener is destroyed while a REQ for it comes in: its handler is done before destruction is,
/// or does not run.
#[test]
fn a_listener_is_destroyed_while_a_req_comes_in() {
    explore(2, || {
        let stage = Stage::set();
        let listener = stage.listener();
        let worker = act(&stage, |stage| {
            stage.receive(1, req());
            stage.work();
        });
        destroy(&listener);
        drop(listener);
        let asked = notes(|notes| notes.events.len());
        join([worker]);
        stage.work();
        assert_eq!(asked, notes(|notes| notes.events.len()));
        if let Some(id) = stage.asked() {
            destroy(&id);
        }
        stage.strike();
    });
}

/// Events are queued and delivered while the consumer destroys the identifier.
#[test]
fn an_identifier_is_destroyed_while_events_are_delivered() {
    explore(2, || {
        let stage = Stage::set();
        let id = stage.established();
        let dreq = dreq(&id);
        let worker = act(&stage, move |stage| {
            stage.receive(1, dreq);
            stage.work();
        });
        let drep = drep(&id);
        let other = act(&stage, move |stage| {
            stage.receive(2, drep);
            stage.work();
        });
        destroy(&id);
        assert!(stage.count(&id, AttrId::Dreq as u32) <= 1);
        drop(id);
        join([worker, other]);
        stage.strike();
    });
}

/// A handler gives its identifier up while another event of it is queued.
#[test]
fn a_handler_gives_up_while_events_are_queued() {
    explore(2, || {
        let stage = Stage::set();
        let id = stage.established();
        notes(|notes| notes.refuses = vec![AttrId::Dreq as u32]);
        let (dreq, drep) = (dreq(&id), drep(&id));
        drop(id);
        let threads = [
            act(&stage, move |stage| {
                stage.receive(1, dreq);
                stage.work();
            }),
            act(&stage, move |stage| {
                stage.receive(2, drep);
                stage.work();
            }),
        ];
        join(threads);
        stage.work();
        // If no DREQ was reported the consumer still has it.
        let refused = notes(|notes| {
            notes
                .events
                .iter()
                .any(|(_, at)| *at == AttrId::Dreq as u32)
        });
        assert!(refused);
        stage.strike();
    });
}

/// TimeWait ends while the consumer destroys the identifier and the peer repeats its DREQ.
#[test]
fn timewait_ends_while_the_identifier_is_destroyed() {
    explore(2, || {
        let stage = Stage::set();
        let id = stage.in_timewait();
        let again = dreq(&id);
        let threads = [
            act(&stage, |stage| {
                stage.timers();
                stage.work();
            }),
            act(&stage, move |stage| {
                stage.receive(1, again);
                stage.work();
            }),
        ];
        destroy(&id);
        let exits = stage.count(&id, note(Report::TimewaitExit));
        assert!(exits <= 1);
        join(threads);
        stage.work();
        assert_eq!(exits, stage.count(&id, note(Report::TimewaitExit)));
        drop(id);
        stage.strike();
    });
}

/// A handler runs while the connection comes to TimeWait and its identifier is destroyed: what the
/// event names stays until the handler has returned.
#[test]
fn what_an_event_names_stays_for_its_handler() {
    explore(2, || {
        let stage = Stage::set();
        let id = stage.replied();
        let rtu = rtu(&id);
        let handler = act(&stage, move |stage| {
            stage.receive(1, rtu);
            stage.work();
        });
        id.act(Input::DreqNotSent, &mut With::nothing());
        destroy(&id);
        join([handler]);
        assert!(id.lock().conn.state != State::Timewait || id.lock().details.is_none());
        drop(id);
        stage.strike();
    });
}

/// TimeWait ends while the device goes away: the consumer hears of it once.
#[test]
fn timewait_ends_once_while_the_device_goes() {
    explore(2, || {
        let stage = Stage::set();
        let id = stage.in_timewait();
        let timers = act(&stage, |stage| {
            stage.timers();
            stage.work();
        });
        remove(&stage);
        join([timers]);
        stage.work();
        assert_eq!(stage.count(&id, note(Report::TimewaitExit)), 1);
        destroy(&id);
        drop(id);
        stage.strike();
    });
}

/// Device removal, as `port.rs` does it.
fn remove(stage: &Stage) {
    stage.device.timers.close();
    let key = stage.device.key();
    manager().local_ids.for_each(|_, id| {
        if id.public.device_key() == key {
            id.lose_device(&stage.device);
        }
    });
    while let Some(id) = stage.device.timers.first() {
        id.lose_device(&stage.device);
    }
}

fn hold(stage: &Stage) {
    let qp = UserQp {
        device: core::ptr::from_ref(stage.device.ib()),
        qpn: LOCAL_QPN,
        dest: REMOTE_QPN,
    };
    Holder.file_closing(&ClosingFile(&qp));
    // It lasts until the connection has left TimeWait.
    let mut held = 0;
    manager().local_qpns.for_each(|_, _| held += 1);
    assert_eq!(held, 0);
}

/// A hold ends when the device goes, whatever it waits for.
#[test]
fn a_hold_ends_when_the_device_goes() {
    explore(2, || {
        let stage = Stage::set();
        let id = stage.established();
        let holder = act(&stage, hold);
        remove(&stage);
        join([holder]);
        destroy(&id);
        drop(id);
        stage.strike();
    });
}

/// A hold ends with TimeWait, also where the consumer destroys the identifier meanwhile.
#[test]
fn a_hold_ends_with_timewait() {
    explore(2, || {
        let stage = Stage::set();
        let id = stage.in_timewait();
        let holder = act(&stage, hold);
        let timers = act(&stage, |stage| {
            stage.timers();
            stage.work();
        });
        destroy(&id);
        drop(id);
        join([holder, timers]);
        stage.strike();
    });
}
