// SPDX-License-Identifier: GPL-2.0
//! The symbols that consumers call: pointers become references here, results become errnos.
//!
//! Each function keeps the contract of its prototype in `include/rdma/ib_cm.h`.

use core::mem::ManuallyDrop;

use kernel::{
    error::from_result,
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};

use super::connect;
use super::id::Id;
use super::listen;
use super::public::Handler;
use super::qp_attr;
use super::sidr;
use crate::rdma::{
    bindings,
    gid::GidAttr,
    path::PathRec, //
};
use ib_cm_proto::state::State;
use ib_cm_proto::wire::{
    Drep,
    Dreq,
    Rej,
    RejReason,
    Rep,
    Req,
    Rtu,
    SidrRep,
    SidrReq,
    SidrStatus,
    INFO_SIZE, //
};

/// The identifier behind a consumer's pointer.
///
/// # Safety
///
/// The consumer got the pointer from this module and has not destroyed the identifier.
unsafe fn identify(cm_id: *mut bindings::ib_cm_id) -> ManuallyDrop<Arc<Id>> {
    // SAFETY: The shared part is the first field of an identifier that stands in an `Arc`. The
    // consumer's reference keeps it alive, and is not given up here.
    ManuallyDrop::new(unsafe { Arc::from_raw(cm_id.cast::<Id>().cast_const()) })
}

/// The bytes at `data`; none where it is null, whatever the length.
///
/// # Errors
///
/// `EINVAL` for more than `most`.
///
/// # Safety
///
/// `data` is null, or `len` bytes can be read there as long as the call of the consumer lasts.
unsafe fn bytes<'a>(data: *const c_void, len: u8, most: usize) -> Result<&'a [u8]> {
    if data.is_null() || len == 0 {
        return Ok(&[]);
    }
    if usize::from(len) > most {
        return Err(EINVAL);
    }
    // SAFETY: By this function's contract.
    Ok(unsafe { core::slice::from_raw_parts(data.cast(), len.into()) })
}

/// A path record that the caller may change.
///
/// # Safety
///
/// `path` is null, or points at a record that nobody else uses as long as the call of the
/// consumer lasts.
unsafe fn path<'a>(path: *mut bindings::sa_path_rec) -> Option<&'a mut PathRec> {
    // SAFETY: By this function's contract; the type is transparent.
    unsafe { path.cast::<PathRec>().as_mut() }
}

macro_rules! check_prototypes {
    ($($function:ident,)*) => {
        $(const _: () = {
            let _ = if true { bindings::$function } else { $function };
        };)*
    };
}

check_prototypes! {
    ibcm_reject_msg, ib_create_cm_id, ib_destroy_cm_id, ib_cm_listen, ib_cm_insert_listen,
    ib_send_cm_req, ib_send_cm_rep, ib_send_cm_rtu, ib_send_cm_dreq, ib_send_cm_drep,
    ib_send_cm_rej, ib_prepare_cm_mra, ib_send_cm_sidr_req, ib_send_cm_sidr_rep, ib_cm_notify,
    ib_cm_init_qp_attr,
}

/// Returns a reason for rejection in words.
///
/// # Safety
///
/// None.
#[no_mangle]
pub(crate) unsafe extern "C" fn ibcm_reject_msg(reason: c_int) -> *const c_char {
    // What does not fit is no reason either.
    let reason = u16::try_from(reason).unwrap_or(u16::MAX);
    RejReason(reason).text().as_char_ptr()
}

/// Makes an identifier for `device`. May sleep. `ENOMEM`.
///
/// # Safety
///
/// The device is registered, and the handler fit to be called until the identifier is destroyed.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_create_cm_id(
    device: *mut bindings::ib_device,
    cm_handler: bindings::ib_cm_handler,
    context: *mut c_void,
) -> *mut bindings::ib_cm_id {
    match Id::new_receiver(device, cm_handler, context) {
        Ok(id) => id.own(),
        Err(error) => error.to_ptr(),
    }
}

/// Destroys an identifier, or one share of a listener. Waits for a running handler of it.
///
/// # Safety
///
/// As [`identify`]; the consumer does not use the identifier any more.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_destroy_cm_id(cm_id: *mut bindings::ib_cm_id) {
    // SAFETY: By this function's contract.
    let id = unsafe { identify(cm_id) };
    if let Some(state) = listen::release(&id) {
        if state == State::SidrReqRcvd {
            sidr::refuse_if_asked(&id);
        }
        Id::destroy(&id, false);
    }
    id.disown();
}

