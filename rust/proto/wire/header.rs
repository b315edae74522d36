// SPDX-License-Identifier: GPL-2.0
//! The header that all MADs begin with, as the connection manager uses it (IBA 13.4.2).

use super::field::Bits;
use super::field::FieldValue;
use super::Mad;

const BASE_VERSION: &[Bits] = &[header(0, 8)];
const MGMT_CLASS: &[Bits] = &[header(1, 8)];
const CLASS_VERSION: &[Bits] = &[header(2, 8)];
const METHOD: &[Bits] = &[header(3, 8)];
const STATUS: &[Bits] = &[header(4, 16)];
const CLASS_SPECIFIC: &[Bits] = &[header(6, 16)];
const TID: &[Bits] = &[header(8, 64)];
const ATTR_ID: &[Bits] = &[header(16, 16)];
const ATTR_MOD: &[Bits] = &[header(20, 32)];

const fn header(byte: usize, width: u32) -> Bits {
    Bits::new(byte, 0, width)
}

/// The header of a MAD (IBA 13.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the MAD format: 1.
    pub base_version: u8,
    /// Management class: [`Header::MGMT_CLASS`] for the connection manager.
    pub mgmt_class: u8,
    /// Version of the class: [`Header::CLASS_VERSION`].
    pub class_version: u8,
    /// Response bit and method: [`Header::METHOD_SEND`] for every message of the connection
    /// manager.
    pub method: u8,
    /// Status; 0 in messages of the connection manager.
    pub status: u16,
    /// Defined by the class; unused by the connection manager.
    pub class_specific: u16,
    /// Transaction ID; a response repeats that of its request.
    pub tid: u64,
    /// Attribute ID as it stands in the MAD: which message this is, see [`AttrId::from_raw`].
    pub attr_id: u16,
    /// Attribute modifier: the vendor's ECE option in REQ, REP and SIDR_REP, else 0.
    pub attr_mod: u32,
}

impl Header {
    /// The one version of the MAD format (IBA 13.4.3).
    pub const BASE_VERSION: u8 = 1;

    /// Management class of communication management (IBA 13.4.4).
    pub const MGMT_CLASS: u8 = 0x07;

    /// Version of the communication management class (IBA 12.6).
    pub const CLASS_VERSION: u8 = 2;

    /// The method `Send()`: no response by the MAD layer is expected (IBA 13.4.5).
    pub const METHOD_SEND: u8 = 0x03;

    /// The header of a message that the connection manager sends.
    pub const fn new(attr_id: AttrId, tid: u64) -> Self {
        Self {
            base_version: Self::BASE_VERSION,
            mgmt_class: Self::MGMT_CLASS,
            class_version: Self::CLASS_VERSION,
            method: Self::METHOD_SEND,
            status: 0,
            class_specific: 0,
            tid,
            attr_id: attr_id as u16,
            attr_mod: 0,
        }
    }

    /// Reads the header of a MAD.
    pub fn parse(mad: &Mad) -> Self {
        Self {
            base_version: FieldValue::read(mad, BASE_VERSION),
            mgmt_class: FieldValue::read(mad, MGMT_CLASS),
            class_version: FieldValue::read(mad, CLASS_VERSION),
            method: FieldValue::read(mad, METHOD),
            status: FieldValue::read(mad, STATUS),
            class_specific: FieldValue::read(mad, CLASS_SPECIFIC),
            tid: tid(mad),
            attr_id: FieldValue::read(mad, ATTR_ID),
            attr_mod: attr_mod(mad),
        }
    }

    /// Writes the header of a MAD, and nothing else in it.
    pub fn emit(&self, mad: &mut Mad) {
        self.base_version.write(mad, BASE_VERSION);
        self.mgmt_class.write(mad, MGMT_CLASS);
        self.class_version.write(mad, CLASS_VERSION);
        self.method.write(mad, METHOD);
        self.status.write(mad, STATUS);
        self.class_specific.write(mad, CLASS_SPECIFIC);
        self.tid.write(mad, TID);
        self.attr_id.write(mad, ATTR_ID);
        self.attr_mod.write(mad, ATTR_MOD);
    }
}

