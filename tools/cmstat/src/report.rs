// SPDX-License-Identifier: GPL-2.0
//! What each command prints.

use std::io::Write;

use crate::explain::{age, is_stuck, next_step, service};
use crate::filter::Filter;
use crate::json::Value;
use crate::output::Output;
use crate::source::{Source, Trouble};
use crate::summary::Summary;
use crate::table::Row;

/// Columns of a list for people; JSON has all.
pub const LIST: [&str; 11] = [
    "local_id",
    "remote_id",
    "device",
    "port",
    "state",
    "local_qpn",
    "remote_qpn",
    "peer",
    "age_s",
    "waits",
    "owner",
];

pub fn summary<W: Write>(
    source: &Source,
    after: f64,
    output: &mut Output<W>,
) -> Result<(), Trouble> {
    let summary = Summary::take(source, after)?;
    if output.json {
        return Ok(output.value(&summary.to_json())?);
    }
    for line in summary.lines() {
        output.line(&line)?;
    }
    Ok(())
}

pub fn list<W: Write>(
    source: &Source,
    filter: &Filter,
    output: &mut Output<W>,
) -> Result<(), Trouble> {
    let table = source.table("connections")?;
    Ok(output.rows(table.rows().filter(|row| filter.takes(row)), &LIST)?)
}

pub fn listeners<W: Write>(source: &Source, output: &mut Output<W>) -> Result<(), Trouble> {
    let table = source.table("listeners")?;
    let columns = ["device", "service_id", "requests", "age_s", "owner"];
    Ok(output.rows(table.rows(), &columns)?)
}

pub fn holds<W: Write>(source: &Source, output: &mut Output<W>) -> Result<(), Trouble> {
    let table = source.table("holds")?;
    let columns = [
        "pid",
        "command",
        "device",
        "local_qpn",
        "local_id",
        "state",
        "held_ms",
        "left_ms",
        "limit_ms",
    ];
    Ok(output.rows(table.rows(), &columns)?)
}

/// The longest waits first.
pub fn oldest_first<'a>(rows: impl Iterator<Item = Row<'a>>) -> Vec<Row<'a>> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| age(b).total_cmp(&age(a)));
    rows
}

pub fn stuck<W: Write>(source: &Source, after: f64, output: &mut Output<W>) -> Result<(), Trouble> {
    let table = source.table("connections")?;
    let rows = oldest_first(table.rows().filter(|row| is_stuck(row, after)));
    if output.json {
        return Ok(output.value(&Value::list(rows.into_iter().map(explained)))?);
    }
    if rows.is_empty() {
        output.line(&format!("Nothing has waited for {after} s."))?;
    }
    for row in rows {
        output.line(&headline(&row))?;
        output.line(&format!("  {}", next_step(&row)))?;
    }
    Ok(())
}

/// A row with what it waits for in words.
fn explained(row: Row<'_>) -> Value {
    match row.to_json() {
        Value::Object(mut fields) => {
            fields.push(("next_step".to_string(), Value::text(next_step(&row))));
            Value::Object(fields)
        }
        other => other,
    }
}

/// What is known of a connection; a number that is 0 is not known yet.
fn headline(row: &Row<'_>) -> String {
    let known = |name: &str, column: &str| match row.get(column) {
        "0" | "-" => None,
        word => Some(format!("{name} {word}")),
    };
    let mut place = vec![format!(
        "id {} on {}",
        row.get("local_id"),
        row.get("device")
    )];
    place.extend(known("queue pair", "local_qpn"));
    place.extend(service(row));
    place.extend(known("peer", "peer"));
    let ends = [known("id", "remote_id"), known("queue pair", "remote_qpn")];
    let peer: Vec<_> = ends.into_iter().flatten().collect();
    let peer = match peer.is_empty() {
        true => String::new(),
        false => format!(" ({})", peer.join(", ")),
    };
    format!(
        "{}{peer}: {} for {} s",
        place.join(", "),
        row.get("state"),
        row.get("age_s"),
    )
}

/// The last change of each id that the module remembers, the oldest first.
pub fn history<W: Write>(source: &Source, output: &mut Output<W>) -> Result<(), Trouble> {
    let table = source.table("history")?;
    if !output.json && source.history() == 0 {
        return Ok(output.line(NOT_REMEMBERED)?);
    }
    let mut last: Vec<Row<'_>> = Vec::new();
    for row in table.rows() {
        // Changes of one id follow each other.
        match last.last_mut() {
            Some(before) if before.get("local_id") == row.get("local_id") => *before = row,
            _ => last.push(row),
        }
    }
    last.sort_by(|a, b| time(a).total_cmp(&time(b)));
    Ok(output.rows(
        last.into_iter(),
        &["local_id", "time_s", "from", "to", "cause"],
    )?)
}

