// SPDX-License-Identifier: GPL-2.0
//! The InfiniBand connection manager.

use kernel::prelude::*;

mod cm;
mod rdma;

module! {
    type: IbCm,
    name: "ib_cm",
    authors: ["The ib_cm developers"],
    description: "InfiniBand CM",
    license: "GPL",
}

struct IbCm {
    _cm: cm::Module,
}

impl kernel::Module for IbCm {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(IbCm {
            _cm: cm::Module::start()?,
        })
    }
}
