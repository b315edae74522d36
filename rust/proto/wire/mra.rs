// SPDX-License-Identifier: GPL-2.0
//! MRA, the message receipt acknowledgment (IBA 12.6.6).

message! {
    /// MRA, message receipt acknowledgment: the answer will take longer (IBA 12.6.6).
    Mra, MraView, MraEdit;
    fields {
        /// The sender's communication ID of this connection.
        local_comm_id: u32 = (0, 0, 32);
        /// The recipient's communication ID of this connection.
        remote_comm_id: u32 = (4, 0, 32);
        /// The message acknowledged, 2 bits: see [`Msg::from_raw`].
        message_mraed: u8 = (8, 0, 2);
        /// Time that the sender may need for the answer, 5 bits: 4.096 µs * 2^n.
        service_timeout: u8 = (9, 0, 5);
    }
    private_data 222 = 10;
}

/// The message that an MRA acknowledges or a REJ rejects (IBA 12.6.6, 12.6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Msg {
    /// The REQ.
    Req = 0,
    /// The REP.
    Rep = 1,
    /// An MRA: the LAP. A REJ: no message, the connection as such.
    Other = 2,
}

impl Msg {
    /// The message with this value in the field; none for the reserved value 3.
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Req),
            1 => Some(Self::Rep),
            2 => Some(Self::Other),
            _ => None,
        }
    }

    /// The value of the field.
    pub const fn raw(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back_and_3_is_reserved() {
        for message in [Msg::Req, Msg::Rep, Msg::Other] {
            assert_eq!(Msg::from_raw(message.raw()), Some(message));
        }
        assert_eq!(Msg::from_raw(3), None);
    }
}