/// Seconds of a change, on the clock of 'dmesg'.
fn time(row: &Row<'_>) -> f64 {
    row.number("time_s").unwrap_or(0.0)
}

const NOT_REMEMBERED: &str = "Changes of state are not remembered: 'echo 4096 \
    >/sys/module/ib_cm/parameters/history' begins that.";

pub fn why<W: Write>(source: &Source, id: u32, output: &mut Output<W>) -> Result<(), Trouble> {
    let is_it = |row: &Row<'_>| row.number("local_id") == Some(id);
    let connections = source.table("connections")?;
    let now = connections.rows().find(is_it);
    let history = source.table("history")?;
    let changes: Vec<_> = history.rows().filter(is_it).collect();
    if now.is_none() && changes.is_empty() {
        return Err(Trouble::UnknownId(id));
    }
    if output.json {
        let changes = changes.into_iter().map(Row::to_json);
        return Ok(output.value(&Value::object([
            ("local_id", u64::from(id).into()),
            ("connection", now.map_or(Value::Null, explained)),
            ("changes", Value::list(changes)),
            ("remembered", source.history().into()),
        ]))?);
    }
    match now {
        Some(row) => {
            output.line(&headline(&row))?;
            output.line(&next_step(&row))?;
        }
        None => output.line(&format!("id {id} is no more"))?,
    }
    if changes.is_empty() {
        let hint = match source.history() {
            0 => NOT_REMEMBERED,
            _ => {
                "No change of state is remembered: the id is older than the memory, or newer ids \
                  have taken its place."
            }
        };
        return Ok(output.line(hint)?);
    }
    let first = time(&changes[0]);
    let mut lines = vec![["time_s", "after_s", "from", "to", "cause"]
        .map(String::from)
        .to_vec()];
    lines.extend(changes.iter().map(|row| {
        let words = [
            row.get("time_s"),
            &format!("+{:.3}", time(row) - first),
            row.get("from"),
            row.get("to"),
            row.get("cause"),
        ];
        words.map(String::from).to_vec()
    }));
    Ok(output.grid(&lines)?)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::source::tests::Machine;

    pub const CONNECTIONS: &str = "\
local_id remote_id device port type state lap local_qpn remote_qpn peer remote_guid service_id \
age_s waits left_ms timeout_ms retries handler owner
101 201 rxe0 1 RC ESTABLISHED - 17 18 ::ffff:10.0.0.2 0x0000000000000001 0x0000000001061c06 \
3600.0 - - 4294 15 idle rdma_cm
102 0 rxe0 1 RC REQ_SENT - 19 0 ::ffff:10.0.0.3 0x0000000000000000 0x0000000001061c06 \
31.2 peer:rep - 4294 15 idle rdma_cm
103 203 rxe0 1 RC REQ_RCVD - 0 18 ::ffff:10.0.0.2 0x0000000000000001 0x0000000001061c06 \
12.0 consumer:rep - 4294 15 busy rdma_cm
104 204 rxe0 1 RC TIMEWAIT - 20 21 ::ffff:10.0.0.4 0x0000000000000002 0x0000000001061c06 \
30.1 time 412 4294 15 idle none
105 0 mlx5_0 2 - IDLE - 0 0 - 0x0000000000000000 0x0000000000000000 0.4 - - 0 0 idle ib_ipoib
";

    const HISTORY: &str = "\
local_id number time_s from to cause
102 0 812.500000 IDLE REQ_SENT call_req
99 3 700.000000 ESTABLISHED DREQ_SENT call_dreq
99 4 700.250000 DREQ_SENT TIMEWAIT received_drep
";

    pub fn machine(name: &str) -> (Machine, Source) {
        let machine = Machine::new(name);
        let source = machine.with_tables(&[
            ("connections", CONNECTIONS),
            ("history", HISTORY),
            (
                "listeners",
                "device service_id shares requests age_s local_id owner\n\
                 rxe0 0x0000000001061c06 1 0 4000.0 50 rdma_cm\n",
            ),
            (
                "holds",
                "local_id remote_id device local_qpn remote_qpn state held_ms left_ms limit_ms \
                 pid command\n104 204 rxe0 20 21 TIMEWAIT 88 412 10000 4711 server\n",
            ),
            (
                "stats",
                "ids 6\nholds_taken 3\nholds_released 1\nholds_expired 1\n",
            ),
        ]);
        (machine, source)
    }

    pub fn printed(
        json: bool,
        print: impl FnOnce(&mut Output<&mut Vec<u8>>) -> Result<(), Trouble>,
    ) -> String {
        let mut text = Vec::new();
        print(&mut Output::new(&mut text, json)).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_summary() {
        let (_machine, source) = machine("summary");
        let text = printed(false, |output| summary(&source, 10.0, output));
        assert!(
            text.contains("1 ESTABLISHED, 1 IDLE, 1 REQ_RCVD, 1 REQ_SENT, 1 TIMEWAIT"),
            "{text}"
        );
        assert!(text.contains("mlx5_0: 1 IDLE"), "{text}");
        assert!(
            text.contains("holds        1 now; 3 so far, 1 of them"),
            "{text}"
        );
        assert!(text.contains("stuck        2, see"), "{text}");
        let text = printed(true, |output| summary(&source, 10.0, output));
        assert_eq!(
            text,
            "{\"connections\":{\"mlx5_0\":{\"IDLE\":1},\"rxe0\":{\"ESTABLISHED\":1,\"REQ_RCVD\":1,\
             \"REQ_SENT\":1,\"TIMEWAIT\":1}},\"listeners\":{\"rxe0\":1},\"stats\":{\"holds_expired\
             \":1,\"holds_released\":1,\"holds_taken\":3,\"ids\":6},\"holds\":1,\"stuck\":2}\n"
        );
    }

    #[test]
    fn lists() {
        let (_machine, source) = machine("lists");
        let filter = Filter {
            state: vec!["TIMEWAIT".to_string()],
            ..Filter::default()
        };
        let text = printed(false, |output| list(&source, &filter, output));
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().nth(1).unwrap().starts_with("104       204"));
        let text = printed(true, |output| list(&source, &filter, output));
        assert!(
            text.starts_with("[{\"local_id\":104,\"remote_id\":204,"),
            "{text}"
        );
        assert!(printed(false, |output| listeners(&source, output)).contains("rdma_cm"));
        assert!(printed(false, |output| holds(&source, output)).contains("4711  server"));
    }

    #[test]
    fn what_is_stuck() {
        let (_machine, source) = machine("stuck");
        let text = printed(false, |output| stuck(&source, 10.0, output));
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("id 102 on rxe0, queue pair 19"));
        assert!(lines[2].starts_with("id 103 on rxe0"));
        let text = printed(true, |output| stuck(&source, 20.0, output));
        assert_eq!(text.matches("\"next_step\":\"It waits for").count(), 1);
        let text = printed(false, |output| stuck(&source, 50.0, output));
        assert_eq!(text, "Nothing has waited for 50 s.\n");
    }

    #[test]
    fn what_is_not_known_yet_is_left_out() {
        let (_machine, source) = machine("headlines");
        let text = printed(false, |output| stuck(&source, 10.0, output));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "id 102 on rxe0, queue pair 19, TCP port 7174, peer ::ffff:10.0.0.3: REQ_SENT for 31.2 s"
        );
        assert_eq!(
            lines[2],
            "id 103 on rxe0, TCP port 7174, peer ::ffff:10.0.0.2 (id 203, queue pair 18): REQ_RCVD \
             for 12.0 s"
        );
    }

    #[test]
    fn last_changes() {
        let (machine, source) = machine("history");
        let text = printed(false, |output| history(&source, output));
        assert!(text.contains("are not remembered"), "{text}");
        machine.file("sys/module/ib_cm/parameters/history", "256\n");
        let text = printed(false, |output| history(&source, output));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].starts_with("99 "), "{text}");
        assert!(lines[1].ends_with("received_drep"), "{text}");
        assert!(lines[2].starts_with("102 "), "{text}");
    }

    #[test]
    fn why_of_the_living_and_the_dead() {
        let (machine, source) = machine("why");
        let text = printed(false, |output| why(&source, 102, output));
        assert!(text.contains("call_req"), "{text}");
        let text = printed(false, |output| why(&source, 99, output));
        assert!(text.starts_with("id 99 is no more\n"), "{text}");
        assert!(text.contains("+0.250   DREQ_SENT    TIMEWAIT"), "{text}");
        let text = printed(false, |output| why(&source, 101, output));
        assert!(text.contains("are not remembered: 'echo 4096"), "{text}");
        machine.file("sys/module/ib_cm/parameters/history", "256\n");
        let text = printed(false, |output| why(&source, 101, output));
        assert!(text.contains("older than the memory"), "{text}");
        let text = printed(true, |output| why(&source, 99, output));
        assert!(
            text.contains("\"connection\":null,\"changes\":[{\"local_id\":99,"),
            "{text}"
        );
        let error = why(&source, 7, &mut Output::new(Vec::new(), false)).unwrap_err();
        assert!(error.to_string().starts_with("there is no id 7"));
    }
}