/// Listens on a service ID.
///
/// # Safety
///
/// As [`identify`].
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_cm_listen(
    cm_id: *mut bindings::ib_cm_id,
    service_id: bindings::__be64,
) -> c_int {
    // SAFETY: By this function's contract.
    let id = unsafe { identify(cm_id) };
    from_result(|| listen::listen(&id, u64::from_be(service_id)).map(|()| 0))
}

/// Makes a listener, or takes a share of the one that is there. May sleep.
///
/// # Safety
///
/// As [`ib_create_cm_id`].
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_cm_insert_listen(
    device: *mut bindings::ib_device,
    cm_handler: bindings::ib_cm_handler,
    service_id: bindings::__be64,
) -> *mut bindings::ib_cm_id {
    let handler: Option<Handler> = cm_handler;
    match listen::insert_listen(device, handler, u64::from_be(service_id)) {
        Ok(id) => id.own(),
        Err(error) => error.to_ptr(),
    }
}

/// Asks for a connection. May sleep.
///
/// # Safety
///
/// As [`identify`]; what `param` points at stays as it is during the call.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_send_cm_req(
    cm_id: *mut bindings::ib_cm_id,
    param: *mut bindings::ib_cm_req_param,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let param = unsafe { &*param };
        // SAFETY: By this function's contract.
        let primary = unsafe { path(param.primary_path) }.ok_or(EINVAL)?;
        let qp_type = connect::active_qp_type(param.qp_type).ok_or(EINVAL)?;
        // SAFETY: By this function's contract.
        let private_data = unsafe {
            bytes(
                param.private_data,
                param.private_data_len,
                Req::PRIVATE_DATA_LEN,
            )?
        };
        // SAFETY: By this function's contract. The paths are different records.
        let request = unsafe {
            connect::Request {
                param,
                qp_type,
                primary,
                inbound: PathRec::from_ptr(param.primary_path_inbound),
                outbound: PathRec::from_ptr(param.primary_path_outbound),
                alternate: path(param.alternate_path),
                attr: GidAttr::from_ptr(param.ppath_sgid_attr),
                private_data,
            }
        };
        // SAFETY: By this function's contract.
        let id = unsafe { identify(cm_id) };
        connect::request(&id, request)?;
        Ok(0)
    })
}

/// Accepts a connection.
///
/// # Safety
///
/// As [`identify`]; what `param` points at stays as it is during the call.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_send_cm_rep(
    cm_id: *mut bindings::ib_cm_id,
    param: *mut bindings::ib_cm_rep_param,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let param = unsafe { &*param };
        // SAFETY: By this function's contract.
        let private_data = unsafe {
            bytes(
                param.private_data,
                param.private_data_len,
                Rep::PRIVATE_DATA_LEN,
            )?
        };
        // SAFETY: By this function's contract.
        let id = unsafe { identify(cm_id) };
        connect::accept(&id, param, private_data)?;
        Ok(0)
    })
}

/// A call that carries private data and nothing else.
macro_rules! private_data_call {
    ($(#[$doc:meta])* $name:ident, $message:ident, $call:path) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// As [`identify`]; the private data stays as it is during the call.
        #[no_mangle]
        pub(crate) unsafe extern "C" fn $name(
            cm_id: *mut bindings::ib_cm_id,
            private_data: *const c_void,
            private_data_len: u8,
        ) -> c_int {
            from_result(|| {
                // SAFETY: By this function's contract.
                let private_data = unsafe {
                    bytes(private_data, private_data_len, $message::PRIVATE_DATA_LEN)?
                };
                // SAFETY: By this function's contract.
                let id = unsafe { identify(cm_id) };
                $call(&id, private_data)?;
                Ok(0)
            })
        }
    };
}

private_data_call! {
    /// Confirms that the connection stands.
    ib_send_cm_rtu, Rtu, connect::confirm
}

private_data_call! {
    /// Asks to end the connection.
    ib_send_cm_dreq, Dreq, connect::disconnect
}

private_data_call! {
    /// Confirms the end of the connection.
    ib_send_cm_drep, Drep, connect::confirm_disconnect
}

/// Refuses a connection.
///
/// # Safety
///
/// As [`identify`]; additional information and private data stay as they are during the call.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_send_cm_rej(
    cm_id: *mut bindings::ib_cm_id,
    reason: bindings::ib_cm_rej_reason,
    ari: *mut c_void,
    ari_length: u8,
    private_data: *const c_void,
    private_data_len: u8,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let private_data = unsafe { bytes(private_data, private_data_len, Rej::PRIVATE_DATA_LEN)? };
        // SAFETY: By this function's contract.
        let ari = unsafe { bytes(ari, ari_length, INFO_SIZE)? };
        // SAFETY: By this function's contract.
        let id = unsafe { identify(cm_id) };
        // The field has 16 bits.
        connect::reject(&id, RejReason(reason as u16), ari, private_data)?;
        Ok(0)
    })
}

