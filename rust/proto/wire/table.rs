// SPDX-License-Identifier: GPL-2.0
//! Tables: `message!` turns the IBA's table of a message into its struct, view and editor.
//!
//! A line of a table is a field:
//!
//! ```text
//! local_cm_response_timeout: u8 = (47, 0, 5);
//! retry_count: u8 = (47, 5, 3);
//! ```
//!
//! In brackets stand the offset in bytes from the end of the MAD header, the offset in bits within
//! that byte, counted from the most significant bit as the IBA counts, and the width in bits. A
//! number that stands in several places has a bracket for each, the most significant one first.
//!
//! A `path` names the fields of a [`PathFields`](super::PathFields), each with the name of its
//! accessor first. `info` is an array of 72 bytes at the given byte, and the field that counts
//! how many of them are used. `ece` adds the attribute modifier of the header.

#[cfg(not(MODULE))]
use super::Mad;

#[cfg(not(MODULE))]
use super::field::Bits;

/// The value of any field, for tests that walk the tables.
#[cfg(not(MODULE))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, a truth value, a reason or a status.
    Number(u64),
    /// A GID or additional information; bytes that the field does not have are zero.
    Bytes([u8; super::INFO_SIZE]),
}

/// One line of the table of a message, for tests that walk the tables.
///
/// Its functions are the ways that the rest of the module takes to the field.
#[cfg(not(MODULE))]
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name of the field's accessor.
    pub name: &'static str,
    /// Where the field stands, the most significant part first.
    pub parts: &'static [Bits],
    /// Reads the field through the view.
    pub view: fn(&Mad) -> Value,
    /// Parses the message and returns the field.
    pub parse: fn(&Mad) -> Value,
    /// Sets the field in place.
    pub edit: fn(&mut Mad, Value),
    /// Parses the message, sets the field and emits the message into the same MAD.
    pub emit: fn(&mut Mad, Value),
}

