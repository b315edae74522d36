// SPDX-License-Identifier: GPL-2.0
//! A MAD layer: what is sent goes nowhere, what comes in is made by the models.

use core::marker::PhantomData;

use ib_cm_proto::wire::AttrId;
use ib_cm_proto::MAD_SIZE;
use kernel::prelude::*;
use kernel::sync::Arc;

use super::ah::AddressHandle;
use super::device::IbDevice;
use super::record::RecordPayload;
use super::record::SendRecord;

pub(crate) type Mad = ib_cm_proto::Mad;

pub(crate) trait MadHandler: Sized {
    type Payload: RecordPayload;
}

pub(crate) struct Agent<H> {
    device: IbDevice,
    of: PhantomData<fn(H)>,
}

impl<H> Agent<H> {
    pub(crate) fn new() -> Self {
        Agent {
            device: IbDevice::new(),
            of: PhantomData,
        }
    }

    pub(crate) fn device(&self) -> &IbDevice {
        &self.device
    }

    pub(crate) fn hi_tid(&self) -> u32 {
        1
    }

    pub(crate) fn create_send(&self, _qpn: u32, _pkey: u16, _sleep: bool) -> Result<SendBuf<H>> {
        Ok(SendBuf {
            mad: [0; MAD_SIZE],
            of: PhantomData,
        })
    }
}

pub(crate) struct SendBuf<H> {
    mad: Mad,
    of: PhantomData<fn(H)>,
}

impl<H> SendBuf<H> {
    pub(crate) fn set_ah(&mut self, _ah: AddressHandle<'_>) -> Result {
        Ok(())
    }

    pub(crate) fn mad_mut(&mut self) -> &mut Mad {
        &mut self.mad
    }

    pub(crate) fn set_timeout_ms(&mut self, _ms: u32) {}

    pub(crate) fn set_retries(&mut self, _retries: u32) {}

    pub(crate) fn set_direct_retry(&mut self) {}

    pub(crate) fn post(self) -> Result<(), (Error, Self)> {
        let message = AttrId::of(&self.mad);
        super::trace::sent(message);
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct WcStatus(u32);

impl WcStatus {
    pub(crate) const SUCCESS: WcStatus = WcStatus(0);
    pub(crate) const FLUSHED: WcStatus = WcStatus(5);

    pub(crate) fn to_c(self) -> u32 {
        self.0
    }
}

/// A buffer that no answer came for: time never runs out here.
pub(crate) struct Unanswered<H: MadHandler> {
    record: Arc<SendRecord<H::Payload>>,
}

impl<H: MadHandler> Unanswered<H> {
    pub(crate) fn record(&self) -> &SendRecord<H::Payload> {
        &self.record
    }

    pub(crate) fn post(self, _timeout_ms: u32) -> core::result::Result<(), Self> {
        Err(self)
    }
}

pub(crate) struct Sent<P: RecordPayload> {
    pub(crate) attr_id: u16,
    pub(crate) retries: u32,
    pub(crate) record: Option<Arc<SendRecord<P>>>,
    pub(crate) status: WcStatus,
    pub(crate) cancelled: bool,
}

pub(crate) struct RecvMad(pub(crate) Mad, pub(crate) u64);

impl RecvMad {
    pub(crate) fn mad(&self) -> &Mad {
        &self.0
    }

    pub(crate) fn mad_mut(&mut self) -> &mut Mad {
        &mut self.0
    }

    pub(crate) fn attr_id(&self) -> u16 {
        AttrId::of(&self.0).map_or(0, |message| message as u16)
    }

    pub(crate) fn source_key(&self) -> u64 {
        self.1
    }

    pub(crate) fn pkey_index(&self) -> u16 {
        0
    }

    pub(crate) fn slid(&self) -> u32 {
        1
    }

    pub(crate) fn sl(&self) -> u8 {
        0
    }

    pub(crate) fn dlid_path_bits(&self) -> u8 {
        0
    }
}
