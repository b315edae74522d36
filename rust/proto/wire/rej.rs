// SPDX-License-Identifier: GPL-2.0
//! REJ, the rejection of a message or connection, and its reasons (IBA 12.6.7).

use core::ffi::CStr;

message! {
    /// REJ, reject: the sender will not take part in this connection (IBA 12.6.7).
    Rej, RejView, RejEdit;
    fields {
        /// The sender's communication ID of this connection; 0 if it has none.
        local_comm_id: u32 = (0, 0, 32);
        /// The recipient's communication ID of this connection.
        remote_comm_id: u32 = (4, 0, 32);
        /// The message rejected, 2 bits: see [`Msg::from_raw`](super::Msg::from_raw).
        message_rejected: u8 = (8, 0, 2);
        /// Number of bytes of additional information in use, as the sender claims, 7 bits: not
        /// more than 72 exist. See [`Rej::ari()`].
        ari_length: u8 = (9, 0, 7);
        /// Why.
        reason: RejReason = (10, 0, 16);
    }
    /// Additional reject information (ARI): what it is depends on the reason. [`Rej::ari()`] is
    /// the part in use.
    info ari, ari_length = 12;
    private_data 148 = 84;
}

impl Rej {
    /// Sets the additional reject information and its length; bytes after the 72nd are left out.
    pub fn set_ari(&mut self, ari: &[u8]) {
        self.ari = [0; super::INFO_SIZE];
        self.ari_length = 0;
        for (to, from) in self.ari.iter_mut().zip(ari) {
            *to = *from;
            self.ari_length = self.ari_length.wrapping_add(1);
        }
    }
}

/// Reason of a REJ (IBA 12.6.7.2; `enum ib_cm_rej_reason`). Any value can arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejReason(pub u16);