macro_rules! message {
    // Where a field stands, checked against its type.
    (@parts $type:ty, $( ($byte:literal, $bit:literal, $width:literal) )+) => {{
        const PARTS: &[$crate::wire::Bits] = {
            $( assert!(
                $crate::wire::Bits::in_message($byte, $bit, $width)
                    .fits(<$type as $crate::wire::field::FieldValue>::CAPACITY)
            ); )+
            &[$( $crate::wire::Bits::in_message($byte, $bit, $width) ),+]
        };
        PARTS
    }};

    (@read $mad:expr, $type:ty, $($place:tt)+) => {
        <$type as $crate::wire::field::FieldValue>::read($mad, message!(@parts $type, $($place)+))
    };

    (@write $mad:expr, $value:expr, $type:ty, $($place:tt)+) => {
        <$type as $crate::wire::field::FieldValue>::write(
            $value,
            $mad,
            message!(@parts $type, $($place)+),
        )
    };

    // A line of `FIELDS`.
    (
        @field $message:ident, $edit:ident, $name:ident, $read:expr, [$($member:tt)+],
        $type:ty, $($place:tt)+
    ) => {
        $crate::wire::Field {
            name: stringify!($name),
            parts: message!(@parts $type, $($place)+),
            view: |mad| {
                let read: fn(&$crate::wire::Mad) -> $type = $read;
                $crate::wire::field::FieldValue::to_value(read(mad))
            },
            parse: |mad| {
                $crate::wire::field::FieldValue::to_value($message::parse(mad).$($member)+)
            },
            edit: |mad, value| {
                $edit(mad).$name($crate::wire::field::FieldValue::from_value(value));
            },
            emit: |mad, value| {
                let mut message = $message::parse(mad);
                message.$($member)+ = $crate::wire::field::FieldValue::from_value(value);
                message.emit(mad, &[]);
            },
        }
    };

    (
        $(#[$doc:meta])*
        $message:ident, $view:ident, $edit:ident;
        $( ece $attr_mod:ident; )?
        fields {
            $(
                $(#[$field_doc:meta])*
                $field:ident: $type:ty = $( ($byte:literal, $bit:literal, $width:literal) )+;
            )*
        }
        $(
            path $path:ident {
                $(#![$path_doc:meta])*
                $(
                    $path_field:ident, $part:ident: $path_type:ty =
                        ($path_byte:literal, $path_bit:literal, $path_width:literal);
                )*
            }
        )*
        $(
            $(#[$info_doc:meta])*
            info $info:ident, $info_length:ident = $info_byte:literal;
        )?
        private_data $private_data_len:literal = $private_data_byte:literal;
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $message {
            /// Transaction ID of the MAD header; a response repeats that of its request
            /// (IBA 13.4.6.4).
            pub tid: u64,
            $(
                /// Attribute modifier of the MAD header: the option of the vendor in enhanced
                /// connection establishment (ECE), which the vendor ID explains.
                pub $attr_mod: u32,
            )?
            $( $(#[$field_doc])* pub $field: $type, )*
            $( $(#[$path_doc])* pub $path: $crate::wire::PathFields, )*
            $( $(#[$info_doc])* pub $info: [u8; $crate::wire::INFO_SIZE], )?
        }

        impl $message {
            /// The message with every field zero.
            pub const ZERO: Self = Self {
                tid: 0,
                $( $attr_mod: 0, )?
                $( $field: <$type as $crate::wire::field::FieldValue>::ZERO, )*
                $( $path: $crate::wire::PathFields::ZERO, )*
                $( $info: [0; $crate::wire::INFO_SIZE], )?
            };

            /// The attribute ID of this message.
            pub const ATTR_ID: $crate::wire::AttrId = $crate::wire::AttrId::$message;

            /// Number of bytes of private data in this message.
            pub const PRIVATE_DATA_LEN: usize = $private_data_len;

            /// Offset of the private data from the start of the MAD, in bytes.
            pub const PRIVATE_DATA_OFFSET: usize =
                $crate::wire::HEADER_SIZE + $private_data_byte;

            /// The private data of a MAD that holds this message.
            #[inline]
            pub fn private_data(mad: &$crate::wire::Mad) -> &[u8; $private_data_len] {
                $crate::wire::field::bytes_at(mad, Self::PRIVATE_DATA_OFFSET)
            }

            /// Reads every field but the private data; does not look at the attribute ID.
            pub fn parse(mad: &$crate::wire::Mad) -> Self {
                let view = $view(mad);
                let mut message = Self::ZERO;
                message.tid = view.tid();
                $( message.$attr_mod = view.$attr_mod(); )?
                $( message.$field = view.$field(); )*
                $( $( message.$path.$part = view.$path_field(); )* )*
                $(
                    message.$info = message!(
                        @read mad, [u8; $crate::wire::INFO_SIZE], ($info_byte, 0, 576)
                    );
                )?
                message
            }

            /// Writes the whole MAD: zeroes it, then sets the header, every field, and at most
            /// [`Self::PRIVATE_DATA_LEN`] bytes of private data.
            pub fn emit(&self, mad: &mut $crate::wire::Mad, private_data: &[u8]) {
                *mad = [0; $crate::wire::MAD_SIZE];
                let header = $crate::wire::Header {
                    $( attr_mod: self.$attr_mod, )?
                    ..$crate::wire::Header::new(Self::ATTR_ID, self.tid)
                };
                header.emit(mad);
                let mut edit = $edit(mad);
                $( edit.$field(self.$field); )*
                $( $( edit.$path_field(self.$path.$part); )* )*
                $( edit.$info(self.$info); )?
                let offset = Self::PRIVATE_DATA_OFFSET;
                let len = Self::PRIVATE_DATA_LEN;
                $crate::wire::field::set_private_data(mad, offset, len, private_data);
            }

            $(
                /// The additional information in use: as many bytes as the length field counts,
                /// or all there are when it counts more.
                pub fn $info(&self) -> &[u8] {
                    $crate::wire::field::clamped(&self.$info, self.$info_length)
                }
            )?
        }

        impl Default for $message {
            fn default() -> Self {
                Self::ZERO
            }
        }

        #[doc = concat!("A MAD read as a [`", stringify!($message), "`], field by field.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a>(
            /// The MAD.
            pub &'a $crate::wire::Mad,
        );

        impl<'a> $view<'a> {
            #[doc = concat!("Reads [`", stringify!($message), "::tid`].")]
            #[inline]
            pub fn tid(self) -> u64 {
                $crate::wire::header::tid(self.0)
            }

            $(
                #[doc = concat!("Reads [`", stringify!($message), "::attr_mod`].")]
                #[inline]
                pub fn $attr_mod(self) -> u32 {
                    $crate::wire::header::attr_mod(self.0)
                }
            )?

            $(
                #[doc = concat!("Reads [`", stringify!($message), "::", stringify!($field), "`].")]
                #[inline]
                pub fn $field(self) -> $type {
                    message!(@read self.0, $type, $( ($byte, $bit, $width) )+)
                }
            )*

            $($(
                #[doc = concat!(
                    "Reads the [`", stringify!($part), "`](crate::wire::PathFields::",
                    stringify!($part), ") of [`", stringify!($message), "::",
                    stringify!($path), "`]."
                )]
                #[inline]
                pub fn $path_field(self) -> $path_type {
                    message!(@read self.0, $path_type, ($path_byte, $path_bit, $path_width))
                }
            )*)*

            $(
                #[doc = concat!("Reads [`", stringify!($message), "::", stringify!($info),
                    "()`]: the bytes in use.")]
                #[inline]
                pub fn $info(self) -> &'a [u8] {
                    let info = $crate::wire::HEADER_SIZE + $info_byte;
                    let info = $crate::wire::field::bytes_at(self.0, info);
                    $crate::wire::field::clamped(info, self.$info_length())
                }
            )?

            /// The private data.
            #[inline]
            pub fn private_data(self) -> &'a [u8; $private_data_len] {
                $message::private_data(self.0)
            }
        }

        #[doc = concat!("A MAD that holds a [`", stringify!($message), "`], to change in place.")]
        #[derive(Debug)]
        pub struct $edit<'a>(
            /// The MAD.
            pub &'a mut $crate::wire::Mad,
        );

        impl $edit<'_> {
            $(
                #[doc = concat!("Sets [`", stringify!($message), "::", stringify!($field), "`].")]
                #[inline]
                pub fn $field(&mut self, value: $type) {
                    message!(@write self.0, value, $type, $( ($byte, $bit, $width) )+);
                }
            )*

            $($(
                #[doc = concat!(
                    "Sets the [`", stringify!($part), "`](crate::wire::PathFields::",
                    stringify!($part), ") of [`", stringify!($message), "::",
                    stringify!($path), "`]."
                )]
                #[inline]
                pub fn $path_field(&mut self, value: $path_type) {
                    message!(
                        @write self.0, value, $path_type, ($path_byte, $path_bit, $path_width)
                    );
                }
            )*)*

            $(
                #[doc = concat!("Sets all of [`", stringify!($message), "::", stringify!($info),
                    "`], but not the length.")]
                #[inline]
                pub fn $info(&mut self, value: [u8; $crate::wire::INFO_SIZE]) {
                    message!(
                        @write self.0, value, [u8; $crate::wire::INFO_SIZE], ($info_byte, 0, 576)
                    );
                }
            )?
        }

        #[cfg(not(MODULE))]
        impl $message {
            /// The table of the fields.
            pub const FIELDS: &'static [$crate::wire::Field] = &[
                $(
                    message!(
                        @field $message, $edit, $field, |mad| $view(mad).$field(), [$field],
                        $type, $( ($byte, $bit, $width) )+
                    ),
                )*
                $($(
                    message!(
                        @field $message, $edit, $path_field, |mad| $view(mad).$path_field(),
                        [$path.$part], $path_type, ($path_byte, $path_bit, $path_width)
                    ),
                )*)*
                $(
                    message!(
                        @field $message, $edit, $info, |mad| $message::parse(mad).$info, [$info],
                        [u8; $crate::wire::INFO_SIZE], ($info_byte, 0, 576)
                    ),
                )?
            ];
        }
    };
}
