// SPDX-License-Identifier: GPL-2.0

//! Management datagrams: agents, what they send, what they receive.
//!
//! A [`SendBuf`] is owned by whoever fills it in, and by the MAD layer from [`SendBuf::post`] (or
//! [`SendRecord::post`]) until the completion, which frees it and calls [`MadHandler::sent`].
//!
//! C header: [`include/rdma/ib_mad.h`](srctree/include/rdma/ib_mad.h)

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};

pub(crate) use super::recv::RecvMad;

use super::{
    ah::AddressHandle,
    bindings,
    device::{
        IbDevice,
        Lease,
        LiveDevice, //
    },
    handles::{
        Handle,
        Handles, //
    },
    record::{
        RecordPayload,
        SendRecord, //
    },
};

/// The length of a MAD, in bytes.
pub(crate) const MAD_SIZE: usize = 256;

/// The bytes of a MAD.
pub(crate) type Mad = [u8; MAD_SIZE];

/// The version of the connection manager's class (IBA 16.7.1).
const CM_CLASS_VERSION: u8 = 2;

/// Where the attribute ID is in a MAD (IBA 13.4.3).
const ATTR_ID: usize = 16;

pub(super) fn attr_id(mad: &Mad) -> u16 {
    u16::from_be_bytes([mad[ATTR_ID], mad[ATTR_ID + 1]])
}

/// `enum ib_wc_status` of a send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct WcStatus(bindings::ib_wc_status);

impl WcStatus {
    /// Sent; or, when an answer was expected, cancelled by it.
    pub(crate) const SUCCESS: Self = Self(bindings::ib_wc_status_IB_WC_SUCCESS);
    /// No answer came in time.
    const TIMED_OUT: Self = Self(bindings::ib_wc_status_IB_WC_RESP_TIMEOUT_ERR);
    /// Cancelled.
    pub(crate) const FLUSHED: Self = Self(bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR);

    /// The value for C.
    pub(crate) fn to_c(self) -> bindings::ib_wc_status {
        self.0
    }
}

