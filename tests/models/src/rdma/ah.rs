// SPDX-License-Identifier: GPL-2.0
//! Addresses: all lead to the one peer.

use core::marker::PhantomData;

use kernel::prelude::*;

use super::device::GidAttr;
use super::mad::Agent;
use super::mad::RecvMad;
use super::path::PathRec;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AhType {
    Ib,
    Roce,
}

pub(crate) struct AhAttr {
    gid: Option<GidAttr>,
}

impl AhAttr {
    pub(crate) fn empty() -> Self {
        AhAttr { gid: None }
    }

    pub(crate) fn copy(&self) -> Self {
        AhAttr { gid: None }
    }

    pub(crate) fn from_mad<H>(_agent: &Agent<H>, _mad: &RecvMad) -> Result<Self> {
        Ok(AhAttr::empty())
    }

    pub(crate) fn from_path<H>(
        _agent: &Agent<H>,
        _path: &mut PathRec,
        _attr: Option<&GidAttr>,
    ) -> Result<Self> {
        Ok(AhAttr::empty())
    }

    pub(crate) fn sgid_attr(&self) -> Option<&GidAttr> {
        self.gid.as_ref()
    }

    pub(crate) fn ah_type(&self) -> AhType {
        AhType::Roce
    }

    pub(crate) fn dmac(&self) -> Option<[u8; 6]> {
        None
    }

    pub(crate) fn hop_limit(&self) -> u8 {
        0
    }
}

pub(crate) struct AddressHandle<'a>(PhantomData<&'a ()>);

impl<'a> AddressHandle<'a> {
    pub(crate) fn find<H>(_agent: &'a Agent<H>, _attr: &AhAttr) -> Option<Self> {
        Some(AddressHandle(PhantomData))
    }

    pub(crate) fn create<H>(_agent: &'a Agent<H>, _attr: &AhAttr, _sleep: bool) -> Result<Self> {
        Ok(AddressHandle(PhantomData))
    }
}
