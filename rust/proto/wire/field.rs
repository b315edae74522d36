// SPDX-License-Identifier: GPL-2.0
//! Fields: where they stand in a MAD, and how they are read and written.

use super::ApStatus;
use super::Mad;
use super::RejReason;
use super::SidrStatus;
use super::HEADER_SIZE;
use super::INFO_SIZE;
use super::MAD_SIZE;

#[cfg(not(MODULE))]
use super::Value;

/// Bytes that are loaded at once to read or write a number.
const WINDOW: usize = 8;

/// The place of a field in a MAD, or of one part of a field that stands in several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Offset in bytes from the start of the MAD.
    pub byte: usize,
    /// Offset in bits from the most significant bit of that byte, 0 to 7.
    pub bit: u32,
    /// Width in bits.
    pub width: u32,
}

impl Bits {
    /// The place of `width` bits that begin with bit `bit` of byte `byte` of the MAD.
    #[inline(always)]
    pub(super) const fn new(byte: usize, bit: u32, width: u32) -> Self {
        Self { byte, bit, width }
    }

    /// The place that the IBA's table of a message calls `byte[bit]`, counted from the end of the
    /// MAD header.
    #[inline(always)]
    pub(super) const fn in_message(byte: usize, bit: u32, width: u32) -> Self {
        Self::new(byte.wrapping_add(HEADER_SIZE), bit, width)
    }

    /// Whether a value of `capacity` bits can be read from here: a number must lie within one
    /// window, and the window in the MAD; an array must fill whole bytes.
    #[inline(always)]
    pub(super) const fn fits(self, capacity: u32) -> bool {
        if capacity > 64 {
            let end = self.byte.wrapping_add((self.width / 8) as usize);
            self.bit == 0 && self.width == capacity && end <= MAD_SIZE
        } else {
            let last = self.bit.wrapping_add(self.width);
            let end = self.byte.wrapping_add(WINDOW);
            self.width != 0 && self.width <= capacity && last <= 64 && end <= MAD_SIZE
        }
    }

    #[inline(always)]
    fn load(self, mad: &Mad) -> u64 {
        let window = mad.get(self.byte..).and_then(|rest| rest.first_chunk());
        u64::from_be_bytes(*window.unwrap_or(&[0; WINDOW]))
            .wrapping_shl(self.bit)
            .wrapping_shr(64_u32.wrapping_sub(self.width))
    }

    #[inline(always)]
    fn store(self, mad: &mut Mad, value: u64) {
        let unused = 64_u32.wrapping_sub(self.width);
        let mask = u64::MAX.wrapping_shl(unused).wrapping_shr(self.bit);
        let value = value.wrapping_shl(unused).wrapping_shr(self.bit);
        let window = mad.get_mut(self.byte..);
        if let Some(window) = window.and_then(|rest| rest.first_chunk_mut()) {
            *window = ((u64::from_be_bytes(*window) & !mask) | value).to_be_bytes();
        }
    }
}

/// What can stand in a field.
///
/// A number may stand in several parts, the most significant one first.
pub(super) trait FieldValue: Copy {
    /// All bits zero.
    const ZERO: Self;

    /// Number of bits that the type can hold.
    const CAPACITY: u32;

    /// Reads the field.
    fn read(mad: &Mad, parts: &[Bits]) -> Self;

    /// Writes the field, and nothing beside it; a number loses the bits that the field has not.
    fn write(self, mad: &mut Mad, parts: &[Bits]);

    /// The value for a test that knows the field only by name.
    #[cfg(not(MODULE))]
    fn to_value(self) -> Value;

    /// The inverse of `to_value`; loses the bits that the type has not.
    #[cfg(not(MODULE))]
    fn from_value(value: Value) -> Self;
}

macro_rules! number {
    ($type:ty, $bits:literal, $zero:expr, |$raw:ident| $from:expr, |$value:ident| $into:expr) => {
        impl FieldValue for $type {
            const ZERO: Self = $zero;
            const CAPACITY: u32 = $bits;

            #[inline(always)]
            fn read(mad: &Mad, parts: &[Bits]) -> Self {
                let mut $raw = 0_u64;
                for part in parts {
                    $raw = $raw.wrapping_shl(part.width) | part.load(mad);
                }
                $from
            }

            #[inline(always)]
            fn write(self, mad: &mut Mad, parts: &[Bits]) {
                let $value = self;
                let mut raw: u64 = $into;
                for part in parts.iter().rev() {
                    part.store(mad, raw);
                    raw = raw.wrapping_shr(part.width);
                }
            }

            #[cfg(not(MODULE))]
            fn to_value(self) -> Value {
                let $value = self;
                Value::Number($into)
            }

            #[cfg(not(MODULE))]
            fn from_value(value: Value) -> Self {
                let $raw = match value {
                    Value::Number(number) => number,
                    Value::Bytes(_) => 0,
                };
                $from
            }
        }
    };
}

