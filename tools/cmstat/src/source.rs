// SPDX-License-Identifier: GPL-2.0
//! Where the numbers come from, and what to do when they do not come.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::table::Table;

/// Why nothing can be shown. Each is one sentence: what is wrong and what to do.
#[derive(Debug)]
pub enum Trouble {
    /// There is no ib_cm.
    NotLoaded,
    /// There is another one.
    CModule,
    /// Debugfs is not there.
    NotMounted,
    /// Debugfs is there, and not for this user.
    NotRoot,
    /// Debugfs is there, and has nothing of the module.
    NotShown,
    /// The module shows less than this program wants.
    Older(&'static str),
    /// A file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// A table has a line that does not fit its columns.
    Malformed(&'static str),
    /// There is no such identifier.
    UnknownId(u32),
    /// The output cannot be written.
    Output(io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NotLoaded => f.write_str("ib_cm is not loaded: run 'modprobe ib_cm'"),
            Trouble::CModule => f.write_str(
                "the ib_cm that is loaded is the C module, which shows nothing of its connections: \
                 install this project's module, unload the other one, or boot, and run 'modprobe ib_cm'",
            ),
            Trouble::NotMounted => f.write_str(
                "debugfs is not mounted: run 'mount -t debugfs none /sys/kernel/debug'",
            ),
            Trouble::NotRoot => f.write_str("debugfs is for root only: run this as root"),
            Trouble::NotShown => f.write_str(
                "debugfs has no folder ib_cm: boot a kernel with CONFIG_DEBUG_FS=y and without \
                 debugfs=off",
            ),
            Trouble::Older(name) => write!(
                f,
                "the ib_cm that is loaded has no table '{name}': install the module that came \
                 with this cmstat and load it again"
            ),
            Trouble::Unreadable(path, error) => {
                write!(
                    f,
                    "{} cannot be read ({error}): look for the cause in 'dmesg'",
                    path.display()
                )
            }
            Trouble::Malformed(name) => write!(
                f,
                "the table '{name}' has a line that does not fit its columns: install the cmstat \
                 that came with the module"
            ),
            Trouble::UnknownId(id) => write!(
                f,
                "there is no id {id}, nor is one remembered: choose one of 'cmstat list', or let \
                 the module remember more with 'echo 4096 >/sys/module/ib_cm/parameters/history'"
            ),
            Trouble::Output(error) => {
                write!(f, "the output cannot be written ({error}): give it a place")
            }
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Output(error)
    }
}

/// The module's files.
pub struct Source {
    root: PathBuf,
    debug: PathBuf,
}

impl Source {
    /// Finds the module's files below `root`.
    pub fn open(root: &Path) -> Result<Self, Trouble> {
        let module = root.join("sys/module/ib_cm");
        if !module.exists() {
            return Err(Trouble::NotLoaded);
        }
        if !module.join("parameters/hold_max_ms").exists() {
            return Err(Trouble::CModule);
        }
        let debug = root.join("sys/kernel/debug/ib_cm");
        match fs::read_dir(&debug) {
            Ok(_) => Ok(Source {
                root: root.to_path_buf(),
                debug,
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Trouble::NotRoot),
            Err(_) if !is_mounted(root) => Err(Trouble::NotMounted),
            Err(_) => Err(Trouble::NotShown),
        }
    }

    fn read(&self, name: &'static str) -> Result<String, Trouble> {
        let path = self.debug.join(name);
        fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Trouble::Older(name),
            io::ErrorKind::PermissionDenied => Trouble::NotRoot,
            _ => Trouble::Unreadable(path, error),
        })
    }

    /// A table with columns.
    pub fn table(&self, name: &'static str) -> Result<Table, Trouble> {
        Table::parse(&self.read(name)?).ok_or(Trouble::Malformed(name))
    }

    /// The counts, by name.
    pub fn stats(&self) -> Result<BTreeMap<String, u64>, Trouble> {
        let text = self.read("stats")?;
        let count = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_string(), value.parse().ok()?))
        };
        text.lines()
            .map(|line| count(line).ok_or(Trouble::Malformed("stats")))
            .collect()
    }

    /// For how many identifiers changes of state are remembered.
    pub fn history(&self) -> u64 {
        let path = self.root.join("sys/module/ib_cm/parameters/history");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// How many messages all ports have sent and received.
    pub fn messages(&self) -> Messages {
        Messages {
            sent: self.sum("cm_tx_msgs"),
            sent_again: self.sum("cm_tx_retries"),
            received: self.sum("cm_rx_msgs"),
            received_again: self.sum("cm_rx_duplicates"),
        }
    }

    fn sum(&self, group: &str) -> u64 {
        let entries = |path: PathBuf| {
            let entries = fs::read_dir(path).into_iter().flatten();
            entries.filter_map(|entry| Some(entry.ok()?.path()))
        };
        entries(self.root.join("sys/class/infiniband"))
            .flat_map(|device| entries(device.join("ports")))
            .flat_map(|port| entries(port.join(group)))
            .filter_map(|counter| fs::read_to_string(counter).ok()?.trim().parse::<u64>().ok())
            .sum()
    }
}

