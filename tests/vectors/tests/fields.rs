// SPDX-License-Identifier: GPL-2.0
//! Every field of every message, against settings of it by the kernel's macros.

use std::collections::BTreeSet;
use std::path::Path;

use ib_cm_proto::wire::*;
use ib_cm_vectors::Vector;
use ib_cm_vectors::Vectors;

/// Random settings of each field.
const COUNT: u32 = 10_000;

/// A message: what the kernel's names of its fields begin with, and its table.
struct Message {
    prefix: &'static str,
    attr_id: AttrId,
    has_attr_mod: bool,
    fields: &'static [Field],
    private_data: fn(&Mad) -> &[u8],
    emit_private_data: fn(&mut Mad, &[u8]),
}

macro_rules! messages {
    ($( $message:ident, $prefix:literal, $has_attr_mod:literal; )*) => {
        const MESSAGES: &[Message] = &[$(
            Message {
                prefix: $prefix,
                attr_id: $message::ATTR_ID,
                has_attr_mod: $has_attr_mod,
                fields: $message::FIELDS,
                private_data: |mad| $message::private_data(mad),
                emit_private_data: |mad, data| $message::parse(mad).emit(mad, data),
            },
        )*];
    };
}

messages! {
    Req, "CM_REQ_", true;
    Mra, "CM_MRA_", false;
    Rej, "CM_REJ_", false;
    Rep, "CM_REP_", true;
    Rtu, "CM_RTU_", false;
    Dreq, "CM_DREQ_", false;
    Drep, "CM_DREP_", false;
    Lap, "CM_LAP_", false;
    Apr, "CM_APR_", false;
    SidrReq, "CM_SIDR_REQ_", false;
    SidrRep, "CM_SIDR_REP_", true;
}

/// Fields that have another name here than in the kernel, and which part of the field the kernel's
/// is if it has no whole.
const RENAMED: &[(&str, &str, Option<usize>)] = &[
    ("CM_REJ_REJECTED_INFO_LENGTH", "ari_length", None),
    ("CM_APR_ADDITIONAL_INFORMATION", "info", None),
    ("CM_APR_ADDITIONAL_INFORMATION_LENGTH", "info_length", None),
    ("CM_SIDR_REQ_REQUESTID", "request_id", None),
    ("CM_SIDR_REQ_SERVICEID", "service_id", None),
    ("CM_SIDR_REP_REQUESTID", "request_id", None),
    ("CM_SIDR_REP_SERVICEID", "service_id", None),
    ("CM_SIDR_REP_ADDITIONAL_INFORMATION", "info", None),
    (
        "CM_SIDR_REP_ADDITIONAL_INFORMATION_LENGTH",
        "info_length",
        None,
    ),
    ("CM_REP_VENDOR_ID_H", "vendor_id", Some(0)),
    ("CM_REP_VENDOR_ID_M", "vendor_id", Some(1)),
    ("CM_REP_VENDOR_ID_L", "vendor_id", Some(2)),
    ("CM_SIDR_REP_VENDOR_ID_H", "vendor_id", Some(0)),
    ("CM_SIDR_REP_VENDOR_ID_L", "vendor_id", Some(1)),
];

#[test]
fn every_field_is_where_the_kernel_has_it() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fields");
    let vectors = Vectors::build(&directory, "");
    let mut seen = BTreeSet::new();
    let mut current: Option<Checker> = None;
    let number_of_fields = vectors.fields(COUNT, |name, vector| {
        let checker = match current.as_mut() {
            Some(checker) if checker.name == name => checker,
            _ => {
                let checker = current.insert(Checker::new(name));
                seen.insert((checker.message.prefix, checker.field_name()));
                checker
            }
        };
        checker.check(vector);
    });

    let ours = MESSAGES.iter().flat_map(|message| {
        let names = message.fields.iter().map(|field| field.name);
        names
            .chain(["private_data"])
            .map(|name| (message.prefix, name))
    });
    assert_eq!(seen, ours.collect(), "both sides know the same fields");
    // Three parts of one field in REP and two in SIDR_REP.
    assert_eq!(number_of_fields, seen.len() + 3);
}