number!(bool, 1, false, |raw| raw & 1 != 0, |value| u64::from(value));
number!(u8, 8, 0, |raw| raw as u8, |value| u64::from(value));
number!(u16, 16, 0, |raw| raw as u16, |value| u64::from(value));
number!(u32, 32, 0, |raw| raw as u32, |value| u64::from(value));
number!(u64, 64, 0, |raw| raw, |value| value);
number!(RejReason, 16, Self(0), |raw| Self(raw as u16), |it| {
    u64::from(it.0)
});
number!(ApStatus, 8, Self(0), |raw| Self(raw as u8), |it| u64::from(
    it.0
));
number!(SidrStatus, 8, Self(0), |raw| Self(raw as u8), |it| {
    u64::from(it.0)
});

impl<const N: usize> FieldValue for [u8; N] {
    const ZERO: Self = [0; N];
    const CAPACITY: u32 = (N * 8) as u32;

    #[inline(always)]
    fn read(mad: &Mad, parts: &[Bits]) -> Self {
        match parts.first() {
            Some(part) => *bytes_at(mad, part.byte),
            None => Self::ZERO,
        }
    }

    #[inline(always)]
    fn write(self, mad: &mut Mad, parts: &[Bits]) {
        let rest = parts.first().and_then(|part| mad.get_mut(part.byte..));
        if let Some(bytes) = rest.and_then(|rest| rest.first_chunk_mut()) {
            *bytes = self;
        }
    }

    #[cfg(not(MODULE))]
    fn to_value(self) -> Value {
        let mut bytes = [0; INFO_SIZE];
        copy(&mut bytes, &self);
        Value::Bytes(bytes)
    }

    #[cfg(not(MODULE))]
    fn from_value(value: Value) -> Self {
        let mut bytes = Self::ZERO;
        if let Value::Bytes(value) = value {
            copy(&mut bytes, &value);
        }
        bytes
    }
}

/// The `N` bytes at `offset` of a MAD; zeroes if the MAD ends before them.
#[inline(always)]
pub(super) fn bytes_at<const N: usize>(mad: &Mad, offset: usize) -> &[u8; N] {
    let bytes = mad.get(offset..).and_then(|rest| rest.first_chunk());
    bytes.unwrap_or(&[0; N])
}

/// Copies private data to `offset`, at most `len` bytes of it.
#[inline]
pub(super) fn set_private_data(mad: &mut Mad, offset: usize, len: usize, data: &[u8]) {
    if let Some(room) = mad.get_mut(offset..offset.saturating_add(len)) {
        copy(room, data);
    }
}

/// Copies as much of `from` as there is room for.
#[inline]
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// The first `length` bytes of `info`, or all of it when the length says more.
#[inline]
pub(super) fn clamped(info: &[u8; INFO_SIZE], length: u8) -> &[u8] {
    info.get(..usize::from(length)).unwrap_or(info)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Bits; 5] = [
        Bits::new(0, 0, 64),
        Bits::new(9, 0, 24),
        Bits::new(30, 7, 1),
        Bits::new(248, 3, 5),
        Bits::new(100, 2, 20),
    ];

    #[test]
    fn a_number_is_read_back_masked_and_changes_nothing_beside_it() {
        for place in PLACES {
            for background in [0x00, 0xff, 0x5a] {
                let mut mad = [background; MAD_SIZE];
                u64::MAX.write(&mut mad, &[place]);
                let ones = u64::MAX >> (64 - place.width);
                assert_eq!(u64::read(&mad, &[place]), ones);

                0_u64.write(&mut mad, &[place]);
                assert_eq!(u64::read(&mad, &[place]), 0);

                let old = u64::read(&[background; MAD_SIZE], &[place]);
                old.write(&mut mad, &[place]);
                assert_eq!(mad, [background; MAD_SIZE]);
            }
        }
    }

    #[test]
    fn the_parts_of_a_number_join_with_the_most_significant_first() {
        let parts = [Bits::in_message(6, 0, 16), Bits::in_message(11, 0, 8)];
        let mut mad = [0; MAD_SIZE];
        0xab_cdef_u32.write(&mut mad, &parts);
        assert_eq!((mad[30], mad[31], mad[35]), (0xab, 0xcd, 0xef));
        assert_eq!(u32::read(&mad, &parts), 0xab_cdef);
    }

    #[test]
    fn places_outside_the_mad_read_as_zero_and_are_never_written() {
        let outside = [Bits::new(249, 0, 8)];
        assert!(!outside[0].fits(8));
        let mut mad = [0xff; MAD_SIZE];
        assert_eq!(u8::read(&mad, &outside), 0);
        0_u8.write(&mut mad, &outside);
        [0_u8; 8].write(&mut mad, &outside);
        assert_eq!(mad, [0xff; MAD_SIZE]);
        assert_eq!(<[u8; 8]>::read(&mad, &outside), [0; 8]);
    }

    #[test]
    fn private_data_that_is_too_long_is_cut() {
        let mut mad = [0; MAD_SIZE];
        set_private_data(&mut mad, 250, 4, &[1; 300]);
        assert_eq!(mad[248..], [0, 0, 1, 1, 1, 1, 0, 0]);
        set_private_data(&mut mad, 255, 4, &[2, 2]);
        assert_eq!(mad[248..], [0, 0, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn lengths_are_clamped_to_the_room_there_is() {
        let info = [7; INFO_SIZE];
        for length in 0..=u8::MAX {
            assert_eq!(
                clamped(&info, length).len(),
                usize::from(length).min(INFO_SIZE)
            );
        }
    }
}