/// Numbers of messages since the devices were added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Messages {
    pub sent: u64,
    pub sent_again: u64,
    pub received: u64,
    pub received_again: u64,
}

fn is_mounted(root: &Path) -> bool {
    let mounts = fs::read_to_string(root.join("proc/mounts")).unwrap_or_default();
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        words.next() == Some("/sys/kernel/debug") && words.next() == Some("debugfs")
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A folder that looks like a machine, removed in the end.
    pub struct Machine(PathBuf);

    impl Machine {
        /// `name` tells those of different tests apart.
        pub fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("cmstat-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Machine(folder)
        }

        pub fn root(&self) -> &Path {
            &self.0
        }

        pub fn file(&self, path: &str, text: &str) -> &Self {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        /// With the module, and these tables.
        pub fn with_tables(&self, tables: &[(&str, &str)]) -> Source {
            self.file("sys/module/ib_cm/parameters/hold_max_ms", "10000\n");
            for (name, text) in tables {
                self.file(&format!("sys/kernel/debug/ib_cm/{name}"), text);
            }
            Source::open(self.root()).unwrap()
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn trouble(machine: &Machine) -> String {
        match Source::open(machine.root()) {
            Ok(_) => String::new(),
            Err(trouble) => trouble.to_string(),
        }
    }

    #[test]
    fn says_what_is_missing() {
        let machine = Machine::new("missing");
        assert!(trouble(&machine).starts_with("ib_cm is not loaded: "));
        machine.file("sys/module/ib_cm/refcnt", "0\n");
        assert!(trouble(&machine).contains("is the C module"));
        machine.file("sys/module/ib_cm/parameters/hold_max_ms", "10000\n");
        assert!(trouble(&machine).starts_with("debugfs is not mounted: "));
        machine.file(
            "proc/mounts",
            "sysfs /sys sysfs rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n",
        );
        assert!(trouble(&machine).starts_with("debugfs has no folder ib_cm: "));
        machine.file("sys/kernel/debug/ib_cm/live", "0\n");
        let source = Source::open(machine.root()).unwrap();
        let text = source.table("connections").err().unwrap().to_string();
        assert!(text.contains("has no table 'connections'"), "{text}");
    }

    #[test]
    fn counts() {
        let machine = Machine::new("counts");
        let source = machine.with_tables(&[("stats", "ids 3\nholds_taken 1\n")]);
        assert_eq!(source.stats().unwrap()["holds_taken"], 1);
        machine
            .file("sys/class/infiniband/a/ports/1/cm_tx_msgs/req", "3\n")
            .file("sys/class/infiniband/b/ports/2/cm_tx_msgs/rep", "4\n");
        assert_eq!(source.messages().sent, 7);
        assert_eq!(source.messages().received, 0);
        machine.file("sys/kernel/debug/ib_cm/stats", "ids many\n");
        assert!(matches!(source.stats(), Err(Trouble::Malformed("stats"))));
    }
}