/// Answers repetitions of the peer's message with MRA until the consumer has decided.
///
/// # Safety
///
/// As [`identify`].
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_prepare_cm_mra(cm_id: *mut bindings::ib_cm_id) -> c_int {
    // SAFETY: By this function's contract.
    let id = unsafe { identify(cm_id) };
    from_result(|| connect::prepare_mra(&id).map(|()| 0))
}

/// Asks for the queue pair of a service. May sleep.
///
/// # Safety
///
/// As [`identify`]; what `param` points at stays as it is during the call.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_send_cm_sidr_req(
    cm_id: *mut bindings::ib_cm_id,
    param: *mut bindings::ib_cm_sidr_req_param,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let param = unsafe { &*param };
        // SAFETY: By this function's contract.
        let to = unsafe { path(param.path) }.ok_or(EINVAL)?;
        // SAFETY: By this function's contract.
        let private_data = unsafe {
            bytes(
                param.private_data,
                param.private_data_len,
                SidrReq::PRIVATE_DATA_LEN,
            )?
        };
        // SAFETY: By this function's contract.
        let attr = unsafe { GidAttr::from_ptr(param.sgid_attr) };
        // SAFETY: By this function's contract.
        let id = unsafe { identify(cm_id) };
        let question = sidr::Question {
            service_id: u64::from_be(param.service_id),
            timeout_ms: param.timeout_ms.try_into().unwrap_or(u32::MAX),
            max_cm_retries: param.max_cm_retries,
            private_data,
        };
        sidr::ask(&id, to, attr, question)?;
        Ok(0)
    })
}

/// Answers a service ID resolution request.
///
/// # Safety
///
/// As [`identify`]; what `param` points at stays as it is during the call.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_send_cm_sidr_rep(
    cm_id: *mut bindings::ib_cm_id,
    param: *mut bindings::ib_cm_sidr_rep_param,
) -> c_int {
    from_result(|| {
        // SAFETY: By this function's contract.
        let param = unsafe { &*param };
        // SAFETY: By this function's contract.
        let info = unsafe { bytes(param.info, param.info_length, INFO_SIZE)? };
        // SAFETY: By this function's contract.
        let private_data = unsafe {
            bytes(
                param.private_data,
                param.private_data_len,
                SidrRep::PRIVATE_DATA_LEN,
            )?
        };
        // SAFETY: By this function's contract.
        let id = unsafe { identify(cm_id) };
        let answer = sidr::Answer {
            status: SidrStatus(param.status as u8),
            qpn: param.qp_num,
            q_key: param.qkey,
            attr_mod: param.ece.attr_mod,
            vendor_id: param.ece.vendor_id,
            info,
            private_data,
        };
        sidr::answer(&id, &answer)?;
        Ok(0)
    })
}

/// Tells of an event of the queue pair. May be called in hard interrupts.
///
/// # Safety
///
/// As [`identify`].
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_cm_notify(
    cm_id: *mut bindings::ib_cm_id,
    event: bindings::ib_event_type,
) -> c_int {
    // SAFETY: By this function's contract.
    let id = unsafe { identify(cm_id) };
    from_result(|| {
        match event {
            bindings::ib_event_type_IB_EVENT_COMM_EST => connect::established(&id)?,
            bindings::ib_event_type_IB_EVENT_PATH_MIG => connect::path_migrated(&id)?,
            _ => return Err(EINVAL),
        }
        Ok(0)
    })
}

/// Fills the attributes of a queue pair for its next state.
///
/// # Safety
///
/// As [`identify`]; `qp_attr` and `qp_attr_mask` point at memory of the caller.
#[no_mangle]
pub(crate) unsafe extern "C" fn ib_cm_init_qp_attr(
    cm_id: *mut bindings::ib_cm_id,
    qp_attr: *mut bindings::ib_qp_attr,
    qp_attr_mask: *mut c_int,
) -> c_int {
    // SAFETY: By this function's contract.
    let (id, attr, mask) = unsafe { (identify(cm_id), &mut *qp_attr, &mut *qp_attr_mask) };
    from_result(|| {
        *mask = qp_attr::init(&id, attr)?;
        Ok(0)
    })
}
