// SPDX-License-Identifier: GPL-2.0
//! The protocol crate must not be able to panic: in the kernel a panic is a crash.
//!
//! The ways to panic have many names in `core`, and new ones with each release. So the object may
//! refer to nothing outside of itself but the few symbols that are known not to panic.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::process::Command;

/// What the compiler takes for granted.
const HARMLESS: [&str; 6] = [
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "bcmp",
    "_GLOBAL_OFFSET_TABLE_",
];

/// Whether the symbol is of `core::fmt`, which implementations of `Debug` call.
fn is_formatting(symbol: &str) -> bool {
    symbol.contains("4core3fmt") || symbol.contains("core..fmt..")
}

/// Compiles the protocol crate as the kernel does, with overflow checks on, and returns where its
/// object refers to what might panic: the section, one a function, and the symbol.
fn might_panic(name: &str, options: &[&str]) -> BTreeSet<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rust/ib_cm_proto.rs");
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let object = object.to_str().expect("the path is UTF-8");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let mut compiler = Command::new(rustc);
    compiler
        .args([
            "--crate-type=lib",
            "--edition=2021",
            "--emit=obj",
            "--cfg=MODULE",
        ])
        .args(["-Copt-level=2", "-Coverflow-checks=on", "-Cpanic=abort"])
        .args(options)
        .args(["-o", object])
        .arg(root);
    output_of(&mut compiler);

    let undefined = output_of(Command::new("nm").args(["--undefined-only", object]));
    let suspects: BTreeSet<_> = undefined
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|symbol| !HARMLESS.contains(symbol) && !is_formatting(symbol))
        .collect();

    let relocations = output_of(Command::new("readelf").args(["--relocs", "--wide", object]));
    let mut references = BTreeSet::new();
    let mut section = "";
    for line in relocations.lines() {
        if let Some(title) = line.strip_prefix("Relocation section '") {
            section = title.split('\'').next().unwrap_or(title);
        }
        for word in line
            .split_whitespace()
            .filter(|word| suspects.contains(word))
        {
            references.insert((section.to_owned(), word.to_owned()));
        }
    }
    assert!(!section.is_empty(), "there is code in {object}");
    let found = references.iter().map(|(_, symbol)| symbol.as_str());
    assert_eq!(
        found.collect::<BTreeSet<_>>(),
        suspects,
        "readelf and nm agree"
    );
    references
}

fn output_of(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("symbols are ASCII")
}

#[test]
fn the_object_cannot_panic() {
    assert_eq!(might_panic("module.o", &[]), BTreeSet::new());
}

#[test]
fn functions_that_the_object_inlines_or_leaves_out_cannot_panic() {
    let mut references = might_panic("whole.o", &["-Clink-dead-code"]);
    // Comes with every `derive(Ord)`; a function that called it would be in the list itself.
    references.retain(|(section, _)| !section.contains("3cmp3Ord5clamp"));
    assert_eq!(references, BTreeSet::new());
}