/// Reads [`Header::tid`] alone.
#[inline]
pub(super) fn tid(mad: &Mad) -> u64 {
    FieldValue::read(mad, TID)
}

/// Reads [`Header::attr_mod`] alone.
#[inline]
pub(super) fn attr_mod(mad: &Mad) -> u32 {
    FieldValue::read(mad, ATTR_MOD)
}

/// Attribute ID: which message of the connection manager a MAD holds (IBA 12.6, table 105).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum AttrId {
    /// Request for communication (IBA 12.6.5).
    Req = 0x10,
    /// Message receipt acknowledgment (IBA 12.6.6).
    Mra = 0x11,
    /// Reject (IBA 12.6.7).
    Rej = 0x12,
    /// Reply to request for communication (IBA 12.6.8).
    Rep = 0x13,
    /// Ready to use (IBA 12.6.9).
    Rtu = 0x14,
    /// Request for communication release (IBA 12.6.10).
    Dreq = 0x15,
    /// Reply to request for communication release (IBA 12.6.11).
    Drep = 0x16,
    /// Service ID resolution request (IBA 12.11.1).
    SidrReq = 0x17,
    /// Service ID resolution response (IBA 12.11.2).
    SidrRep = 0x18,
    /// Load alternate path (IBA 12.8.1).
    Lap = 0x19,
    /// Alternate path response (IBA 12.8.2).
    Apr = 0x1a,
}

impl AttrId {
    /// All messages, in the order of their attribute IDs.
    pub const ALL: [Self; 11] = [
        Self::Req,
        Self::Mra,
        Self::Rej,
        Self::Rep,
        Self::Rtu,
        Self::Dreq,
        Self::Drep,
        Self::SidrReq,
        Self::SidrRep,
        Self::Lap,
        Self::Apr,
    ];

    /// Number of messages.
    pub const COUNT: usize = Self::ALL.len();

    /// The message that a MAD of the connection manager holds.
    #[inline]
    pub fn of(mad: &Mad) -> Option<Self> {
        Self::from_raw(FieldValue::read(mad, ATTR_ID))
    }

    /// The message with this attribute ID.
    pub const fn from_raw(raw: u16) -> Option<Self> {
        Some(match raw {
            0x10 => Self::Req,
            0x11 => Self::Mra,
            0x12 => Self::Rej,
            0x13 => Self::Rep,
            0x14 => Self::Rtu,
            0x15 => Self::Dreq,
            0x16 => Self::Drep,
            0x17 => Self::SidrReq,
            0x18 => Self::SidrRep,
            0x19 => Self::Lap,
            0x1a => Self::Apr,
            _ => return None,
        })
    }

    /// The attribute ID in host byte order.
    pub const fn raw(self) -> u16 {
        self as u16
    }

    /// Position among all messages in the order of their attribute IDs, less than
    /// [`AttrId::COUNT`]: the index of its counter.
    pub const fn index(self) -> usize {
        (self as u16).wrapping_sub(Self::Req as u16) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_ids_and_counter_indices_agree() {
        for (index, id) in AttrId::ALL.into_iter().enumerate() {
            assert_eq!(id.index(), index);
            assert_eq!(AttrId::from_raw(id.raw()), Some(id));
        }
        let known = (0..=u16::MAX).filter(|raw| AttrId::from_raw(*raw).is_some());
        assert!(known.eq(0x10..=0x1a));
    }

    #[test]
    fn header_stands_where_the_specification_says() {
        let mut mad = [0xee; super::super::MAD_SIZE];
        let mut header = Header::new(AttrId::Rep, 0x0102_0304_0506_0708);
        header.attr_mod = 0x1112_1314;
        header.emit(&mut mad);
        let expected = [
            1, 7, 2, 3, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x13, 0xee, 0xee, 0x11, 0x12, 0x13,
            0x14, 0xee,
        ];
        assert_eq!(mad[..25], expected);
        assert_eq!(Header::parse(&mad), header);
        assert_eq!(AttrId::of(&mad), Some(AttrId::Rep));
        assert_eq!(AttrId::of(&[0; super::super::MAD_SIZE]), None);
    }
}