macro_rules! reasons {
    ($( $(#[$doc:meta])* $name:ident = $value:literal, $text:literal; )*) => {
        impl RejReason {
            $( $(#[$doc])* pub const $name: Self = Self($value); )*

            /// All reasons that have a name.
            pub const ALL: &'static [Self] = &[$( Self::$name, )*];

            /// The reason in words, as `ibcm_reject_msg` tells it to consumers.
            pub const fn text(self) -> &'static CStr {
                match self.0 {
                    $( $value => $text, )*
                    _ => c"unrecognized reason",
                }
            }
        }
    };
}

reasons! {
    /// No queue pair is available.
    NO_QP = 1, c"no QP";
    /// No end-to-end context is available.
    NO_EEC = 2, c"no EEC";
    /// Another resource is lacking.
    NO_RESOURCES = 3, c"no resources";
    /// The sender gave up waiting; the ARI begins with the GUID of its channel adapter.
    TIMEOUT = 4, c"timeout";
    /// The request is not supported.
    UNSUPPORTED = 5, c"unsupported";
    /// A communication ID names no connection of the sender.
    INVALID_COMM_ID = 6, c"invalid comm ID";
    /// Communication IDs, queue pair or end-to-end context do not belong together.
    INVALID_COMM_INSTANCE = 7, c"invalid comm instance";
    /// Nobody listens on the service ID.
    INVALID_SERVICE_ID = 8, c"invalid service ID";
    /// The service does not use this transport service.
    INVALID_TRANSPORT_TYPE = 9, c"invalid transport type";
    /// The queue pair, or the communication ID, is still that of an earlier connection
    /// (IBA 12.9.8.3.1).
    STALE_CONN = 10, c"stale conn";
    /// The reliable datagram channel does not exist.
    RDC_NOT_EXIST = 11, c"RDC not exist";
    /// A GID of the primary path is unacceptable; the ARI suggests another.
    INVALID_GID = 12, c"invalid GID";
    /// A LID of the primary path is unacceptable; the ARI suggests another.
    INVALID_LID = 13, c"invalid LID";
    /// The service level of the primary path is unacceptable; the ARI suggests another.
    INVALID_SL = 14, c"invalid SL";
    /// The traffic class of the primary path is unacceptable; the ARI suggests another.
    INVALID_TRAFFIC_CLASS = 15, c"invalid traffic class";
    /// The hop limit of the primary path is unacceptable; the ARI suggests another.
    INVALID_HOP_LIMIT = 16, c"invalid hop limit";
    /// The packet rate of the primary path is unacceptable; the ARI suggests another.
    INVALID_PACKET_RATE = 17, c"invalid packet rate";
    /// A GID of the alternate path is unacceptable; the ARI suggests another.
    INVALID_ALT_GID = 18, c"invalid alt GID";
    /// A LID of the alternate path is unacceptable; the ARI suggests another.
    INVALID_ALT_LID = 19, c"invalid alt LID";
    /// The service level of the alternate path is unacceptable; the ARI suggests another.
    INVALID_ALT_SL = 20, c"invalid alt SL";
    /// The traffic class of the alternate path is unacceptable; the ARI suggests another.
    INVALID_ALT_TRAFFIC_CLASS = 21, c"invalid alt traffic class";
    /// The hop limit of the alternate path is unacceptable; the ARI suggests another.
    INVALID_ALT_HOP_LIMIT = 22, c"invalid alt hop limit";
    /// The packet rate of the alternate path is unacceptable; the ARI suggests another.
    INVALID_ALT_PACKET_RATE = 23, c"invalid alt packet rate";
    /// Connection managers are to talk through the port in the ARI.
    PORT_CM_REDIRECT = 24, c"port CM redirect";
    /// The connection is to use the port in the ARI.
    PORT_REDIRECT = 25, c"port redirect";
    /// The MTU is unacceptable; the ARI suggests another.
    INVALID_MTU = 26, c"invalid MTU";
    /// The responder resources do not suffice.
    INSUFFICIENT_RESP_RESOURCES = 27, c"insufficient resp resources";
    /// The consumer refused; ARI and private data are its own.
    CONSUMER_DEFINED = 28, c"consumer defined";
    /// The RNR retry count is unacceptable.
    INVALID_RNR_RETRY = 29, c"invalid RNR retry";
    /// The communication ID of the REQ is in use for another connection of its sender.
    DUPLICATE_LOCAL_COMM_ID = 30, c"duplicate local comm ID";
    /// The class version is not supported.
    INVALID_CLASS_VERSION = 31, c"invalid class version";
    /// The flow label of the primary path is unacceptable; the ARI suggests another.
    INVALID_FLOW_LABEL = 32, c"invalid flow label";
    /// The flow label of the alternate path is unacceptable; the ARI suggests another.
    INVALID_ALT_FLOW_LABEL = 33, c"invalid alt flow label";
    /// The vendor's ECE option is not supported.
    VENDOR_OPTION_NOT_SUPPORTED = 35, c"vendor option is not supported";
}

#[cfg(test)]
mod tests {
    use super::super::INFO_SIZE;
    use super::*;

    #[test]
    fn reasons_without_a_name_have_a_text_too() {
        for value in [0, 34, 36, u16::MAX] {
            assert_eq!(RejReason(value).text(), c"unrecognized reason");
        }
        assert_eq!(RejReason::STALE_CONN.text(), c"stale conn");
        assert_eq!(RejReason::ALL.len(), 34);
    }

    #[test]
    fn additional_information_is_set_with_its_length() {
        let mut rej = Rej::ZERO;
        for length in [0, 1, 8, 71, 72] {
            rej.set_ari(&[5; 100][..length]);
            assert_eq!(rej.ari(), &[5; 100][..length]);
        }
        rej.set_ari(&[5; 100]);
        assert_eq!(rej.ari(), [5; INFO_SIZE]);
        rej.set_ari(&[]);
        assert_eq!(rej, Rej::ZERO);
    }

    #[test]
    fn a_length_of_127_is_clamped() {
        let mad = [0xff; super::super::MAD_SIZE];
        assert_eq!(RejView(&mad).ari_length(), 127);
        assert_eq!(RejView(&mad).ari(), [0xff; INFO_SIZE]);
        assert_eq!(Rej::parse(&mad).ari(), [0xff; INFO_SIZE]);
    }
}
