// SPDX-License-Identifier: GPL-2.0
//! Address vectors: by which port, and to whom.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::manager;
use super::port::Port;
use crate::rdma::{
    ah::AhAttr,
    gid::GidAttr,
    path::PathRec, //
};
use ib_cm_proto::wire::LID_PERMISSIVE;

/// An address vector.
pub(crate) struct Av {
    /// The port to send by.
    pub(crate) port: Option<Arc<Port>>,
    /// The address to send to.
    pub(crate) attr: AhAttr,
    /// The LID that data goes to, where it is not that of the MADs (routed connections), else 0.
    pub(crate) dlid_datapath: u16,
    /// Index of the partition key.
    pub(crate) pkey_index: u16,
}

impl Av {
    /// An address vector that leads nowhere.
    pub(crate) fn empty() -> Self {
        Av {
            port: None,
            attr: AhAttr::empty(),
            dlid_datapath: 0,
            pkey_index: 0,
        }
    }

    /// The address vector of a path.
    ///
    /// # Errors
    ///
    /// `EINVAL` where no port has the path's source GID, `ENOENT` where the port lacks the
    /// partition key, and what address resolution returns.
    pub(crate) fn from_path(path: &mut PathRec, attr: Option<&GidAttr>) -> Result<Self> {
        let port = manager().port_of_path(path, attr).ok_or(EINVAL)?;
        let agents = port.enter().ok_or(EINVAL)?;
        let pkey_index = agents
            .main
            .device()
            .find_cached_pkey(port.number, path.pkey())?;
        let attr = AhAttr::from_path(&agents.main, path, attr)?;
        drop(agents);
        Ok(Av {
            port: Some(port),
            attr,
            dlid_datapath: 0,
            pkey_index,
        })
    }

    /// Whether it leaves by a port of this device.
    pub(crate) fn is_of(&self, device: usize) -> bool {
        self.port
            .as_ref()
            .is_some_and(|port| port.device.key() == device)
    }

    /// A second one, with its own reference on the GID.
    pub(crate) fn duplicate(&self) -> Self {
        Av {
            port: self.port.clone(),
            attr: self.attr.copy(),
            dlid_datapath: self.dlid_datapath,
            pkey_index: self.pkey_index,
        }
    }

    /// The LID that data goes to, if it has to replace that of the address.
    pub(crate) fn datapath_dlid(&self) -> Option<u16> {
        (self.dlid_datapath != 0 && self.dlid_datapath != LID_PERMISSIVE)
            .then_some(self.dlid_datapath)
    }
}
