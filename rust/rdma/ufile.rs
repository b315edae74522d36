// SPDX-License-Identifier: GPL-2.0

//! Being told before uverbs destroys the queue pairs of a process.
//!
//! `ib_core` has no way to ask for that, so two of a device's operations are replaced:
//! `ufile_hw_cleanup`, which uverbs calls before each pass of a file's teardown, and on request
//! `destroy_qp`. Ours tells the observer and then calls the one that was there.
//!
//! # Getting the functions back
//!
//! Both may sleep in the observer, and nothing of `ib_core` keeps this module loaded meanwhile.
//! A caller has loaded the pointer at a time that nobody knows; but from there to our counting it
//! in, and from our counting it out to its return, it does not sleep. Tasks-RCU waits for exactly
//! such stretches: put the old pointer back, wait (all callers are counted in), wait until the
//! count is zero, wait again (all have left).
//!
//! Should someone else have replaced the operation after us, theirs calls ours. Then ours must
//! stay: at device removal the module is pinned, at module exit there is nothing but to wait.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Acquire,
            Atomic, //
        },
        global_lock, Arc,
    },
    task::Task,
    time::{
        delay::fsleep,
        Delta,
        NSEC_PER_MSEC, //
    },
    types::Opaque,
};

use super::{
    bindings,
    clock::now_ns,
    device::{
        DeviceRef,
        IbDevice,
        Lease,
        LiveDevice, //
    },
    gate::Gate,
    params::{
        self,
        HoldPoint, //
    },
    qp::UserQp,
    wait,
};

/// Who is told. Both run in the process context of whoever destroys, and may sleep.
pub(crate) trait TeardownObserver: Send + Sync + 'static {
    /// uverbs is about to destroy what is left of a file. Called once for each pass.
    fn file_closing(&self, file: &ClosingFile<'_>);

    /// A queue pair is about to be destroyed, by a call or in a pass. Only if
    /// [`params::hold_explicit`] was set when the device was added.
    fn qp_destroying(&self, qp: &DestroyedQp<'_>);
}

/// A condition for holding up a teardown, and the wait.
struct Hold<'a> {
    hook: &'a Hook,
    file: UverbsFile<'a>,
}

/// The longest time in ms that a hold does not notice that a device is being removed: uverbs
/// takes files off its list without telling anyone.
const LOOK_EVERY_MS: i64 = 100;

/// How a hold ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldEnd {
    /// What it waited for came true.
    Done,
    /// The time was up.
    TimedOut,
    /// Device or module go, or holds were turned off.
    Stopped,
}

impl Hold<'_> {
    fn must_stop(&self) -> bool {
        self.hook.closing.load(Acquire) != 0 || params::hold_max_ms() == 0 || self.file.is_removal()
    }

    fn wait(&self, timeout_ms: u32, mut done: impl FnMut() -> bool) -> HoldEnd {
        if in_kernel_thread() {
            return HoldEnd::Stopped;
        }
        let start_ns = now_ns();
        loop {
            let waited_ms = now_ns().saturating_sub(start_ns) / NSEC_PER_MSEC;
            let left_ms = i64::from(timeout_ms.min(params::hold_max_ms()))
                .saturating_sub(waited_ms)
                .clamp(0, LOOK_EVERY_MS) as u32;
            let mut is_done = false;
            HoldPoint.wait_idle_until(left_ms, || {
                is_done = done();
                is_done || self.must_stop()
            });
            if is_done {
                return HoldEnd::Done;
            }
            if self.must_stop() {
                return HoldEnd::Stopped;
            }
            if left_ms == 0 {
                return HoldEnd::TimedOut;
            }
        }
    }
}

/// Whether nobody's exit can be held up, since it is done by a kernel thread for another.
fn in_kernel_thread() -> bool {
    // SAFETY: The current task is valid; the flag never changes.
    unsafe { (*Task::current_raw()).flags & bindings::PF_KTHREAD != 0 }
}

/// What a process has of a device.
#[derive(Clone, Copy)]
struct UverbsFile<'a>(&'a Opaque<bindings::ib_uverbs_file>);

impl UverbsFile<'_> {
    /// Whether its device is being removed: uverbs takes the file off its list before it destroys
    /// anything.
    fn is_removal(self) -> bool {
        // SAFETY: The file is valid. The list head is changed by others under a lock of uverbs,
        // but a word of it can be read at any time.
        unsafe {
            let list = &raw mut (*self.0.get()).list;
            let next = Atomic::<*mut bindings::list_head>::from_ptr(&raw mut (*list).next);
            core::ptr::eq(next.load(Acquire), list)
        }
    }
}

