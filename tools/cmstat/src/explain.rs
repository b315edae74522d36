// SPDX-License-Identifier: GPL-2.0
//! What a connection waits for, in words.

use crate::table::Row;

/// Whether a row of `connections` has waited for `after` seconds or longer.
pub fn is_stuck(row: &Row<'_>, after: f64) -> bool {
    let waits = match row.get("waits") {
        "-" => false,
        // That has an end of its own.
        "time" => row.number("left_ms").is_none_or(|left: u64| left == 0),
        _ => true,
    };
    waits && age(row) >= after
}

/// Seconds in the present state.
pub fn age(row: &Row<'_>) -> f64 {
    row.number("age_s").unwrap_or(0.0)
}

/// What has to happen next, and what to look at when it does not: one sentence.
pub fn next_step(row: &Row<'_>) -> String {
    let owner = row.get("owner");
    let peer = row.get("peer");
    match row.get("waits") {
        "peer:rep" if row.get("state") == "MRA_REQ_RCVD" => format!(
            "{peer} has the REQ and has asked for more time: its program has not accepted yet; run \
             'cmstat stuck' there."
        ),
        "peer:rep" => format!(
            "It waits for {peer} to answer the REQ, which is sent {}; look whether the peer is up, \
             listens, and can be reached.",
            repeated(row)
        ),
        "peer:rtu" if row.get("state") == "MRA_REP_RCVD" => format!(
            "{peer} has the REP and has asked for more time: its program has not confirmed yet; \
             look at the client there."
        ),
        "peer:rtu" => format!(
            "It waits for {peer} to confirm the REP, which is sent {}; look at the client there.",
            repeated(row)
        ),
        "peer:drep" if owner == "none" => format!(
            "Its consumer has left; the module repeats the DREQ until {peer} answers or the \
             retries are used up."
        ),
        "peer:drep" => format!(
            "It waits for {peer} to answer the DREQ, which is sent {}; then TimeWait begins.",
            repeated(row)
        ),
        "peer:sidr_rep" => format!(
            "It waits for {peer} to answer the SIDR_REQ, which is sent {}.",
            repeated(row)
        ),
        "time" => match row.number::<u64>("left_ms") {
            Some(left) => format!(
                "It is in TimeWait for another {} s; the queue pair must stay as long.",
                seconds(left)
            ),
            None => "It is in TimeWait without a timer; report that with 'dmesg'.".to_string(),
        },
        waits => match waits.strip_prefix("consumer:") {
            Some("handler") => format!(
                "An event is being delivered: {owner} has not returned from its handler; look at \
                 /proc/*/stack for who sleeps in it."
            ),
            Some(call) => format!(
                "It waits for {owner} to answer ({call} or a reject); look at the program that \
                 serves {}.",
                service(row).unwrap_or_else(|| "it".to_string())
            ),
            None => "It waits for nothing.".to_string(),
        },
    }
}

/// What a connection is to, as rdma_cm's programs know it: rdma_cm puts a port space and a port into
/// the service ID (IBA annex A11.2.2).
pub fn service(row: &Row<'_>) -> Option<String> {
    let text = row.get("service_id");
    let id = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    match (id >> 16, id & 0xffff) {
        (0, 0) => None,
        (0x106, port) => Some(format!("TCP port {port}")),
        (0x111, port) => Some(format!("UDP port {port}")),
        _ => Some(format!("service {text}")),
    }
}

/// "every 4.2 s, 16 times in all, for 68.7 s".
fn repeated(row: &Row<'_>) -> String {
    let timeout = row.number::<u64>("timeout_ms").unwrap_or(0);
    let times = row.number::<u64>("retries").unwrap_or(0).saturating_add(1);
    format!(
        "every {} s, {times} times in all, for {} s",
        seconds(timeout),
        seconds(timeout.saturating_mul(times))
    )
}

/// Milliseconds as seconds with one decimal.
fn seconds(ms: u64) -> String {
    format!("{}.{}", ms / 1000, ms % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    fn each(mut check: impl FnMut(Row<'_>)) {
        let table = Table::parse(crate::report::tests::CONNECTIONS).unwrap();
        table.rows().for_each(&mut check);
    }

    #[test]
    fn stuck() {
        let mut ids = Vec::new();
        each(|row| {
            if is_stuck(&row, 10.0) {
                ids.push(row.number::<u32>("local_id").unwrap());
            }
        });
        assert_eq!(ids, [102, 103]);
    }

    #[test]
    fn steps() {
        let mut steps = Vec::new();
        each(|row| steps.push(next_step(&row)));
        assert_eq!(steps[0], "It waits for nothing.");
        assert!(
            steps[1].contains("sent every 4.2 s, 16 times in all, for 68.7 s"),
            "{}",
            steps[1]
        );
        assert!(
            steps[2].contains(
                "waits for rdma_cm to answer (rep or a reject); look at the program that serves \
                 TCP port 7174."
            ),
            "{}",
            steps[2]
        );
        assert!(steps[3].contains("for another 0.4 s"), "{}", steps[3]);
    }

    /// A row of these columns alone.
    fn of(columns: &str, words: &str, check: impl Fn(Row<'_>)) {
        let table = Table::parse(&format!("{columns}\n{words}\n")).unwrap();
        table.rows().for_each(check);
    }

    #[test]
    fn a_peer_that_has_asked_for_time_is_up() {
        for (state, waits, has) in [
            ("MRA_REQ_RCVD", "peer:rep", "REQ"),
            ("MRA_REP_RCVD", "peer:rtu", "REP"),
        ] {
            of("state waits peer", &format!("{state} {waits} p"), |row| {
                let step = next_step(&row);
                assert!(step.starts_with(&format!("p has the {has}")), "{step}");
                assert!(!step.contains("sent every"), "{step}");
            });
        }
    }

    #[test]
    fn services() {
        for (id, name) in [
            ("0x0000000001061c06", Some("TCP port 7174")),
            ("0x0000000001111c06", Some("UDP port 7174")),
            ("0x0000000000000000", None),
            ("0x10000000000000fe", Some("service 0x10000000000000fe")),
            ("-", None),
        ] {
            of("service_id", id, |row| {
                assert_eq!(service(&row).as_deref(), name)
            });
        }
    }
}
