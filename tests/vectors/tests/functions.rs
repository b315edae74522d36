// SPDX-License-Identifier: GPL-2.0
//! Times, reasons, transports and constants, against the kernel's functions and definitions.

use std::path::Path;

use ib_cm_proto::time;
use ib_cm_proto::wire::*;
use ib_cm_vectors::Vectors;

/// The kernel's name of a number and its value here, in groups that share a prefix.
macro_rules! constants {
    ($( $kind:literal, $prefix:literal, $suffix:literal, [$( $name:ident = $value:expr ),* $(,)?]; )*) => {
        const CONSTANTS: &[(&str, &str, u64)] = &[
            $($( ($kind, concat!($prefix, stringify!($name), $suffix), $value as u64), )*)*
        ];
    };
}

constants! {
    "CONSTANT", "IB_CM_REJ_", "", [
        NO_QP = RejReason::NO_QP.0,
        NO_EEC = RejReason::NO_EEC.0,
        NO_RESOURCES = RejReason::NO_RESOURCES.0,
        TIMEOUT = RejReason::TIMEOUT.0,
        UNSUPPORTED = RejReason::UNSUPPORTED.0,
        INVALID_COMM_ID = RejReason::INVALID_COMM_ID.0,
        INVALID_COMM_INSTANCE = RejReason::INVALID_COMM_INSTANCE.0,
        INVALID_SERVICE_ID = RejReason::INVALID_SERVICE_ID.0,
        INVALID_TRANSPORT_TYPE = RejReason::INVALID_TRANSPORT_TYPE.0,
        STALE_CONN = RejReason::STALE_CONN.0,
        RDC_NOT_EXIST = RejReason::RDC_NOT_EXIST.0,
        INVALID_GID = RejReason::INVALID_GID.0,
        INVALID_LID = RejReason::INVALID_LID.0,
        INVALID_SL = RejReason::INVALID_SL.0,
        INVALID_TRAFFIC_CLASS = RejReason::INVALID_TRAFFIC_CLASS.0,
        INVALID_HOP_LIMIT = RejReason::INVALID_HOP_LIMIT.0,
        INVALID_PACKET_RATE = RejReason::INVALID_PACKET_RATE.0,
        INVALID_ALT_GID = RejReason::INVALID_ALT_GID.0,
        INVALID_ALT_LID = RejReason::INVALID_ALT_LID.0,
        INVALID_ALT_SL = RejReason::INVALID_ALT_SL.0,
        INVALID_ALT_TRAFFIC_CLASS = RejReason::INVALID_ALT_TRAFFIC_CLASS.0,
        INVALID_ALT_HOP_LIMIT = RejReason::INVALID_ALT_HOP_LIMIT.0,
        INVALID_ALT_PACKET_RATE = RejReason::INVALID_ALT_PACKET_RATE.0,
        PORT_CM_REDIRECT = RejReason::PORT_CM_REDIRECT.0,
        PORT_REDIRECT = RejReason::PORT_REDIRECT.0,
        INVALID_MTU = RejReason::INVALID_MTU.0,
        INSUFFICIENT_RESP_RESOURCES = RejReason::INSUFFICIENT_RESP_RESOURCES.0,
        CONSUMER_DEFINED = RejReason::CONSUMER_DEFINED.0,
        INVALID_RNR_RETRY = RejReason::INVALID_RNR_RETRY.0,
        DUPLICATE_LOCAL_COMM_ID = RejReason::DUPLICATE_LOCAL_COMM_ID.0,
        INVALID_CLASS_VERSION = RejReason::INVALID_CLASS_VERSION.0,
        INVALID_FLOW_LABEL = RejReason::INVALID_FLOW_LABEL.0,
        INVALID_ALT_FLOW_LABEL = RejReason::INVALID_ALT_FLOW_LABEL.0,
        VENDOR_OPTION_NOT_SUPPORTED = RejReason::VENDOR_OPTION_NOT_SUPPORTED.0,
        ARI_LENGTH = INFO_SIZE,
    ];
    "CONSTANT", "IB_CM_APR_", "", [
        SUCCESS = ApStatus::SUCCESS.0,
        INVALID_COMM_ID = ApStatus::INVALID_COMM_ID.0,
        UNSUPPORTED = ApStatus::UNSUPPORTED.0,
        REJECT = ApStatus::REJECT.0,
        REDIRECT = ApStatus::REDIRECT.0,
        IS_CURRENT = ApStatus::IS_CURRENT.0,
        INVALID_QPN_EECN = ApStatus::INVALID_QPN_EECN.0,
        INVALID_LID = ApStatus::INVALID_LID.0,
        INVALID_GID = ApStatus::INVALID_GID.0,
        INVALID_FLOW_LABEL = ApStatus::INVALID_FLOW_LABEL.0,
        INVALID_TCLASS = ApStatus::INVALID_TCLASS.0,
        INVALID_HOP_LIMIT = ApStatus::INVALID_HOP_LIMIT.0,
        INVALID_PACKET_RATE = ApStatus::INVALID_PACKET_RATE.0,
        INVALID_SL = ApStatus::INVALID_SL.0,
        INFO_LENGTH = INFO_SIZE,
    ];
    "CONSTANT", "IB_SIDR_", "", [
        SUCCESS = SidrStatus::SUCCESS.0,
        UNSUPPORTED = SidrStatus::UNSUPPORTED.0,
        REJECT = SidrStatus::REJECT.0,
        NO_QP = SidrStatus::NO_QP.0,
        REDIRECT = SidrStatus::REDIRECT.0,
        UNSUPPORTED_VERSION = SidrStatus::UNSUPPORTED_VERSION.0,
    ];
    "CONSTANT", "IB_CM_", "", [SIDR_REP_INFO_LENGTH = INFO_SIZE];
    "CONSTANT", "IB_CM_", "_PRIVATE_DATA_SIZE", [
        REQ = Req::PRIVATE_DATA_LEN,
        MRA = Mra::PRIVATE_DATA_LEN,
        REJ = Rej::PRIVATE_DATA_LEN,
        REP = Rep::PRIVATE_DATA_LEN,
        RTU = Rtu::PRIVATE_DATA_LEN,
        DREQ = Dreq::PRIVATE_DATA_LEN,
        DREP = Drep::PRIVATE_DATA_LEN,
        LAP = Lap::PRIVATE_DATA_LEN,
        APR = Apr::PRIVATE_DATA_LEN,
        SIDR_REQ = SidrReq::PRIVATE_DATA_LEN,
        SIDR_REP = SidrRep::PRIVATE_DATA_LEN,
    ];
    "BE16_CONSTANT", "CM_", "_ATTR_ID", [
        REQ = AttrId::Req,
        MRA = AttrId::Mra,
        REJ = AttrId::Rej,
        REP = AttrId::Rep,
        RTU = AttrId::Rtu,
        DREQ = AttrId::Dreq,
        DREP = AttrId::Drep,
        SIDR_REQ = AttrId::SidrReq,
        SIDR_REP = AttrId::SidrRep,
        LAP = AttrId::Lap,
        APR = AttrId::Apr,
    ];
    "CONSTANT", "CM_", "_COUNTER", [
        REQ = AttrId::Req.index(),
        MRA = AttrId::Mra.index(),
        REJ = AttrId::Rej.index(),
        REP = AttrId::Rep.index(),
        RTU = AttrId::Rtu.index(),
        DREQ = AttrId::Dreq.index(),
        DREP = AttrId::Drep.index(),
        SIDR_REQ = AttrId::SidrReq.index(),
        SIDR_REP = AttrId::SidrRep.index(),
        LAP = AttrId::Lap.index(),
        APR = AttrId::Apr.index(),
    ];
    "CONSTANT", "CM_", "", [ATTR_COUNT = AttrId::COUNT];
    "CONSTANT", "CM_MSG_RESPONSE_", "", [
        REQ = Msg::Req,
        REP = Msg::Rep,
        OTHER = Msg::Other,
    ];
    "CONSTANT", "IB_MGMT_", "", [
        BASE_VERSION = Header::BASE_VERSION,
        CLASS_CM = Header::MGMT_CLASS,
        METHOD_SEND = Header::METHOD_SEND,
    ];
    "CONSTANT", "IB_CM_", "", [CLASS_VERSION = Header::CLASS_VERSION];
}

