// SPDX-License-Identifier: GPL-2.0
//! Which connections are listed.

use clap::Args;

use crate::table::Row;

/// The options of `cmstat list`; what is not given does not matter.
#[derive(Args, Clone, Debug, Default)]
pub struct Filter {
    /// In this state, as 'timewait' or REQ_SENT; several with commas
    #[arg(long, value_delimiter = ',', value_parser = parse_state)]
    pub state: Vec<String>,
    /// On this device
    #[arg(long)]
    pub device: Option<String>,
    /// On this port of the device (not a TCP port)
    #[arg(long)]
    pub port: Option<u32>,
    /// To this address (a GID, or an IPv4 address)
    #[arg(long)]
    pub peer: Option<String>,
    /// With this queue pair number, on either side
    #[arg(long)]
    pub qpn: Option<u32>,
    /// Of this consumer, as rdma_cm
    #[arg(long)]
    pub owner: Option<String>,
}

impl Filter {
    pub fn takes(&self, row: &Row<'_>) -> bool {
        let same = |wanted: &Option<String>, column: &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| row.get(column) == wanted)
        };
        let peer = |wanted: &String| {
            let peer = row.get("peer");
            peer == wanted || peer.strip_prefix("::ffff:") == Some(wanted)
        };
        let number = |wanted: u32, column: &str| row.number(column) == Some(wanted);
        let state = |wanted: &String| wanted == row.get("state");
        (self.state.is_empty() || self.state.iter().any(state))
            && same(&self.device, "device")
            && self.port.is_none_or(|port| number(port, "port"))
            && self.peer.as_ref().is_none_or(peer)
            && self
                .qpn
                .is_none_or(|qpn| number(qpn, "local_qpn") || number(qpn, "remote_qpn"))
            && same(&self.owner, "owner")
    }
}

/// The states of the column `state`.
const STATES: [&str; 15] = [
    "IDLE",
    "REQ_SENT",
    "REQ_RCVD",
    "MRA_REQ_SENT",
    "MRA_REQ_RCVD",
    "REP_SENT",
    "REP_RCVD",
    "MRA_REP_SENT",
    "MRA_REP_RCVD",
    "ESTABLISHED",
    "DREQ_SENT",
    "DREQ_RCVD",
    "TIMEWAIT",
    "SIDR_REQ_SENT",
    "SIDR_REQ_RCVD",
];

fn parse_state(text: &str) -> Result<String, String> {
    let found = STATES.iter().find(|state| plain(state) == plain(text));
    found
        .map(|state| state.to_string())
        .ok_or_else(|| format!("choose one of {}", STATES.join(", ")))
}

/// A state's name in any spelling.
fn plain(state: &str) -> String {
    let letters = state.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    fn count(filter: Filter) -> usize {
        let table = Table::parse(crate::report::tests::CONNECTIONS).unwrap();
        table.rows().filter(|row| filter.takes(row)).count()
    }

    #[test]
    fn each_option() {
        let some = |text: &str| Some(text.to_string());
        let state = |text: &str| {
            text.split(',')
                .map(|word| parse_state(word).unwrap())
                .collect()
        };
        let none = Filter::default;
        assert_eq!(count(none()), 5);
        for (filter, matching) in [
            (
                Filter {
                    state: state("timewait"),
                    ..none()
                },
                1,
            ),
            (
                Filter {
                    state: state("req-sent"),
                    ..none()
                },
                1,
            ),
            (
                Filter {
                    state: state("REQ_RCVD"),
                    ..none()
                },
                1,
            ),
            (
                Filter {
                    state: state("sidr_req_sent"),
                    ..none()
                },
                0,
            ),
            (
                Filter {
                    state: state("timewait,idle"),
                    ..none()
                },
                2,
            ),
            (
                Filter {
                    device: some("rxe0"),
                    ..none()
                },
                4,
            ),
            (
                Filter {
                    port: Some(2),
                    ..none()
                },
                1,
            ),
            (
                Filter {
                    peer: some("10.0.0.2"),
                    ..none()
                },
                2,
            ),
            (
                Filter {
                    peer: some("::ffff:10.0.0.2"),
                    ..none()
                },
                2,
            ),
            (
                Filter {
                    qpn: Some(18),
                    ..none()
                },
                2,
            ),
            (
                Filter {
                    owner: some("none"),
                    ..none()
                },
                1,
            ),
            (
                Filter {
                    device: some("rxe0"),
                    state: state("timewait"),
                    ..none()
                },
                1,
            ),
        ] {
            assert_eq!(count(filter.clone()), matching, "{filter:?}");
        }
    }

    /// The module names its states itself; a program that does not know one would refuse it.
    #[test]
    fn states_are_those_of_the_module() {
        let source = include_str!("../../../rust/cm/debug/tables.rs");
        let names = source.split("const NAMES").nth(1).unwrap();
        let names = names.split("];").next().unwrap().split('"').skip(1);
        // Listeners have a table of their own.
        let names: Vec<_> = names.step_by(2).filter(|name| *name != "LISTEN").collect();
        assert_eq!(names, STATES);
    }

    #[test]
    fn no_such_state() {
        let error = parse_state("bogus").unwrap_err();
        assert!(error.starts_with("choose one of IDLE, REQ_SENT"), "{error}");
    }
}
