// SPDX-License-Identifier: GPL-2.0

//! A client of `ib_core`: told of each RDMA device that comes and goes.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::marker::PhantomData;

use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
    },
    types::Opaque,
};

use super::{
    bindings,
    device::{
        IbDevice,
        LiveDevice,
        Tally, //
    },
    ufile, //
};

/// What a client does with devices.
pub(crate) trait Client: Sized + 'static {
    /// What it keeps for each.
    type Data: Send + Sync + 'static;

    /// The static that stands for this client.
    fn cell() -> &'static ClientCell<Self>;

    /// A device is there. On an error `ib_core` does not mention the device again.
    ///
    /// Whatever was made from `device` must be dropped before an error is returned.
    fn add(device: &LiveDevice<'_>) -> Result<Arc<Self::Data>>;

    /// The device goes. Returns to `ib_core` when all that was made from it is dropped: this
    /// function sees to that, then the framework waits for it.
    fn remove(device: &LiveDevice<'_>, data: Arc<Self::Data>);
}

/// The registration's place, a static: `static CM: ClientCell<Cm> = ClientCell::new(c"cm");`.
pub(crate) struct ClientCell<C: Client> {
    client: Opaque<bindings::ib_client>,
    name: &'static CStr,
    registered: Atomic<u32>,
    _client: PhantomData<fn(C)>,
}

// SAFETY: `ib_core` synchronises what it does with the client; the flag is atomic.
unsafe impl<C: Client> Sync for ClientCell<C> {}

impl<C: Client> ClientCell<C> {
    /// A client that appears under `name`.
    pub(crate) const fn new(name: &'static CStr) -> Self {
        let mut client: bindings::ib_client = pin_init::zeroed();
        client.add = Some(add::<C>);
        client.remove = Some(remove::<C>);
        Self {
            client: Opaque::new(client),
            name,
            registered: Atomic::new(0),
            _client: PhantomData,
        }
    }
}

/// What the framework keeps for a device.
struct Entry<C: Client> {
    tally: Arc<Tally>,
    data: Arc<C::Data>,
}

/// # Safety
///
/// Called by `ib_core` for a client of a [`ClientCell<C>`].
unsafe extern "C" fn add<C: Client>(device: *mut bindings::ib_device) -> c_int {
    let added = || -> Result {
        let tally = Arc::new(Tally::new(), GFP_KERNEL)?;
        let entry = KBox::<Entry<C>>::new_uninit(GFP_KERNEL)?;
        // SAFETY: `ib_core` keeps the device valid during the call, and registered until the
        // call of `remove` returns, or this one if it fails. Both wait for the tally.
        let device = unsafe { LiveDevice::new(IbDevice::from_ptr(device), &tally) };
        let data = C::add(&device).inspect_err(|_| tally.wait())?;
        let tally = tally.clone();
        let entry = KBox::into_raw(KBox::write(entry, Entry { tally, data }));
        // SAFETY: Device and client are valid; the client's place for data exists since before
        // this call. `remove` takes the entry back.
        unsafe {
            bindings::ib_set_client_data(device.as_ptr(), C::cell().client.get(), entry.cast())
        };
        Ok(())
    };
    match added() {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// Called by `ib_core` for a client of a [`ClientCell<C>`], once for each device whose `add`
/// succeeded, with what that set.
unsafe extern "C" fn remove<C: Client>(device: *mut bindings::ib_device, data: *mut c_void) {
    if data.is_null() {
        return;
    }
    // SAFETY: Set in `add`, and nobody else takes it back.
    let entry = KBox::into_inner(unsafe { KBox::<Entry<C>>::from_raw(data.cast()) });
    // SAFETY: The device stays registered until this returns, which waits for the tally.
    let device = unsafe { LiveDevice::new(IbDevice::from_ptr(device), &entry.tally) };
    C::remove(&device, entry.data);
    entry.tally.wait();
}

/// A registered client. Dropping it removes all devices, then unregisters (process context).
///
/// # Invariants
///
/// The client of `C::cell()` is registered, and this is the only registration of it.
pub(crate) struct Registration<C: Client>(PhantomData<fn(C)>);

impl<C: Client> Registration<C> {
    /// Registers the client; `add` runs for the devices that exist.
    ///
    /// # Errors
    ///
    /// `EBUSY` when it is registered already, else what `ib_core` says.
    pub(crate) fn new() -> Result<Self> {
        let cell = C::cell();
        cell.registered
            .cmpxchg(0, 1, ordering::Full)
            .map_err(|_| EBUSY)?;
        ufile::prepare();
        // SAFETY: Nobody else uses a client that is not registered.
        unsafe { (*cell.client.get()).name = cell.name.as_char_ptr() };
        // SAFETY: The client is a static, filled in, and not registered.
        to_result(unsafe { bindings::ib_register_client(cell.client.get()) })
            .inspect_err(|_| cell.registered.store(0, ordering::Release))?;
        // INVARIANT: Registered, by us alone.
        Ok(Self(PhantomData))
    }
}

impl<C: Client> Drop for Registration<C> {
    fn drop(&mut self) {
        let cell = C::cell();
        // SAFETY: By the type invariant.
        unsafe { bindings::ib_unregister_client(cell.client.get()) };
        cell.registered.store(0, ordering::Release);
    }
}