/// A uverbs file in teardown. uverbs holds its `hw_destroy_rwsem` for writing.
pub(crate) struct ClosingFile<'a> {
    file: UverbsFile<'a>,
    hook: &'a Hook,
}

impl ClosingFile<'_> {
    /// The device.
    pub(crate) fn device(&self) -> &IbDevice {
        &self.hook.device
    }

    /// Whether this is because the device goes, and not because the process closed the file.
    pub(crate) fn is_removal(&self) -> bool {
        self.file.is_removal()
    }

    /// Calls `each` for the queue pairs of the file that are the process's own. It may sleep.
    pub(crate) fn for_each_qp(&self, mut each: impl FnMut(&UserQp)) {
        // SAFETY: Valid for the call, and the semaphore, held for writing, keeps the list.
        let head = unsafe { &raw mut (*self.file.0.get()).uobjects };
        // SAFETY: As above.
        let mut entry = unsafe { (*head).next };
        while !core::ptr::eq(entry, head) {
            // SAFETY: Every entry but the head is part of an object.
            let object: *mut bindings::ib_uobject =
                unsafe { kernel::container_of!(entry, bindings::ib_uobject, list) };
            // SAFETY: Objects on the list are valid, and their kind has a number.
            let kind = unsafe { (*(*object).uapi_object).id };
            if kind == bindings::uverbs_default_objects_UVERBS_OBJECT_QP {
                // SAFETY: The queue pair of a queue pair's object; not destroyed before the
                // semaphore is released.
                if let Some(qp) = unsafe { UserQp::from_ptr((*object).object.cast()) } {
                    each(qp);
                }
            }
            // SAFETY: As above.
            entry = unsafe { (*entry).next };
        }
    }

    /// Waits until `done`, at most `timeout_ms` and [`params::hold_max_ms`]. `done` is looked at
    /// after each [`HoldPoint::wake`].
    ///
    /// `done` must not sleep. Ends early when device or module go or holds are turned off.
    pub(crate) fn hold(&self, timeout_ms: u32, done: impl FnMut() -> bool) -> HoldEnd {
        let hold = Hold {
            hook: self.hook,
            file: self.file,
        };
        hold.wait(timeout_ms, done)
    }
}

/// A queue pair that is about to be destroyed.
pub(crate) struct DestroyedQp<'a> {
    /// The queue pair.
    pub(crate) qp: &'a UserQp,
    file: UverbsFile<'a>,
    hook: &'a Hook,
}

impl DestroyedQp<'_> {
    /// Whether this is because the device goes, and not because the process destroys it.
    pub(crate) fn is_removal(&self) -> bool {
        self.file.is_removal()
    }

    /// As [`ClosingFile::hold`].
    pub(crate) fn hold(&self, timeout_ms: u32, done: impl FnMut() -> bool) -> HoldEnd {
        let hold = Hold {
            hook: self.hook,
            file: self.file,
        };
        hold.wait(timeout_ms, done)
    }
}

/// An operation of a device that was replaced.
struct Replaced {
    place: NonNull<*mut c_void>,
    theirs: *mut c_void,
    ours: *mut c_void,
    /// Non-zero while ours is in place, or was when someone else replaced it.
    installed: Atomic<u32>,
}

// SAFETY: Addresses of functions, and of a word that is only used atomically.
unsafe impl Send for Replaced {}
// SAFETY: As above.
unsafe impl Sync for Replaced {}

impl Replaced {
    /// # Safety
    ///
    /// `place` is the place of a function that `ours` may stand for, in a device that is valid as
    /// long as the result is used.
    unsafe fn new(place: NonNull<*mut c_void>, ours: *mut c_void) -> Self {
        // SAFETY: Valid; callers read it as a whole.
        let theirs = unsafe { Atomic::from_ptr(place.as_ptr()) }.load(Acquire);
        Self {
            place,
            theirs,
            ours,
            installed: Atomic::new(0),
        }
    }

    fn swap(&self, old: *mut c_void, new: *mut c_void) -> bool {
        // SAFETY: Valid; callers read it as a whole.
        let place = unsafe { Atomic::from_ptr(self.place.as_ptr()) };
        place.cmpxchg(old, new, ordering::Full).is_ok()
    }

