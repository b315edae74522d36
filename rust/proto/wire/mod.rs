// SPDX-License-Identifier: GPL-2.0
//! The eleven messages of the connection manager as they stand in a MAD (IBA chapter 12).
//!
//! Every message comes at three levels, all made from one table of its fields:
//!
//! * a view, such as [`ReqView`]: one accessor a field over a borrowed [`Mad`];
//! * an editor, such as [`ReqEdit`]: one setter a field, which changes nothing else in the MAD;
//! * a plain struct, such as [`Req`], with `parse` and `emit`.
//!
//! Nothing here can fail. A MAD has a fixed size and each of its fields has a value whatever its
//! bits are; what the values mean, and whether they make sense, is for the caller to decide.
//! Numbers are in host byte order. A number that is too wide for its field loses its high bits.
//!
//! Lengths that a message carries ([`Rej::ari_length`], [`Apr::info_length`],
//! [`SidrRep::info_length`]) are never trusted: the accessors of the bytes they count clamp them.

#[macro_use]
mod table;

mod disconnect;
mod field;
mod header;
mod lap;
mod mra;
mod path;
mod rej;
mod rep;
mod req;
mod sidr;
#[cfg(test)]
mod tests;

pub use disconnect::Drep;
pub use disconnect::DrepEdit;
pub use disconnect::DrepView;
pub use disconnect::Dreq;
pub use disconnect::DreqEdit;
pub use disconnect::DreqView;
pub use field::Bits;
pub use header::AttrId;
pub use header::Header;
pub use lap::ApStatus;
pub use lap::Apr;
pub use lap::AprEdit;
pub use lap::AprView;
pub use lap::Lap;
pub use lap::LapEdit;
pub use lap::LapView;
pub use mra::Mra;
pub use mra::MraEdit;
pub use mra::MraView;
pub use mra::Msg;
pub use path::is_opa_gid;
pub use path::opa_lid;
pub use path::PathFields;
pub use path::LID_PERMISSIVE;
pub use rej::Rej;
pub use rej::RejEdit;
pub use rej::RejReason;
pub use rej::RejView;
pub use rep::Rep;
pub use rep::RepEdit;
pub use rep::RepView;
pub use rep::Rtu;
pub use rep::RtuEdit;
pub use rep::RtuView;
pub use req::Req;
pub use req::ReqEdit;
pub use req::ReqView;
pub use req::Transport;
pub use sidr::SidrRep;
pub use sidr::SidrRepEdit;
pub use sidr::SidrRepView;
pub use sidr::SidrReq;
pub use sidr::SidrReqEdit;
pub use sidr::SidrReqView;
pub use sidr::SidrStatus;
#[cfg(not(MODULE))]
pub use table::Field;
#[cfg(not(MODULE))]
pub use table::Value;

/// Size of a MAD, in bytes (IBA 13.4.2).
pub const MAD_SIZE: usize = 256;

/// A management datagram: a header of 24 bytes and the message.
pub type Mad = [u8; MAD_SIZE];

/// Size of the header that all MADs begin with, in bytes (IBA 13.4.2).
pub const HEADER_SIZE: usize = 24;

/// Number of bytes of additional information that a REJ, APR or SIDR_REP has room for
/// (IBA 12.6.7, 12.8.2, 12.11.2).
pub const INFO_SIZE: usize = 72;
