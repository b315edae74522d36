// SPDX-License-Identifier: GPL-2.0
//! Every message, read and written over any bytes.

use ib_cm_proto::connection::Connection;
use ib_cm_proto::lookup::addressed;
use ib_cm_proto::lookup::Recipient;
use ib_cm_proto::step::Reject;
use ib_cm_proto::time;
use ib_cm_proto::wire::*;
use ib_cm_proto::Mad;
use ib_cm_proto::MAD_SIZE;

/// Two MADs: what is not there is zero.
fn mads(data: &[u8]) -> (Mad, Mad) {
    let mut both = [0; 2 * MAD_SIZE];
    both.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
    let (mut first, mut second) = ([0; MAD_SIZE], [0; MAD_SIZE]);
    first.copy_from_slice(&both[..MAD_SIZE]);
    second.copy_from_slice(&both[MAD_SIZE..]);
    (first, second)
}

/// The bits of a field, set in a MAD of zeroes.
fn mask(field: &Field) -> Mad {
    let mut mask = [0; MAD_SIZE];
    for part in field.parts {
        for bit in 0..part.width {
            let at = part.bit + bit;
            mask[part.byte + (at / 8) as usize] |= 0x80 >> (at % 8);
        }
    }
    mask
}

/// The ways to a field agree, and none of them touches what is beside it.
fn check_field(field: &Field, mad: &Mad, other: &Mad) {
    let (ours, theirs) = ((field.view)(mad), (field.view)(other));
    assert_eq!((field.parse)(mad), ours, "{}", field.name);
    let mut edited = *mad;
    (field.edit)(&mut edited, ours);
    assert_eq!(&edited, mad, "{}", field.name);
    (field.edit)(&mut edited, theirs);
    assert_eq!((field.view)(&edited), theirs, "{}", field.name);
    for (at, mask) in mask(field).iter().enumerate() {
        let beside = (edited[at] ^ mad[at]) & !mask;
        assert_eq!(beside, 0, "{} changes byte {at}", field.name);
    }
    let mut emitted = *mad;
    (field.emit)(&mut emitted, theirs);
    assert_eq!((field.view)(&emitted), theirs, "{}", field.name);
}

macro_rules! check_message {
    ($message:ident, $mad:expr, $other:expr) => {{
        for field in $message::FIELDS {
            check_field(field, $mad, $other);
        }
        let parsed = $message::parse($mad);
        let private_data = &$other[..usize::from($other[0])];
        let mut emitted = *$other;
        parsed.emit(&mut emitted, private_data);
        assert_eq!($message::parse(&emitted), parsed);
        assert_eq!(AttrId::of(&emitted), Some($message::ATTR_ID));
        let room = $message::private_data(&emitted);
        let fits = private_data.len().min(room.len());
        assert_eq!(room[..fits], private_data[..fits]);
        assert!(room[fits..].iter().all(|byte| *byte == 0));
        // What is written twice is written alike.
        let mut again = *$mad;
        parsed.emit(&mut again, private_data);
        assert_eq!(again, emitted);
    }};
}

/// Counted bytes are never more than there are, and the view counts as the struct does.
fn check_infos(mad: &Mad) {
    let (rej, apr, sidr_rep) = (Rej::parse(mad), Apr::parse(mad), SidrRep::parse(mad));
    assert_eq!(RejView(mad).ari(), rej.ari());
    assert_eq!(AprView(mad).info(), apr.info());
    assert_eq!(SidrRepView(mad).info(), sidr_rep.info());
    for (info, length) in [
        (rej.ari(), rej.ari_length),
        (apr.info(), apr.info_length),
        (sidr_rep.info(), sidr_rep.info_length),
    ] {
        assert_eq!(info.len(), usize::from(length).min(72));
    }
    let mut rej = rej;
    rej.set_ari(mad);
    assert_eq!(rej.ari(), &mad[..72]);
}

/// A connection may learn anything and still speak.
fn check_learning(mad: &Mad, other: &Mad) {
    let mut conn = Connection::new(1);
    conn.learn_req(ReqView(mad), ReqView(mad).tid());
    assert_eq!(conn.remote_qpn >> 24, 0);
    conn.ack_timeout = other[0];
    conn.learn_rep(RepView(other));
    assert!(conn.ack_timeout <= time::MAX);
    let reject = Reject {
        reason: RejView(other).reason(),
        message: Msg::Other,
        name_us: true,
    };
    let mut sent = [0; MAD_SIZE];
    conn.rej_message(reject, other).emit(&mut sent, other);
    assert_eq!(RejView(&sent).ari(), &other[..72]);
    conn.mra_message(Msg::Rep).emit(&mut sent, other);
    conn.dreq_message(conn.tid).emit(&mut sent, other);
    assert_eq!(DreqView(&sent).remote_qpn_eecn(), conn.remote_qpn);
    conn.drep_message().emit(&mut sent, other);
    conn.rtu_message().emit(&mut sent, other);
}

/// Whom a message is for is what it says, and its length is not believed.
fn check_recipient(mad: &Mad) {
    let Some(message) = AttrId::of(mad) else {
        return;
    };
    let Some(to) = addressed(message, mad) else {
        return;
    };
    match to.to {
        Recipient::Remote(key) => {
            assert_eq!(RejView(mad).reason(), RejReason::TIMEOUT);
            assert!(RejView(mad).ari_length() >= 8);
            assert_eq!(key.id, to.peer);
        }
        Recipient::Local(local) if message == AttrId::SidrRep => {
            assert_eq!(local, SidrRepView(mad).request_id());
        }
        Recipient::Local(local) => assert_eq!(local, RejView(mad).remote_comm_id()),
    }
}

/// Takes two MADs.
pub fn check(data: &[u8]) {
    let (mad, other) = mads(data);
    check_message!(Req, &mad, &other);
    check_message!(Mra, &mad, &other);
    check_message!(Rej, &mad, &other);
    check_message!(Rep, &mad, &other);
    check_message!(Rtu, &mad, &other);
    check_message!(Dreq, &mad, &other);
    check_message!(Drep, &mad, &other);
    check_message!(Lap, &mad, &other);
    check_message!(Apr, &mad, &other);
    check_message!(SidrReq, &mad, &other);
    check_message!(SidrRep, &mad, &other);
    let mut headed = mad;
    Header::parse(&mad).emit(&mut headed);
    let reserved = 18..20;
    for (at, byte) in headed.iter().enumerate() {
        assert!(*byte == mad[at] || reserved.contains(&at));
    }
    check_infos(&mad);
    check_learning(&mad, &other);
    for message in AttrId::ALL {
        let mut mad = mad;
        Header::new(message, 1).emit(&mut mad);
        check_recipient(&mad);
    }
    check_recipient(&mad);
}
