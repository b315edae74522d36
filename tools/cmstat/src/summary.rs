// SPDX-License-Identifier: GPL-2.0
//! The numbers that tell how things are.

use std::collections::BTreeMap;

use crate::explain::is_stuck;
use crate::json::Value;
use crate::source::{Source, Trouble};
use crate::table::Table;

/// Numbers at one time.
pub struct Summary {
    /// Connections by device, then by state.
    pub states: BTreeMap<String, BTreeMap<String, u64>>,
    /// Listeners by device.
    pub listeners: BTreeMap<String, u64>,
    /// The module's own counts.
    pub stats: BTreeMap<String, u64>,
    pub holds: u64,
    pub stuck: u64,
    /// For later use: the rows that were counted.
    pub connections: Table,
}

impl Summary {
    /// Takes the numbers; what has waited for `after` seconds counts as stuck.
    pub fn take(source: &Source, after: f64) -> Result<Self, Trouble> {
        let connections = source.table("connections")?;
        let mut states: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        let mut stuck = 0;
        for row in connections.rows() {
            let device = states.entry(row.get("device").to_string()).or_default();
            *device.entry(row.get("state").to_string()).or_default() += 1;
            stuck += u64::from(is_stuck(&row, after));
        }
        let mut listeners = BTreeMap::new();
        for row in source.table("listeners")?.rows() {
            *listeners.entry(row.get("device").to_string()).or_default() += 1;
        }
        Ok(Summary {
            states,
            listeners,
            stats: source.stats()?,
            holds: source.table("holds")?.rows().count() as u64,
            stuck,
            connections,
        })
    }

    fn stat(&self, name: &str) -> u64 {
        self.stats.get(name).copied().unwrap_or(0)
    }

    /// How many connections are in each state, on all devices.
    fn by_state(&self) -> BTreeMap<&str, u64> {
        let mut sums = BTreeMap::new();
        for (state, number) in self.states.values().flatten() {
            *sums.entry(state.as_str()).or_default() += number;
        }
        sums
    }

    pub fn to_json(&self) -> Value {
        let numbers = |map: &BTreeMap<String, u64>| {
            Value::object(map.iter().map(|(name, number)| (name, (*number).into())))
        };
        let devices = self
            .states
            .iter()
            .map(|(device, states)| (device, numbers(states)));
        Value::object([
            ("connections", Value::object(devices)),
            ("listeners", numbers(&self.listeners)),
            ("stats", numbers(&self.stats)),
            ("holds", self.holds.into()),
            ("stuck", self.stuck.into()),
        ])
    }

    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let states = |states: &mut dyn Iterator<Item = (&str, u64)>| {
            let words: Vec<_> = states
                .map(|(state, number)| format!("{number} {state}"))
                .collect();
            if words.is_empty() {
                "none".to_string()
            } else {
                words.join(", ")
            }
        };
        let mut lines = vec![
            format!("ids          {}", self.stat("ids")),
            format!("connections  {}", states(&mut self.by_state().into_iter())),
        ];
        if self.states.len() > 1 {
            for (device, of_device) in &self.states {
                let mut of_device = of_device
                    .iter()
                    .map(|(state, number)| (state.as_str(), *number));
                lines.push(format!("  {device}: {}", states(&mut of_device)));
            }
        }
        lines.push(format!(
            "listeners    {}",
            self.listeners.values().sum::<u64>()
        ));
        lines.push(format!(
            "holds        {} now; {} so far, {} of them to the end of TimeWait, {} given up",
            self.holds,
            self.stat("holds_taken"),
            self.stat("holds_released"),
            self.stat("holds_expired"),
        ));
        lines.push(match self.stuck {
            0 => "stuck        none".to_string(),
            stuck => format!("stuck        {stuck}, see 'cmstat stuck'"),
        });
        lines
    }
}
