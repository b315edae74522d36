// SPDX-License-Identifier: GPL-2.0
//! The end of all faults: every peer has to connect, and then everybody goes home.

use crate::apps::AppTask;
use crate::fx::Lid;
use crate::fx::Place;
use crate::fx::Uid;
use crate::rules::Rule;
use crate::say;
use crate::seen::Mark;
use crate::world::lid;
use crate::world::Phase;
use crate::world::World;

/// A peer that has to connect.
#[derive(Clone, Debug)]
pub struct Probe {
    from: Place,
    to: Lid,
    attempts: u32,
}

/// The most attempts that a peer may need once nothing goes wrong any more.
const MOST_ATTEMPTS: u32 = 40;

impl World {
    /// A probe has connected.
    pub(crate) fn probed(&mut self, probe: Uid) {
        if let Some(probe) = self.probes.remove(&probe) {
            let mark = if probe.attempts == 1 {
                Mark::ProbeFirst
            } else {
                Mark::ProbeLater
            };
            self.fx.seen.mark(mark);
            self.most_attempts = self.most_attempts.max(probe.attempts);
            if self.probes.is_empty() {
                let linger = self.config.linger_us();
                self.fx.after(linger, AppTask::Closing);
            }
        }
    }

    /// From now on nothing goes wrong: every device has to reach every other.
    pub(crate) fn calm(&mut self) {
        self.phase = Phase::Calm;
        self.config.calm();
        self.fx.allocation_fails = 0;
        self.partitions.clear();
        self.find_completions();
        // Whatever is down comes up within its time.
        let settle = self.fx.rng.range(0, 50) * self.config.life_us() * 2;
        for host in 0..self.config.hosts {
            for far in (0..self.config.hosts).filter(|far| *far != host) {
                let uid = self.fx.uid();
                let from = Place {
                    host,
                    dev: self.fx.rng.below(self.config.devs as u64) as usize,
                };
                let to = lid(far, self.fx.rng.below(self.config.devs as u64) as usize);
                let attempts = 0;
                self.probes.insert(uid, Probe { from, to, attempts });
                self.fx.after(settle, AppTask::Probe(uid));
            }
        }
        for host in 0..self.config.hosts {
            for dev in 0..self.config.devs {
                self.relisten(host, dev);
            }
        }
    }

    /// A probe tries to connect.
    pub(crate) fn probe(&mut self, number: Uid) {
        let Some(probe) = self.probes.get(&number).cloned() else {
            return;
        };
        let at = probe.from;
        let far = crate::world::place(probe.to);
        let ready = |host: &crate::world::Host, dev: usize| {
            host.up && host.cm.devs[dev].open && host.procs.values().any(|process| process.alive)
        };
        if !ready(&self.hosts[at.host], at.dev) || !ready(&self.hosts[far.host], far.dev) {
            self.fx.after(100_000, AppTask::Probe(number));
            return;
        }
        self.relisten(far.host, far.dev);
        if let Some(probe) = self.probes.get_mut(&number) {
            probe.attempts += 1;
            if probe.attempts > MOST_ATTEMPTS {
                let what = format!("{MOST_ATTEMPTS} attempts do not connect: {probe:?}");
                self.fx.broken(Rule::PeersConnect, what);
                return;
            }
        }
        let procs = &self.hosts[at.host].procs;
        let Some(pid) = procs
            .iter()
            .find(|(_, process)| process.alive)
            .map(|(pid, _)| *pid)
        else {
            return;
        };
        let Some(uid) = self.hosts[at.host].cm.create(at.dev, &mut self.fx) else {
            return;
        };
        say!(
            self.fx,
            "probe {number} attempts to connect from host {} by {uid}",
            at.host
        );
        self.track(at.host, uid, pid, at.dev, true);
        if let Some(conn) = self.hosts[at.host].conns.get_mut(&uid) {
            (conn.probe, conn.uses) = (Some(number), 0);
        }
        self.request(at.host, uid, probe.to);
    }

    /// Everybody goes home.
    pub(crate) fn closing(&mut self) {
        self.phase = Phase::Closing;
        for host in 0..self.hosts.len() {
            let pids: Vec<Uid> = self.hosts[host].procs.keys().copied().collect();
            for pid in pids {
                if self.hosts[host]
                    .procs
                    .get(&pid)
                    .is_some_and(|process| process.alive)
                {
                    self.exit(host, pid);
                }
            }
        }
    }
}