/// Who is told of what an agent received and sent. Both run in process context, in the MAD
/// layer's own queue: they must be quick, and must not wait for a send.
pub(crate) trait MadHandler: Send + Sync + Sized + 'static {
    /// What [`SendRecord`]s of this handler's agents hold.
    type Payload: RecordPayload;

    /// A MAD arrived.
    fn received(this: ArcBorrow<'_, Self>, mad: RecvMad);

    /// A buffer with a record was posted as often as the MAD layer was told to, and no answer
    /// came. Returns it unless it is posted again.
    fn unanswered(
        this: ArcBorrow<'_, Self>,
        unanswered: Unanswered<Self>,
    ) -> core::result::Result<(), Unanswered<Self>>;

    /// A posted buffer is done with and was freed.
    fn sent(this: ArcBorrow<'_, Self>, sent: Sent<Self::Payload>);
}

/// A posted buffer with a record that no answer came for. The MAD layer has given it back.
pub(crate) struct Unanswered<H: MadHandler> {
    buf: SendBuf<H>,
    record: Arc<SendRecord<H::Payload>>,
}

impl<H: MadHandler> Unanswered<H> {
    /// The record with which it was posted.
    pub(crate) fn record(&self) -> &SendRecord<H::Payload> {
        &self.record
    }

    /// Posts it once more, and waits `timeout_ms` for the answer.
    ///
    /// # Errors
    ///
    /// It comes back when it was cancelled meanwhile, or when the MAD layer does not take it.
    pub(crate) fn post(self, timeout_ms: u32) -> core::result::Result<(), Self> {
        let Unanswered { buf, record } = self;
        record
            .post_again(buf, timeout_ms)
            .map_err(|buf| Unanswered { buf, record })
    }
}

/// What became of a posted buffer.
pub(crate) struct Sent<T: RecordPayload> {
    /// The record with which it was posted.
    pub(crate) record: Option<Arc<SendRecord<T>>>,
    /// The attribute ID of the message.
    pub(crate) attr_id: u16,
    /// How often it was sent again; 1 for a buffer with [`SendBuf::set_direct_retry`].
    pub(crate) retries: u32,
    /// How it ended.
    pub(crate) status: WcStatus,
    /// Whether somebody had called [`SendRecord::cancel`].
    pub(crate) cancelled: bool,
}

/// A registration with the MAD layer, at QP 1 of a port.
///
/// Dropping it (process context) cancels what is posted and waits until every completion was
/// handled and every [`SendBuf`] is dropped.
///
/// # Invariants
///
/// The pointer is a registered agent whose context is the handler.
pub(crate) struct Agent<H: MadHandler> {
    agent: NonNull<bindings::ib_mad_agent>,
    handles: Arc<Handles>,
    _handler: Arc<H>,
    _lease: Lease,
}

// SAFETY: The functions of the MAD layer may be called from any thread; `H` is `Send` and `Sync`.
unsafe impl<H: MadHandler> Send for Agent<H> {}
// SAFETY: As above.
unsafe impl<H: MadHandler> Sync for Agent<H> {}

impl<H: MadHandler> Agent<H> {
    /// An agent that receives the connection manager's MADs of a port, and sends.
    ///
    /// The handler may be called before this returns. `handles` is for agents of one port only.
    pub(crate) fn register(
        device: &LiveDevice<'_>,
        port: u32,
        handler: Arc<H>,
        handles: Arc<Handles>,
    ) -> Result<Self> {
        let mut request: bindings::ib_mad_reg_req = pin_init::zeroed();
        request.mgmt_class = bindings::IB_MGMT_CLASS_CM as u8;
        request.mgmt_class_version = CM_CLASS_VERSION;
        // The bit of the one method (IBA 16.7.2), in the first word.
        request.method_mask[0] = 1 << bindings::IB_MGMT_METHOD_SEND;
        Self::register_with(device, port, handler, handles, Some(&mut request))
    }

    /// An agent that only sends. The flow control of the other kind does not apply to it.
    pub(crate) fn register_sender(
        device: &LiveDevice<'_>,
        port: u32,
        handler: Arc<H>,
        handles: Arc<Handles>,
    ) -> Result<Self> {
        Self::register_with(device, port, handler, handles, None)
    }

    fn register_with(
        device: &LiveDevice<'_>,
        port: u32,
        handler: Arc<H>,
        handles: Arc<Handles>,
        request: Option<&mut bindings::ib_mad_reg_req>,
    ) -> Result<Self> {
        let receive: bindings::ib_mad_recv_handler = match request {
            Some(_) => Some(on_receive::<H>),
            None => None,
        };
        // SAFETY: The device is registered, and the lease keeps it so until the agent is gone. The
        // function copies the request and checks the port. The context is valid as long as
        // `handler`, which outlives the agent: see `drop`.
        let agent = unsafe {
            bindings::ib_register_mad_agent(
                device.as_ptr(),
                port,
                bindings::ib_qp_type_IB_QPT_GSI,
                request.map_or(core::ptr::null_mut(), core::ptr::from_mut),
                0,
                Some(on_sent::<H>),
                receive,
                Arc::as_ptr(&handler).cast_mut().cast(),
                0,
            )
        };
        // INVARIANT: Registered, with the handler as context.
        Ok(Self {
            agent: NonNull::new(from_err_ptr(agent)?).ok_or(ENOMEM)?,
            handles,
            _handler: handler,
            _lease: device.lease(),
        })
    }

    /// The upper half of transaction IDs that this agent sends.
    pub(crate) fn hi_tid(&self) -> u32 {
        // SAFETY: By the type invariant; set at registration.
        unsafe { (*self.agent.as_ptr()).hi_tid }
    }

    /// The device.
    pub(crate) fn device(&self) -> &IbDevice {
        // SAFETY: By the type invariant; the device stays registered as long as the agent.
        unsafe { IbDevice::from_ptr((*self.agent.as_ptr()).device) }
    }

    /// The port.
    pub(crate) fn port_num(&self) -> u32 {
        // SAFETY: By the type invariant; set at registration.
        u32::from(unsafe { (*self.agent.as_ptr()).port_num })
    }

    /// The protection domain in which it sends.
    pub(super) fn pd(&self) -> *mut bindings::ib_pd {
        // SAFETY: By the type invariant; the QP and its domain live as long as the port.
        unsafe { (*(*self.agent.as_ptr()).qp).pd }
    }

    /// The address handles that its port has used lately.
    pub(super) fn handles(&self) -> &Arc<Handles> {
        &self.handles
    }

    /// A zeroed buffer for one message to QP `remote_qpn`, with the P_Key at `pkey_index`. Any
    /// context, unless `sleepable`, which fails less often.
    pub(crate) fn create_send(
        &self,
        remote_qpn: u32,
        pkey_index: u16,
        sleepable: bool,
    ) -> Result<SendBuf<H>> {
        let gfp = if sleepable {
            bindings::GFP_KERNEL
        } else {
            bindings::GFP_ATOMIC
        };
        // SAFETY: By the type invariant the agent is registered.
        let buf = unsafe {
            bindings::ib_create_send_mad(
                self.agent.as_ptr(),
                remote_qpn,
                pkey_index,
                0,
                bindings::IB_MGMT_MAD_HDR as c_int,
                bindings::IB_MGMT_MAD_DATA as c_int,
                gfp,
                bindings::IB_MGMT_BASE_VERSION as u8,
            )
        };
        // INVARIANT: A new buffer of an agent with handler `H`, without context.
        Ok(SendBuf {
            buf: NonNull::new(from_err_ptr(buf)?).ok_or(ENOMEM)?,
            _handler: PhantomData,
        })
    }
}

impl<H: MadHandler> Drop for Agent<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. When this returns no callback runs or will run, so that
        // the handler, dropped next, is not used any more; then the lease lets the device go.
        unsafe { bindings::ib_unregister_mad_agent(self.agent.as_ptr()) }
        // Nobody asks for a handle any more, and the lease keeps the protection domain so long.
        self.handles.close();
    }
}

