// SPDX-License-Identifier: GPL-2.0
//! Properties that all messages share.

use super::*;
use proptest::prelude::*;

/// Any bytes at all; the MADs of a hostile sender.
fn any_mad() -> impl Strategy<Value = Mad> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), MAD_SIZE),
        any::<u8>().prop_map(|byte| vec![byte; MAD_SIZE]),
    ]
    .prop_map(|bytes| core::array::from_fn(|index| bytes[index]))
}

/// Private data of any length, longer than a MAD too.
fn any_private_data() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

/// The bits that the parts of the fields cover, and whether any is covered twice.
#[allow(clippy::arithmetic_side_effects)]
fn coverage(fields: &[Field]) -> (Mad, bool) {
    let mut covered = [0; MAD_SIZE];
    let mut twice = false;
    for part in fields.iter().flat_map(|field| field.parts) {
        let first = part.byte * 8 + part.bit as usize;
        for bit in first..first + part.width as usize {
            let mask = 0x80 >> (bit % 8);
            twice |= covered[bit / 8] & mask != 0;
            covered[bit / 8] |= mask;
        }
    }
    (covered, twice)
}

macro_rules! properties {
    ($module:ident, $message:ident) => {
        mod $module {
            use super::*;

            #[test]
            fn fields_share_no_bit_and_end_before_the_private_data() {
                let (covered, twice) = coverage($message::FIELDS);
                assert!(!twice);
                assert!(covered[..HEADER_SIZE].iter().all(|byte| *byte == 0));
                let offset = $message::PRIVATE_DATA_OFFSET;
                assert!(covered[offset..].iter().all(|byte| *byte == 0));
                assert_eq!(offset + $message::PRIVATE_DATA_LEN, MAD_SIZE);
            }

            #[test]
            fn default_is_all_zero() {
                assert_eq!($message::default(), $message::parse(&[0; MAD_SIZE]));
            }

            proptest! {
                #[test]
                fn what_is_emitted_is_parsed(received in any_mad(), stale in any_mad()) {
                    let message = $message::parse(&received);
                    let mut mad = stale;
                    message.emit(&mut mad, &[]);
                    prop_assert_eq!(message, $message::parse(&mad));
                }

                #[test]
                fn only_header_fields_and_private_data_are_emitted(
                    received in any_mad(),
                    stale in any_mad(),
                    data in any_private_data(),
                ) {
                    let mut mad = stale;
                    $message::parse(&received).emit(&mut mad, &data);

                    let header = Header::parse(&mad);
                    prop_assert_eq!(header.base_version, 1);
                    prop_assert_eq!(header.mgmt_class, 7);
                    prop_assert_eq!(header.class_version, 2);
                    prop_assert_eq!(header.method, 3);
                    prop_assert_eq!(header.status, 0);
                    prop_assert_eq!(header.class_specific, 0);
                    prop_assert_eq!(header.tid, Header::parse(&received).tid);
                    prop_assert_eq!(AttrId::from_raw(header.attr_id), Some($message::ATTR_ID));

                    let (covered, _) = coverage($message::FIELDS);
                    let offset = $message::PRIVATE_DATA_OFFSET;
                    for index in HEADER_SIZE..offset {
                        prop_assert_eq!(mad[index], received[index] & covered[index]);
                    }
                    for (index, byte) in mad[offset..].iter().enumerate() {
                        prop_assert_eq!(*byte, data.get(index).copied().unwrap_or(0));
                    }
                    prop_assert_eq!(&$message::private_data(&mad)[..], &mad[offset..]);
                }

                #[test]
                fn view_and_struct_agree(received in any_mad()) {
                    for field in $message::FIELDS {
                        prop_assert_eq!((field.view)(&received), (field.parse)(&received));
                    }
                }

                #[test]
                fn setters_change_nothing_else(received in any_mad(), other in any_mad()) {
                    for field in $message::FIELDS {
                        let mut mad = received;
                        (field.edit)(&mut mad, (field.view)(&other));
                        prop_assert_eq!((field.view)(&mad), (field.view)(&other));
                        (field.edit)(&mut mad, (field.view)(&received));
                        prop_assert_eq!(mad, received);
                    }
                }
            }
        }
    };
}

properties!(req, Req);
properties!(mra, Mra);
properties!(rej, Rej);
properties!(rep, Rep);
properties!(rtu, Rtu);
properties!(dreq, Dreq);
properties!(drep, Drep);
properties!(sidr_req, SidrReq);
properties!(sidr_rep, SidrRep);
properties!(lap, Lap);
properties!(apr, Apr);

proptest! {
    #[test]
    fn bytes_in_use_are_the_first_ones(received in any_mad()) {
        let rej = Rej::parse(&received);
        prop_assert_eq!(rej.ari(), RejView(&received).ari());
        prop_assert_eq!(rej.ari(), &rej.ari[..usize::from(rej.ari_length).min(INFO_SIZE)]);

        let apr = Apr::parse(&received);
        prop_assert_eq!(apr.info(), AprView(&received).info());
        prop_assert_eq!(apr.info(), &apr.info[..usize::from(apr.info_length).min(INFO_SIZE)]);

        let rep = SidrRep::parse(&received);
        prop_assert_eq!(rep.info(), SidrRepView(&received).info());
        prop_assert_eq!(rep.info(), &rep.info[..usize::from(rep.info_length).min(INFO_SIZE)]);
    }

    #[test]
    fn headers_are_read_back(received in any_mad(), other in any_mad()) {
        let header = Header::parse(&received);
        let mut mad = other;
        header.emit(&mut mad);
        prop_assert_eq!(header, Header::parse(&mad));
        prop_assert_eq!(&mad[18..20], &other[18..20]);
        prop_assert_eq!(&mad[HEADER_SIZE..], &other[HEADER_SIZE..]);
    }
}