#[test]
fn functions_and_constants_are_the_kernels() {
    let mut source = String::new();
    for (kind, name, _) in CONSTANTS {
        source.push_str(&format!("{kind}({name})\n"));
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("functions");
    let facts = Vectors::build(&directory, &source).facts();

    let mut qp_types = Vec::new();
    for fact in facts.iter().filter(|fact| fact.starts_with("qp_types ")) {
        qp_types = numbers(fact.split(' ').skip(1));
    }
    let [rc, uc, xrc_ini, xrc_tgt] = qp_types[..] else {
        panic!("no types of queue pairs");
    };

    for fact in &facts {
        let words: Vec<_> = fact.split(' ').collect();
        match words[..] {
            ["reason", value, ..] => {
                let text = RejReason(number(value)).text().to_str();
                assert_eq!(text, Ok(&*words[2..].join(" ")), "{fact}");
            }
            ["constant", name, value] => {
                let ours = CONSTANTS.iter().find(|constant| constant.1 == name);
                let ours = ours.unwrap_or_else(|| panic!("{name} is missing")).2;
                assert_eq!(ours, number::<u64>(value), "{fact}");
            }
            ["ms", t, ms] => assert_eq!(time::ms_from_iba(number(t)), number(ms), "{fact}"),
            ["ack_timeout", delay, life, expected] => {
                let timeout = time::ack_timeout(number(delay), number(life));
                assert_eq!(timeout, number(expected), "{fact}");
            }
            ["transport", service_type, extended_type, qp_type] => {
                let transport = Transport::from_raw(number(service_type), number(extended_type));
                let ours = match transport {
                    Some(Transport::Rc) => rc,
                    Some(Transport::Uc) => uc,
                    Some(Transport::Xrc) => xrc_tgt,
                    None => 0,
                };
                assert_eq!(ours, number::<u64>(qp_type), "{fact}");
            }
            ["set_transport", qp_type, service_type, extended_type] => {
                let transport = match number::<u64>(qp_type) {
                    qp_type if qp_type == uc => Transport::Uc,
                    qp_type if qp_type == xrc_ini => Transport::Xrc,
                    _ => Transport::Rc,
                };
                let raw = (number(service_type), number(extended_type));
                assert_eq!(transport.raw(), raw, "{fact}");
            }
            ["req", has_alternate, is_opa, lid, mad] => {
                let mad = mad_from_hex(mad);
                let req = Req::parse(&mad);
                let expected = number::<u8>(has_alternate) != 0;
                assert_eq!(req.has_alternate_path(), expected, "{fact}");
                assert_eq!(ReqView(&mad).has_alternate_path(), expected, "{fact}");
                let gid = req.alternate.local_port_gid;
                assert_eq!(is_opa_gid(&gid), number::<u8>(is_opa) != 0, "{fact}");
                assert_eq!(opa_lid(&gid), number(lid), "{fact}");
            }
            ["rep", qpn, xrc_qpn, mad] => {
                let mad = mad_from_hex(mad);
                for (to_xrc_initiator, qpn) in [(false, qpn), (true, xrc_qpn)] {
                    let qpn = number(qpn);
                    assert_eq!(RepView(&mad).qpn(to_xrc_initiator), qpn, "{fact}");
                    assert_eq!(Rep::parse(&mad).qpn(to_xrc_initiator), qpn, "{fact}");
                }
            }
            ["header", .., mad] => check_header(&words[1..10], &mad_from_hex(mad)),
            ["rep_header", mad] => {
                let mut ours = [0; MAD_SIZE];
                let rep = Rep {
                    tid: 0x1234_5678_9abc_def0,
                    attr_mod: 0x8765_4321,
                    ..Rep::ZERO
                };
                rep.emit(&mut ours, &[]);
                assert_eq!(ours, mad_from_hex(mad));
            }
            ["qp_types", ..] => {}
            _ => panic!("unknown fact: {fact}"),
        }
    }

    for kind in [
        "reason ",
        "ms ",
        "ack_timeout ",
        "set_transport ",
        "rep_header ",
    ] {
        assert!(facts.iter().any(|fact| fact.starts_with(kind)), "no {kind}");
    }
    let constants = facts.iter().filter(|fact| fact.starts_with("constant "));
    assert_eq!(constants.count(), CONSTANTS.len());
}

fn check_header(fields: &[&str], mad: &Mad) {
    let header = Header::parse(mad);
    let ours = [
        header.base_version.into(),
        header.mgmt_class.into(),
        header.class_version.into(),
        header.method.into(),
        header.status.into(),
        header.class_specific.into(),
        header.tid,
        header.attr_id.into(),
        header.attr_mod.into(),
    ];
    assert_eq!(ours[..], numbers(fields.iter().copied()));

    let mut other = *mad;
    other[..HEADER_SIZE].fill(0);
    other[18..20].copy_from_slice(&mad[18..20]);
    header.emit(&mut other);
    assert_eq!(other, *mad);
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is no number"))
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u64> {
    words.map(number).collect()
}

fn mad_from_hex(text: &str) -> Mad {
    let mut mad = [0; MAD_SIZE];
    for (index, byte) in mad.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).expect("hexadecimal");
    }
    mad
}
