// SPDX-License-Identifier: GPL-2.0
//! An IB core that sends nothing. The gate is the module's.

#[path = "../../../rust/rdma/gate.rs"]
pub(crate) mod gate;

pub(crate) mod ah;
pub(crate) mod device;
pub(crate) mod mad;
pub(crate) mod path;
pub(crate) mod record;
pub(crate) mod trace;
pub(crate) mod ufile;

/// Structures of C.
#[allow(non_camel_case_types)]
pub(crate) mod bindings {
    use core::ffi::c_int;
    use core::ffi::c_void;

    pub(crate) const ENOMEM: u32 = 12;

    pub(crate) type ib_cm_state = u32;
    pub(crate) type ib_cm_lap_state = u32;

    pub(crate) struct ib_device;

    pub(crate) struct ib_cm_event {
        pub(crate) event: u32,
    }

    pub(crate) struct ib_cm_id {
        pub(crate) cm_handler:
            Option<unsafe extern "C" fn(*mut ib_cm_id, *const ib_cm_event) -> c_int>,
        pub(crate) context: *mut c_void,
        pub(crate) device: *mut ib_device,
        pub(crate) service_id: u64,
        pub(crate) state: ib_cm_state,
        pub(crate) lap_state: ib_cm_lap_state,
        pub(crate) local_id: u32,
        pub(crate) remote_id: u32,
        pub(crate) remote_cm_qpn: u32,
    }
}

/// The clock.
pub(crate) mod clock {
    use core::cell::Cell;

    thread_local! {
        static NOW: Cell<i64> = const { Cell::new(0) };
    }

    pub(crate) fn set(ns: i64) {
        NOW.with(|now| now.set(ns));
    }

    pub(crate) fn now_ns() -> i64 {
        NOW.with(Cell::get)
    }

    pub(crate) fn random_u32() -> u32 {
        0x100
    }

    pub(crate) fn random_u64() -> u64 {
        0x200
    }
}

/// GIDs.
pub(crate) mod gid {
    pub(crate) use super::device::GidAttr;
}

/// The log.
pub(crate) mod log {
    macro_rules! warn_ratelimited {
        ($($arg:tt)*) => {{
            let _ = format_args!($($arg)*);
        }};
    }

    pub(crate) use warn_ratelimited;
}

/// The module's parameters.
pub(crate) mod params {
    pub(crate) fn hold_max_ms() -> u32 {
        10_000
    }

    pub(crate) fn first_retry_ms() -> u32 {
        0
    }

    pub(crate) fn mra_once() -> bool {
        false
    }

    pub(crate) struct HoldPoint;

    impl HoldPoint {
        pub(crate) fn wake(&self) {
            kernel::wait::wake();
        }
    }
}

/// Queue pairs.
pub(crate) mod qp {
    use kernel::prelude::*;

    use super::device::IbDevice;

    pub(crate) struct QpInfo {
        pub(crate) dest_qp_num: u32,
    }

    impl QpInfo {
        pub(crate) fn is_connected_type(&self) -> bool {
            true
        }
    }

    /// A queue pair of a process.
    pub(crate) struct UserQp {
        pub(crate) device: *const IbDevice,
        pub(crate) qpn: u32,
        pub(crate) dest: u32,
    }

    impl UserQp {
        pub(crate) fn device(&self) -> &IbDevice {
            // SAFETY: The device is there until the model ends.
            unsafe { &*self.device }
        }

        pub(crate) fn qp_num(&self) -> u32 {
            self.qpn
        }

        pub(crate) fn query(&self) -> Result<QpInfo> {
            Ok(QpInfo {
                dest_qp_num: self.dest,
            })
        }

        pub(crate) fn set_error(&self) -> Result {
            Ok(())
        }
    }
}

/// Counters.
pub(crate) mod sysfs {
    #[derive(Clone, Copy)]
    pub(crate) enum CounterGroup {
        TxMsgs,
        TxRetries,
        RxMsgs,
        RxDuplicates,
    }
}

/// Spin locks.
pub(crate) mod spinlock {
    pub(crate) use kernel::new_spinlock_irq;
    pub(crate) use kernel::sync::lock::Guard as SpinLockIrqGuard;
    pub(crate) use kernel::sync::lock::Lock as SpinLockIrq;
}

/// Modules.
pub(crate) mod table {
    pub(crate) struct ModuleOf(pub(crate) usize);

    impl core::fmt::Display for ModuleOf {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            write!(f, "{:#x}", self.0)
        }
    }
}

/// Tasks.
pub(crate) mod task {
    #[derive(Clone, Copy)]
    pub(crate) struct TaskName;

    impl TaskName {
        pub(crate) fn current() -> Self {
            TaskName
        }
    }
}

/// Waiting.
pub(crate) mod wait {
    use core::ffi::c_void;

    pub(crate) fn wait_until<P: ?Sized>(_point: &P, condition: impl FnMut() -> bool) {
        kernel::wait::until(condition);
    }

    /// No time passes while a model waits: what never comes is a deadlock to the checker.
    pub(crate) fn wait_idle_until<P: ?Sized>(
        _point: &P,
        _timeout_ms: u32,
        condition: impl FnMut() -> bool,
    ) -> bool {
        kernel::wait::until(condition);
        true
    }

    pub(crate) fn wake<P: ?Sized>(_point: &P) {
        kernel::wait::wake();
    }

    pub(crate) fn wake_at(_point: *const c_void) {
        kernel::wait::wake();
    }
}

/// Work queues.
pub(crate) mod workqueue {
    use kernel::prelude::*;
    use kernel::workqueue::Queue;

    pub(crate) struct Workqueue(Queue);

    impl Workqueue {
        pub(crate) fn new(_name: &'static CStr, _max_active: i32) -> Result<Self> {
            Ok(Workqueue(Queue::new()))
        }

        pub(crate) fn queue(&self) -> &Queue {
            &self.0
        }
    }
}
