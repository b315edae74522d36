// SPDX-License-Identifier: GPL-2.0
//! Models of the connection manager's concurrency.
//!
//! `cm` and `rdma::gate` are the module's own files, unchanged. Below them stand a `kernel` crate
//! whose locks and atomics are the model checker's, and an IB core that sends nothing. A model is a
//! few threads that do a few things; the checker runs it in every order that differs, with a
//! limited number of preemptions.

#![allow(dead_code, unused_imports, clippy::all)]

// The module's files know this crate by name; here it is part of `kernel`.
extern crate kernel as pin_init;

mod cm;
mod rdma;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod tests;