    fn put_ours(&self) -> Result {
        if !self.swap(self.theirs, self.ours) {
            return Err(EBUSY);
        }
        self.installed.store(1, ordering::Release);
        Ok(())
    }

    /// False when someone else has replaced ours.
    fn put_theirs(&self) -> bool {
        if self.installed.load(Acquire) != 0 {
            if !self.swap(self.ours, self.theirs) {
                return false;
            }
            self.installed.store(0, ordering::Release);
        }
        true
    }
}

/// What the functions find when they are called for a device.
struct Hook {
    device: DeviceRef,
    cleanup: Replaced,
    destroy: Replaced,
    /// Whom to tell; closed when the hook is taken away.
    observer: Gate<Arc<dyn TeardownObserver>>,
    /// Non-zero when the hook is taken away: holds end.
    closing: Atomic<u32>,
    /// The calls in progress, the operation that was saved included.
    calls: Atomic<u32>,
}

global_lock! {
    // SAFETY: `prepare` initialises it, and nothing else here runs before.
    unsafe(uninit) static HOOKS: SpinLock<KVec<Arc<Hook>>> = KVec::new();
}

/// Makes this file ready; called by the client's registration.
pub(super) fn prepare() {
    static PREPARED: Atomic<u32> = Atomic::new(0);

    if PREPARED.cmpxchg(0, 1, ordering::Full).is_ok() {
        // SAFETY: The flag lets this happen once.
        unsafe { HOOKS.init() };
    }
}

/// One call, counted.
struct Call(Arc<Hook>);

impl Call {
    /// Finds the hook of a device and counts the caller in. Does not sleep.
    fn enter(device: *mut bindings::ib_device) -> Option<Self> {
        let hooks = HOOKS.lock();
        let hook = hooks.iter().find(|hook| hook.device.as_ptr() == device)?;
        hook.calls.add(1, ordering::Relaxed);
        Some(Self(hook.clone()))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, ordering::Full) == 1 {
            wait::wake(&self.0.calls);
        }
    }
}

/// # Safety
///
/// Called by uverbs in place of a device's `ufile_hw_cleanup`.
unsafe extern "C" fn ufile_hw_cleanup(file: *mut bindings::ib_uverbs_file) {
    // SAFETY: A file in teardown has a context, and that a device.
    let device = unsafe { (*(*file).ucontext).device };
    let Some(call) = Call::enter(device) else {
        return;
    };
    if let Some(observer) = call.0.observer.enter() {
        observer.file_closing(&ClosingFile {
            // SAFETY: The file is valid during the call; the type is transparent.
            file: UverbsFile(unsafe { &*file.cast() }),
            hook: &call.0,
        });
    }
    let theirs = call.0.cleanup.theirs;
    if !theirs.is_null() {
        // SAFETY: The place held a function of this type.
        let theirs: unsafe extern "C" fn(*mut bindings::ib_uverbs_file) =
            unsafe { core::mem::transmute(theirs) };
        // SAFETY: Called as uverbs called us.
        unsafe { theirs(file) };
    }
}

/// # Safety
///
/// Called by `ib_core` in place of a device's `destroy_qp`.
unsafe extern "C" fn destroy_qp(qp: *mut bindings::ib_qp, udata: *mut bindings::ib_udata) -> c_int {
    // SAFETY: The queue pair is valid, its device too.
    let device = unsafe { (*qp).device };
    let Some(call) = Call::enter(device) else {
        return EIO.to_errno();
    };
    // SAFETY: Not destroyed before the operation that was saved is called.
    if let Some(qp) = unsafe { UserQp::from_ptr(qp) } {
        if let Some(observer) = call.0.observer.enter() {
            // SAFETY: Whoever destroys an object of a file holds a reference on the file, which
            // stays the same; the type is transparent.
            let file = UverbsFile(unsafe { &*(*qp.uobject()).ufile.cast() });
            observer.qp_destroying(&DestroyedQp {
                qp,
                file,
                hook: &call.0,
            });
        }
    }
    let theirs = call.0.destroy.theirs;
    // SAFETY: The place held a function of this type; `ib_core` accepts no device without it.
    let theirs: unsafe extern "C" fn(*mut bindings::ib_qp, *mut bindings::ib_udata) -> c_int =
        unsafe { core::mem::transmute(theirs) };
    // SAFETY: Called as `ib_core` called us.
    unsafe { theirs(qp, udata) }
}