/// # Safety
///
/// Called by the MAD layer for an agent of an [`Agent<H>`].
unsafe extern "C" fn on_receive<H: MadHandler>(
    agent: *mut bindings::ib_mad_agent,
    _request: *mut bindings::ib_mad_send_buf,
    mad: *mut bindings::ib_mad_recv_wc,
) {
    // SAFETY: The MAD layer hands the MAD over.
    let Some(mad) = (unsafe { RecvMad::from_raw(mad) }) else {
        return;
    };
    // SAFETY: The context is the handler, which outlives the agent.
    let handler = unsafe { ArcBorrow::from_raw((*agent).context.cast::<H>()) };
    H::received(handler, mad);
}

/// # Safety
///
/// Called by the MAD layer for an agent of an [`Agent<H>`].
unsafe extern "C" fn on_sent<H: MadHandler>(
    agent: *mut bindings::ib_mad_agent,
    completion: *mut bindings::ib_mad_send_wc,
) {
    // SAFETY: The completion is valid during the call.
    let (buf, status) = unsafe { ((*completion).send_buf, (*completion).status) };
    let Some(buf) = NonNull::new(buf) else {
        return;
    };
    // INVARIANT: Only buffers of a `SendBuf<H>` are posted with this agent, and the MAD layer
    // hands the buffer back.
    let mut buf = SendBuf::<H> {
        buf,
        _handler: PhantomData,
    };
    // SAFETY: The context is the handler, which outlives the agent.
    let handler = unsafe { ArcBorrow::from_raw((*agent).context.cast::<H>()) };
    if WcStatus(status) == WcStatus::TIMED_OUT {
        if let Some(record) = buf.record() {
            match H::unanswered(handler, Unanswered { buf, record }) {
                Ok(()) => return,
                Err(unanswered) => buf = unanswered.buf,
            }
        }
    }
    let attr_id = attr_id(buf.mad());
    let retries = buf.retries_made();
    let record = buf.take_record();
    let cancelled = record.as_ref().is_some_and(|record| record.completed());
    drop(buf);
    H::sent(
        handler,
        Sent {
            record,
            attr_id,
            retries,
            status: WcStatus(status),
            cancelled,
        },
    );
}

