// SPDX-License-Identifier: GPL-2.0
//! Errors.

/// An errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(i32);

impl Error {
    /// The negative errno.
    pub fn to_errno(self) -> i32 {
        self.0
    }
}

impl From<core::convert::Infallible> for Error {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}

/// A result.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

/// The errnos that are used.
pub mod code {
    use super::Error;

    /// Invalid argument.
    pub const EINVAL: Error = Error(-22);
    /// No memory.
    pub const ENOMEM: Error = Error(-12);
    /// No such device.
    pub const ENODEV: Error = Error(-19);
    /// Busy.
    pub const EBUSY: Error = Error(-16);
    /// Broken pipe.
    pub const EPIPE: Error = Error(-32);
    /// Connected already.
    pub const EISCONN: Error = Error(-106);
}
