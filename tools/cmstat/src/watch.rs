// SPDX-License-Identifier: GPL-2.0
//! `cmstat watch`: the summary, rates, and the oldest waits, again and again.

use std::io::{IsTerminal, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::explain::age;
use crate::json::Value;
use crate::output::Output;
use crate::report::{oldest_first, LIST};
use crate::source::{Messages, Source, Trouble};
use crate::summary::Summary;
use crate::Watch;

/// Waits that are shown.
const WAITS: usize = 15;

/// Clears the terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Messages a second between two looks.
fn rates(before: Messages, now: Messages, seconds: f64) -> [(&'static str, u64); 4] {
    let rate = |before: u64, now: u64| (now.saturating_sub(before) as f64 / seconds).round() as u64;
    [
        ("sent", rate(before.sent, now.sent)),
        ("sent_again", rate(before.sent_again, now.sent_again)),
        ("received", rate(before.received, now.received)),
        (
            "received_again",
            rate(before.received_again, now.received_again),
        ),
    ]
}

/// Looks again and again.
pub fn run<W: Write>(
    source: &Source,
    options: &Watch,
    output: &mut Output<W>,
) -> Result<(), Trouble> {
    let interval = Duration::try_from_secs_f64(options.interval.max(0.1)).unwrap_or(Duration::MAX);
    let is_terminal = std::io::stdout().is_terminal();
    let mut before = (Instant::now(), source.messages());
    let mut looks = 0;
    while options.count.is_none_or(|count| looks < count) {
        if looks > 0 {
            sleep(interval);
        }
        looks += 1;
        let summary = Summary::take(source, options.after.after)?;
        let now = (Instant::now(), source.messages());
        let seconds = now.0.duration_since(before.0).as_secs_f64().max(0.001);
        let rates = rates(before.1, now.1, seconds);
        before = now;
        if output.json {
            let rates = rates.map(|(name, rate)| (name, rate.into()));
            output.value(&Value::object([
                ("summary", summary.to_json()),
                ("messages_per_s", Value::object(rates)),
            ]))?;
        } else {
            if is_terminal {
                output.line(CLEAR)?;
            }
            show(&summary, &rates, output)?;
        }
        output.flush()?;
    }
    Ok(())
}

fn show<W: Write>(
    summary: &Summary,
    rates: &[(&str, u64)],
    output: &mut Output<W>,
) -> Result<(), Trouble> {
    for line in summary.lines() {
        output.line(&line)?;
    }
    let rates: Vec<_> = rates
        .iter()
        .map(|(name, rate)| format!("{rate} {}", name.replace('_', " ")))
        .collect();
    output.line(&format!("messages/s   {}", rates.join(", ")))?;
    let waiting = summary
        .connections
        .rows()
        .filter(|row| row.get("waits") != "-" && age(row) > 0.0);
    let oldest = oldest_first(waiting);
    if !oldest.is_empty() {
        output.line("")?;
        output.rows(oldest.into_iter().take(WAITS), &LIST)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{machine, printed};
    use crate::After;

    #[test]
    fn looks() {
        let (_machine, source) = machine("watch");
        let options = Watch {
            interval: 0.0,
            count: Some(2),
            after: After { after: 10.0 },
        };
        let text = printed(false, |output| run(&source, &options, output));
        assert_eq!(
            text.matches("messages/s   0 sent, 0 sent again").count(),
            2,
            "{text}"
        );
        let waits: Vec<_> = text
            .lines()
            .filter(|line| line.contains("peer:rep"))
            .collect();
        assert_eq!(waits.len(), 2);
        let text = printed(true, |output| run(&source, &options, output));
        assert_eq!(text.lines().count(), 2);
        assert!(text.starts_with("{\"summary\":{\"connections\":"), "{text}");
    }

    #[test]
    fn rates_are_of_what_was_added() {
        let before = Messages {
            sent: 100,
            received: 7,
            ..Messages::default()
        };
        let now = Messages {
            sent: 120,
            received: 7,
            sent_again: 1,
            ..Messages::default()
        };
        assert_eq!(
            rates(before, now, 2.0),
            [
                ("sent", 10),
                ("sent_again", 1),
                ("received", 0),
                ("received_again", 0)
            ]
        );
        // A device that goes takes its counters along.
        assert_eq!(rates(now, Messages::default(), 1.0)[0], ("sent", 0));
    }
}
