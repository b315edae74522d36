// SPDX-License-Identifier: GPL-2.0
//! `cmstat`: what the connection manager does, and what a connection waits for.
//!
//! It reads the tables that the module shows in debugfs. `Documentation/cmstat.rst` is for users.

mod explain;
mod filter;
mod json;
mod output;
mod report;
mod source;
mod summary;
mod table;
mod watch;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use filter::Filter;
use output::Output;
use source::{Source, Trouble};

#[derive(Parser)]
#[command(
    version,
    about = "Shows what the InfiniBand connection manager does",
    after_help = "It needs root, and the ib_cm that it came with. States and ids are explained in \
                  cmstat.rst of the documentation."
)]
struct Cli {
    /// Print JSON, one document (watch: one a line)
    #[arg(long, global = true)]
    json: bool,
    /// Where sysfs and procfs are, for tests
    #[arg(long, global = true, hide = true, default_value = "/")]
    root: PathBuf,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Numbers of connections by state and device, and what is stuck (the default)
    Summary(After),
    /// Connections, one a line
    List(Filter),
    /// Listeners, one a line
    Listeners,
    /// Queue pairs in TimeWait that are kept from destruction, and by which process
    Holds,
    /// Connections that have waited for long, and for what
    Stuck(After),
    /// The summary and the oldest waits, again and again, until Ctrl-C
    Watch(Watch),
    /// The last change of each id, also of those that are gone
    History,
    /// What one connection waits for, and how it came there
    Why {
        /// Local communication ID, decimal or 0x...
        #[arg(value_parser = parse_id)]
        id: u32,
    },
}

#[derive(Args, Clone, Copy)]
struct After {
    /// Seconds that a wait may take before it counts as stuck
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    after: f64,
}

#[derive(Args, Clone, Copy)]
struct Watch {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Stop after so many looks
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    #[command(flatten)]
    after: After,
}

fn parse_id(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "give the number in the column local_id of 'cmstat list'".to_string())
}

fn run(cli: &Cli) -> Result<(), Trouble> {
    let source = Source::open(&cli.root)?;
    let mut output = Output::new(io::stdout().lock(), cli.json);
    match cli
        .command
        .as_ref()
        .unwrap_or(&Command::Summary(After { after: 10.0 }))
    {
        Command::Summary(After { after }) => report::summary(&source, *after, &mut output),
        Command::List(filter) => report::list(&source, filter, &mut output),
        Command::Listeners => report::listeners(&source, &mut output),
        Command::Holds => report::holds(&source, &mut output),
        Command::Stuck(After { after }) => report::stuck(&source, *after, &mut output),
        Command::History => report::history(&source, &mut output),
        Command::Watch(options) => watch::run(&source, options, &mut output),
        Command::Why { id } => report::why(&source, *id, &mut output),
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(Trouble::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            eprintln!("cmstat: {trouble}");
            ExitCode::FAILURE
        }
    }
}
