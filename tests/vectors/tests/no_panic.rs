// SPDX-License-Identifier: GPL-2.0
//! The protocol crate must not be able to panic: in the kernel a panic is a crash.

use std::env;
use std::path::Path;
use std::process::Command;

/// Compiles the protocol crate as the kernel does, with overflow checks on, and returns the
/// sections of the object, one a function, that refer to a panic.
fn sections_that_panic(name: &str, options: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rust/ib_cm_proto.rs");
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let compiler = Command::new(rustc)
        .args([
            "--crate-type=lib",
            "--edition=2021",
            "--emit=obj",
            "--cfg=MODULE",
        ])
        .args(["-Copt-level=2", "-Coverflow-checks=on", "-Cpanic=abort"])
        .args(options)
        .arg("-o")
        .arg(&object)
        .arg(root)
        .output()
        .expect("rustc can be run");
    let errors = String::from_utf8_lossy(&compiler.stderr);
    assert!(compiler.status.success(), "{errors}");

    let readelf = Command::new("readelf")
        .args(["--relocs", "--wide"])
        .arg(&object)
        .output()
        .expect("readelf can be run");
    assert!(
        readelf.status.success(),
        "readelf cannot read {}",
        object.display()
    );
    let relocations = String::from_utf8(readelf.stdout).expect("symbols are ASCII");

    let mut sections = Vec::new();
    let mut section = "";
    for line in relocations.lines() {
        if let Some(title) = line.strip_prefix("Relocation section '") {
            section = title.split('\'').next().unwrap_or(title);
        } else if line.contains("panic") && sections.last().is_none_or(|last| last != section) {
            sections.push(section.to_owned());
        }
    }
    assert!(!section.is_empty(), "there is code in {}", object.display());
    sections
}

#[test]
fn the_object_refers_to_no_panic() {
    assert_eq!(sections_that_panic("module.o", &[]), [""; 0]);
}

#[test]
fn functions_that_the_object_inlines_or_leaves_out_refer_to_no_panic() {
    let mut sections = sections_that_panic("whole.o", &["-Clink-dead-code"]);
    // Comes with every `derive(Ord)`; a function that called it would be in the list.
    sections.retain(|section| !section.contains("3cmp3Ord5clamp"));
    assert_eq!(sections, [""; 0]);
}