/// Compares the vectors of one field.
struct Checker {
    name: String,
    message: &'static Message,
    /// None for private data.
    field: Option<&'static Field>,
    part: Option<usize>,
    /// The bits of all fields of the message.
    mask: Mad,
}

impl Checker {
    fn new(name: &str) -> Self {
        let message = MESSAGES
            .iter()
            .find(|message| name.starts_with(message.prefix))
            .unwrap_or_else(|| panic!("{name} is of no known message"));
        let renamed = RENAMED.iter().find(|renamed| renamed.0 == name);
        let plain = name[message.prefix.len()..].to_lowercase();
        let ours = renamed.map_or(plain.as_str(), |renamed| renamed.1);
        let field = message.fields.iter().find(|field| field.name == ours);
        assert!(
            field.is_some() || ours == "private_data",
            "{name} is missing"
        );

        let mut mask = [0; MAD_SIZE];
        for part in message.fields.iter().flat_map(|field| field.parts) {
            let first = part.byte * 8 + part.bit as usize;
            for bit in first..first + part.width as usize {
                mask[bit / 8] |= 0x80 >> (bit % 8);
            }
        }
        Self {
            name: name.to_owned(),
            message,
            field,
            part: renamed.and_then(|renamed| renamed.2),
            mask,
        }
    }

    fn field_name(&self) -> &'static str {
        self.field.map_or("private_data", |field| field.name)
    }

    fn check(&self, vector: &Vector) {
        match self.field {
            Some(field) => self.check_field(field, vector),
            None => self.check_private_data(vector),
        }
    }

    fn check_field(&self, field: &Field, vector: &Vector) {
        let Vector { before, after, .. } = vector;
        let name = &self.name;
        let old = (field.view)(before);
        let value = self.whole(field, old, &vector.value);
        let read = self.whole(field, old, &vector.read);
        assert_eq!((field.view)(after), read, "{name}: view");
        assert_eq!((field.parse)(after), read, "{name}: parse");

        let mut mad = *before;
        (field.edit)(&mut mad, value);
        assert_eq!(mad, *after, "{name}: edit");

        mad = *before;
        (field.emit)(&mut mad, value);
        assert_eq!(mad, self.emitted(after), "{name}: emit");
    }

    fn check_private_data(&self, vector: &Vector) {
        let name = &self.name;
        assert_eq!(
            (self.message.private_data)(&vector.after),
            vector.read,
            "{name}"
        );

        let mut mad = vector.before;
        (self.message.emit_private_data)(&mut mad, &vector.value);
        let mut expected = self.emitted(&vector.after);
        let data = (self.message.private_data)(&vector.after);
        let start = MAD_SIZE - data.len();
        expected[start..].copy_from_slice(data);
        assert_eq!(mad, expected, "{name}: emit");
    }

    /// What `emit` must write for a message with the fields of this MAD, without private data.
    fn emitted(&self, mad: &Mad) -> Mad {
        let mut emitted = [0; MAD_SIZE];
        for (to, (from, mask)) in emitted.iter_mut().zip(mad.iter().zip(self.mask)) {
            *to = from & mask;
        }
        let received = Header::parse(mad);
        let mut header = Header::new(self.message.attr_id, received.tid);
        if self.message.has_attr_mod {
            header.attr_mod = received.attr_mod;
        }
        header.emit(&mut emitted);
        emitted
    }

    /// The value of the whole field when the kernel's field has this value.
    fn whole(&self, field: &Field, old: Value, bytes: &[u8]) -> Value {
        let Value::Number(old) = old else {
            let mut value = [0; INFO_SIZE];
            value[..bytes.len()].copy_from_slice(bytes);
            return Value::Bytes(value);
        };
        let value = u64::from_be_bytes(bytes.try_into().expect("numbers have 8 bytes"));
        let Some(part) = self.part else {
            return Value::Number(value);
        };
        let shift: u32 = field.parts[part + 1..].iter().map(|part| part.width).sum();
        let mask = u64::MAX >> (64 - field.parts[part].width);
        Value::Number((old & !(mask << shift)) | ((value & mask) << shift))
    }
}