/// What the low bits of a buffer's second context word say about the first; the others are the
/// address of the handle that its address comes from, if it has any.
const CONTEXT_NONE: usize = 0;
const CONTEXT_DIRECT_RETRY: usize = 1;
const CONTEXT_RECORD: usize = 2;
const CONTEXT_MASK: usize = 3;

kernel::static_assert!(core::mem::align_of::<Handle>() > CONTEXT_MASK);

/// A message to be sent, with its address. Dropping it frees the message and gives up the address;
/// any context.
///
/// It holds its agent: an [`Agent`] is not unregistered before its buffers are gone.
///
/// # Invariants
///
/// The pointer is a buffer that belongs to this value, of an agent with handler `H`. Its second
/// context word is one of `CONTEXT_*` in the low bits; with `CONTEXT_RECORD` the first comes from
/// `Arc::<SendRecord<H::Payload>>::into_raw` and owns that reference. What the second one is without
/// these bits is null, or comes from `Arc::<Handle>::into_raw` and owns that reference.
pub(crate) struct SendBuf<H: MadHandler> {
    buf: NonNull<bindings::ib_mad_send_buf>,
    _handler: PhantomData<fn(H)>,
}

// SAFETY: Buffers may be filled in, posted and freed in any thread.
unsafe impl<H: MadHandler> Send for SendBuf<H> {}

impl<H: MadHandler> SendBuf<H> {
    fn raw(&self) -> &bindings::ib_mad_send_buf {
        // SAFETY: By the type invariant.
        unsafe { self.buf.as_ref() }
    }

    fn raw_mut(&mut self) -> &mut bindings::ib_mad_send_buf {
        // SAFETY: By the type invariant.
        unsafe { self.buf.as_mut() }
    }

    /// The message.
    pub(crate) fn mad(&self) -> &Mad {
        // SAFETY: Header and data were allocated in one piece of 256 bytes.
        unsafe { &*self.raw().mad.cast() }
    }

    /// The message.
    pub(crate) fn mad_mut(&mut self) -> &mut Mad {
        // SAFETY: As above.
        unsafe { &mut *self.raw_mut().mad.cast() }
    }

    /// Sets the address.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the handle was made for an agent of another port.
    pub(crate) fn set_ah(&mut self, ah: AddressHandle<'_>) -> Result {
        // SAFETY: The buffer holds its agent, whose QP lives as long as the port.
        let pd = unsafe { (*(*self.raw().mad_agent).qp).pd };
        // The same domain: the buffer's hold on its agent keeps it for the handle too.
        if ah.pd() != pd {
            return Err(EINVAL);
        }
        drop(self.take_handle());
        let handle = ah.into_inner();
        let tag = self.context();
        let raw = self.raw_mut();
        raw.ah = handle.as_ptr();
        // INVARIANT: The word owns the reference; the first one has not changed.
        let handle = Arc::into_raw(handle).cast_mut().cast::<c_void>();
        raw.context[1] = handle.map_addr(|handle| handle | tag);
        Ok(())
    }

    /// The handle that its address comes from; it has none any more.
    fn take_handle(&mut self) -> Option<Arc<Handle>> {
        let raw = self.raw_mut();
        let handle = raw.context[1].map_addr(|word| word & !CONTEXT_MASK);
        if handle.is_null() {
            return None;
        }
        raw.ah = core::ptr::null_mut();
        raw.context[1] = core::ptr::without_provenance_mut(raw.context[1].addr() & CONTEXT_MASK);
        // SAFETY: By the type invariant, and the word no longer says that it owns it.
        Some(unsafe { Arc::from_raw(handle.cast::<Handle>()) })
    }