/// A device whose teardowns are observed. Dropping it (process context) ends all holds and takes
/// the functions back.
pub(crate) struct TeardownHook {
    hook: Arc<Hook>,
    _lease: Lease,
}

impl TeardownHook {
    /// Has `observer` told of the teardowns of `device`.
    ///
    /// # Errors
    ///
    /// `ENOTSUPP` on a kernel on which the functions could not be taken back.
    pub(crate) fn install(
        device: &LiveDevice<'_>,
        observer: Arc<dyn TeardownObserver>,
    ) -> Result<Self> {
        // SAFETY: No preconditions.
        if !unsafe { bindings::ib_cm_helper_can_wait_for_callers() } {
            return Err(ENOTSUPP);
        }
        let raw = device.as_ptr();
        // SAFETY: Places of these functions in a valid device, on which the hook holds a reference.
        let (cleanup, destroy) = unsafe {
            (
                Replaced::new(
                    NonNull::new(&raw mut (*raw).ops.ufile_hw_cleanup)
                        .ok_or(EINVAL)?
                        .cast(),
                    ufile_hw_cleanup as *mut c_void,
                ),
                Replaced::new(
                    NonNull::new(&raw mut (*raw).ops.destroy_qp)
                        .ok_or(EINVAL)?
                        .cast(),
                    destroy_qp as *mut c_void,
                ),
            )
        };
        let hook = Arc::new(
            Hook {
                device: DeviceRef::from(&**device),
                cleanup,
                destroy,
                observer: Gate::new(observer),
                closing: Atomic::new(0),
                calls: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        HOOKS.lock().push(hook.clone(), GFP_ATOMIC)?;
        let installed = Self {
            hook,
            _lease: device.lease(),
        };
        installed.hook.cleanup.put_ours()?;
        if params::hold_explicit() {
            installed.hook.destroy.put_ours()?;
        }
        Ok(installed)
    }

    /// Waits until the operations are ours to put back, or nobody can call them any more.
    fn wait_for_operations(&self) {
        if self.hook.put_back() {
            return;
        }
        pr_warn!("an operation of a device was replaced by another module, which must go first\n");
        while !self.hook.put_back() && !self.hook.is_abandoned() {
            fsleep(Delta::from_millis(100));
        }
    }
}

impl Hook {
    /// Puts the operations back; false when someone else has replaced ours.
    fn put_back(&self) -> bool {
        let cleanup = self.cleanup.put_theirs();
        let destroy = self.destroy.put_theirs();
        cleanup && destroy
    }

    /// Whether the device is being unregistered and this client is all that is left of its users.
    fn is_abandoned(&self) -> bool {
        // SAFETY: Reads a count of a valid device.
        unsafe { bindings::ib_cm_helper_device_users(self.device.as_ptr()) <= 1 }
    }

    /// Waits until nobody executes our functions, which nobody can call any more.
    fn wait_for_callers(&self) {
        // SAFETY: Process context; nothing is held that a caller could wait for.
        unsafe { bindings::ib_cm_helper_wait_for_callers() };
        wait::wait_until(&self.calls, || self.calls.load(Acquire) == 0);
        // SAFETY: As above.
        unsafe { bindings::ib_cm_helper_wait_for_callers() };
    }

    /// Takes the hook off the list.
    fn forget(&self) {
        let forgotten = {
            let mut hooks = HOOKS.lock();
            let at = hooks.iter().position(|hook| core::ptr::eq(&**hook, self));
            let hook = at.and_then(|at| hooks.remove(at).ok());
            // Nobody drops a static when the module goes: an empty list keeps no memory.
            let memory = hooks.is_empty().then(|| core::mem::take(&mut *hooks));
            (hook, memory)
        };
        drop(forgotten);
    }
}

impl Drop for TeardownHook {
    fn drop(&mut self) {
        let hook = &self.hook;
        let back = hook.put_back();
        hook.closing.store(1, ordering::Release);
        HoldPoint.wake();
        drop(hook.observer.close());
        // SAFETY: No preconditions.
        if !back && unsafe { bindings::ib_cm_helper_module_is_live() } {
            pr_warn!("an operation of a device was replaced by another module: staying loaded\n");
            // The hook stays on the list, for what still calls through it.
            // SAFETY: The module is live.
            unsafe { bindings::ib_cm_helper_pin_module() };
            return;
        }
        self.wait_for_operations();
        hook.wait_for_callers();
        hook.forget();
    }
}
