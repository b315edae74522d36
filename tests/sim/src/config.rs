// SPDX-License-Identifier: GPL-2.0
//! What a seed draws: the size of the world, its times, and which faults it has at what rates.

use ib_cm_proto::time;

use crate::fx::Time;
use crate::rng::Rng;

/// Rates are out of 10,000.
#[derive(Clone, Debug)]
pub struct Config {
    /// Hosts.
    pub hosts: usize,
    /// Devices of each.
    pub devs: usize,
    /// Packet life time (IBA time).
    pub life: u8,
    /// Acknowledgement delay of the adapters (IBA time).
    pub ack_delay: u8,
    /// CM response timeout (IBA time).
    pub response: u8,
    /// Repetitions of a message.
    pub retries: u8,
    /// Sends of a port that may expect an answer at a time.
    pub window: usize,
    /// How long faults last.
    pub faulty: Time,
    /// Hosts begin with the same communication IDs after each boot.
    pub same_ids: bool,
    /// Whether a packet may overtake another.
    pub reorder: bool,
    /// MADs lost.
    pub loss: u32,
    /// MADs delivered twice.
    pub duplicate: u32,
    /// MADs delivered seconds late.
    pub late: u32,
    /// Completions that come late.
    pub completion_late: u32,
    /// Completions that never come.
    pub completion_lost: u32,
    /// Sends that fail.
    pub completion_failed: u32,
    /// Workers that take long to start.
    pub worker_slow: u32,
    /// Whether a MAD may take effect long after it was sent.
    pub overdue: bool,
    /// Whether what is to be sent is sent.
    pub sends_surely: bool,
    /// Allocations that fail.
    pub allocation_fails: u32,
    /// Processes that crash.
    pub crashes: u64,
    /// Hosts that lose their power.
    pub reboots: u64,
    /// Devices that go away.
    pub unplugs: u64,
    /// Pairs of hosts that cannot reach each other for a while.
    pub partitions: u64,
    /// Listeners that are destroyed and made again.
    pub relistens: u64,
    /// MADs that somebody forges.
    pub forgeries: u64,
    /// Processes of each host.
    pub processes: usize,
    /// Connections that a process tries to have at a time.
    pub connections: usize,
    /// Consumers that reject.
    pub rejects: u32,
    /// Consumers that ask for time.
    pub mras: u32,
    /// REQ handlers without memory.
    pub no_memory: u32,
    /// Handlers that return an error.
    pub errors: u32,
    /// Handlers that sleep.
    pub sleeps: u32,
    /// Consumers that take long.
    pub slow: u32,
    /// Consumers that never answer.
    pub ignores: u32,
    /// Identifiers destroyed at any time.
    pub destroys: u32,
    /// Identifiers used again.
    pub reuses: u32,
    /// Requests for a service that nobody offers.
    pub no_service: u32,
}

impl Config {
    /// Draws everything.
    pub fn draw(rng: &mut Rng) -> Self {
        // A fault that is always there hides what happens without it: each is off in half of the
        // worlds.
        let rate = |rng: &mut Rng, most: u64| {
            if rng.chance(5000) {
                0
            } else {
                rng.range(1, most) as u32
            }
        };
        let times = |rng: &mut Rng, most: u64| {
            if rng.chance(5000) {
                0
            } else {
                rng.range(1, most)
            }
        };
        let mut config = Config {
            hosts: if rng.chance(7000) { 2 } else { 3 },
            devs: if rng.chance(7500) { 1 } else { 2 },
            life: rng.range(8, 13) as u8,
            ack_delay: rng.range(4, 14) as u8,
            response: rng.range(10, 15) as u8,
            retries: rng.pick(&[0, 1, 2, 3, 4, 7, 15]),
            window: rng.pick(&[128, 128, 128, 1, 2, 4]),
            faulty: rng.range(300, 4000) * 1000,
            same_ids: rng.chance(5000),
            reorder: rng.chance(7000),
            loss: rate(rng, 3500),
            duplicate: rate(rng, 2500),
            late: rate(rng, 600),
            completion_late: rate(rng, 1500),
            completion_lost: rate(rng, 300),
            completion_failed: rate(rng, 500),
            worker_slow: rate(rng, 800),
            allocation_fails: rate(rng, 400),
            crashes: times(rng, 5),
            reboots: times(rng, 4),
            unplugs: times(rng, 3),
            partitions: times(rng, 3),
            relistens: times(rng, 4),
            forgeries: times(rng, 60),
            processes: rng.range(1, 2) as usize,
            connections: rng.range(1, 3) as usize,
            rejects: rate(rng, 2000),
            mras: rate(rng, 3000),
            no_memory: rate(rng, 1000),
            errors: rate(rng, 1000),
            sleeps: rate(rng, 2000),
            slow: rate(rng, 3000),
            ignores: rate(rng, 1000),
            destroys: rate(rng, 2000),
            reuses: rate(rng, 5000),
            no_service: rate(rng, 500),
            overdue: false,
            sends_surely: false,
        };
        config.sends_surely = config.allocation_fails == 0
            && config.completion_failed == 0
            && config.completion_lost == 0;
        config.overdue = config.late > 0 || config.worker_slow > 0;
        config
    }

    /// No more faults, and consumers that do at once what they should.
    pub fn calm(&mut self) {
        self.reorder = false;
        for rate in [
            &mut self.loss,
            &mut self.duplicate,
            &mut self.late,
            &mut self.completion_late,
            &mut self.completion_lost,
            &mut self.completion_failed,
            &mut self.worker_slow,
            &mut self.allocation_fails,
            &mut self.rejects,
            &mut self.mras,
            &mut self.no_memory,
            &mut self.errors,
            &mut self.sleeps,
            &mut self.slow,
            &mut self.ignores,
            &mut self.destroys,
            &mut self.no_service,
        ] {
            *rate = 0;
        }
    }

    /// The longest that a packet lives.
    pub fn life_us(&self) -> Time {
        time::ns_from_iba(self.life) / 1000
    }

    /// The shortest TimeWait that the specification allows: there and back.
    pub fn timewait_us(&self) -> Time {
        (1 << (self.life - 7)) * 1000
    }

    /// The longest that a message is repeated.
    pub fn patience_us(&self) -> Time {
        let timeout_ms = 2 * time::ms_from_iba(self.life) + time::ms_from_iba(self.response);
        Time::from(timeout_ms) * 1000 * (Time::from(self.retries) + 1)
    }

    /// How long a queue pair stays of which nobody knows when its TimeWait ends.
    pub fn linger_us(&self) -> Time {
        let longest = self.life.max(self.ack_delay) + 2;
        self.patience_us() + 2 * (time::ns_from_iba(longest) / 1000) + 3_000_000
    }
}