    /// How long to wait for an answer before the message is sent again; 0: none is expected.
    pub(crate) fn set_timeout_ms(&mut self, timeout_ms: u32) {
        self.raw_mut().timeout_ms = c_int::try_from(timeout_ms).unwrap_or(c_int::MAX);
    }

    /// How often to send it again.
    pub(crate) fn set_retries(&mut self, retries: u32) {
        self.raw_mut().retries = c_int::try_from(retries).unwrap_or(c_int::MAX);
    }

    /// Marks an answer to a duplicate: its completion counts as one retry.
    pub(crate) fn set_direct_retry(&mut self) {
        drop(self.take_record());
        // INVARIANT: No record.
        self.set_context(CONTEXT_DIRECT_RETRY);
    }

    fn context(&self) -> usize {
        self.raw().context[1].addr() & CONTEXT_MASK
    }

    /// Says something else about the first word.
    fn set_context(&mut self, context: usize) {
        let raw = self.raw_mut();
        raw.context[1] = raw.context[1].map_addr(|word| word & !CONTEXT_MASK | context);
    }

    /// How often a completed buffer was sent again.
    fn retries_made(&self) -> u32 {
        if self.context() == CONTEXT_DIRECT_RETRY {
            return 1;
        }
        u32::try_from(self.raw().retries).unwrap_or(0)
    }

    /// Ties the buffer to a record.
    pub(super) fn set_record(&mut self, record: Arc<SendRecord<H::Payload>>) {
        drop(self.take_record());
        let raw = self.raw_mut();
        // INVARIANT: The first word owns the reference.
        raw.context[0] = record.into_raw().cast_mut().cast();
        self.set_context(CONTEXT_RECORD);
    }

    /// The record to which the buffer is tied.
    fn record(&self) -> Option<Arc<SendRecord<H::Payload>>> {
        if self.context() != CONTEXT_RECORD {
            return None;
        }
        let record = self.raw().context[0].cast::<SendRecord<H::Payload>>();
        // SAFETY: By the type invariant the first word owns a reference, which stays there: the
        // borrow does not outlast the buffer.
        Some(unsafe { ArcBorrow::from_raw(record) }.into())
    }

    /// The record to which the buffer was tied; it is not any more.
    pub(super) fn take_record(&mut self) -> Option<Arc<SendRecord<H::Payload>>> {
        if self.context() != CONTEXT_RECORD {
            return None;
        }
        self.set_context(CONTEXT_NONE);
        let raw = self.raw_mut();
        let record = core::mem::replace(&mut raw.context[0], core::ptr::null_mut());
        // SAFETY: By the type invariant, and the words no longer say that they own it.
        Some(unsafe { Arc::from_raw(record.cast::<SendRecord<H::Payload>>()) })
    }

    /// The C object, whose address names the buffer while it is posted.
    pub(super) fn as_ptr(&self) -> NonNull<bindings::ib_mad_send_buf> {
        self.buf
    }

    /// Hands the buffer to the MAD layer, which gives it back through [`MadHandler::sent`]. Any
    /// context but hard interrupts.
    ///
    /// # Errors
    ///
    /// The buffer comes back: `EINVAL` when it has no address, else what the MAD layer says.
    pub(crate) fn post(self) -> core::result::Result<(), (Error, Self)> {
        if self.raw().ah.is_null() {
            return Err((EINVAL, self));
        }
        // SAFETY: By the type invariant, and ownership goes to the MAD layer unless it fails.
        let posted = to_result(unsafe {
            bindings::ib_post_send_mad(self.buf.as_ptr(), core::ptr::null_mut())
        });
        match posted {
            Ok(()) => {
                core::mem::forget(self);
                Ok(())
            }
            Err(error) => Err((error, self)),
        }
    }
}

impl<H: MadHandler> Drop for SendBuf<H> {
    fn drop(&mut self) {
        drop(self.take_record());
        drop(self.take_handle());
        // SAFETY: By the type invariant.
        unsafe { bindings::ib_free_send_mad(self.buf.as_ptr()) }
    }
}
