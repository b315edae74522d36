// SPDX-License-Identifier: GPL-2.0
//! The IBA's encoding of time: an exponent of 5 bits, `t` stands for 4.096 µs * 2^t.

/// The largest exponent that a field can hold: 2.44 hours.
pub const MAX: u8 = 31;

/// Exact length of an encoded time, in nanoseconds; exponents above [`MAX`] count as [`MAX`].
pub const fn ns_from_iba(t: u8) -> u64 {
    4096_u64.wrapping_shl(exponent(t))
}

/// Approximate length of an encoded time, in milliseconds: 2^(t - 8), and 1 below that, which is
/// up to 5 % less than the exact length for `t` of 8 and more.
///
/// This is the rounding of `cm_convert_to_ms` in `cm.c`, which the timeouts of both sides are
/// made of, for all exponents that a field can hold. Exponents above [`MAX`] count as [`MAX`].
pub const fn ms_from_iba(t: u8) -> u32 {
    1_u32.wrapping_shl(exponent(t).saturating_sub(8))
}

/// Local ACK timeout of a connection, encoded, at most [`MAX`]: the time after which a packet
/// without an acknowledgment is sent again (IBA 12.7.34).
///
/// It must cover the other adapter's delay and the way there and back, 2^delay + 2 * 2^life.
/// As one more in the exponent doubles the time, the result is the larger of the two terms, one
/// more only if the other comes within half of it. All inputs are defined, as in
/// `cm_ack_timeout` of `cm.c`: a life time of 255, which a consumer gets from 0 - 1, gives 31.
pub const fn ack_timeout(ca_ack_delay: u8, packet_life_time: u8) -> u8 {
    let delay = ca_ack_delay as u16;
    let round_trip = (packet_life_time as u16).wrapping_add(1);
    let (larger, smaller) = if round_trip >= delay {
        (round_trip, delay)
    } else {
        (delay, round_trip)
    };
    let timeout = larger.wrapping_add((smaller.wrapping_add(1) >= larger) as u16);
    if timeout < MAX as u16 {
        timeout as u8
    } else {
        MAX
    }
}

/// Packet life time of a path, encoded, from the local ACK timeout that a REQ or LAP gives for it:
/// half the time, as the timeout covers the way there and back.
pub const fn packet_life_time(local_ack_timeout: u8) -> u8 {
    local_ack_timeout.saturating_sub(1)
}

const fn exponent(t: u8) -> u32 {
    if t < MAX {
        t as u32
    } else {
        MAX as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_of_every_exponent() {
        for t in 0..=u8::MAX {
            let expected = match t {
                0..=8 => 1,
                9..=31 => 1 << (t - 8),
                32.. => 1 << 23,
            };
            assert_eq!(ms_from_iba(t), expected, "{t}");
        }
    }

    #[test]
    fn milliseconds_are_close_below_the_exact_time() {
        for t in 8..=MAX {
            let exact = ns_from_iba(t);
            let rounded = u64::from(ms_from_iba(t)) * 1_000_000;
            assert!(rounded <= exact && exact <= rounded + rounded / 20, "{t}");
        }
        assert_eq!(ns_from_iba(0), 4096);
        assert_eq!(ns_from_iba(14), 67_108_864);
        assert_eq!(ns_from_iba(u8::MAX), ns_from_iba(MAX));
    }

    #[test]
    fn ack_timeout_covers_delay_and_round_trip_within_a_factor_of_two() {
        for delay in 0..29 {
            for life in 0..28 {
                let needed = ns_from_iba(delay) + 2 * ns_from_iba(life);
                let timeout = ns_from_iba(ack_timeout(delay, life));
                assert!(timeout * 3 >= needed * 2, "{delay} {life}");
                assert!(timeout <= needed * 2, "{delay} {life}");
            }
        }
    }

    #[test]
    fn ack_timeout_of_known_pairs() {
        for (delay, life, expected) in [
            (0, 0, 2),
            (0, 1, 2),
            (15, 0, 15),
            (15, 13, 16),
            (15, 14, 16),
            (15, 15, 17),
            (15, 16, 17),
            (0, 30, 31),
            (31, 0, 31),
            (0, 255, 31),
            (255, 255, 31),
        ] {
            assert_eq!(ack_timeout(delay, life), expected, "{delay} {life}");
        }
    }

    #[test]
    fn packet_life_time_is_one_less_but_not_below_zero() {
        assert_eq!(packet_life_time(0), 0);
        assert_eq!(packet_life_time(1), 0);
        assert_eq!(packet_life_time(31), 30);
    }
}
