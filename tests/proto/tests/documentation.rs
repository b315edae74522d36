// SPDX-License-Identifier: GPL-2.0
//! The tests that `Documentation/testing.rst` names exist, and each of its rows names some.

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// All text of the files below a folder with one of these endings.
fn text_of(folder: &str, endings: &[&str]) -> String {
    let mut text = String::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if endings
                .iter()
                .any(|ending| path.to_string_lossy().ends_with(ending))
            {
                text += &fs::read_to_string(&path).expect("the file can be read");
            }
        }
    }
    text
}

#[test]
fn each_failure_has_tests_that_exist() {
    let document = fs::read_to_string(root().join("Documentation/testing.rst"))
        .expect("the documentation is there");
    let table = document
        .split("What goes wrong, and what would show it\n")
        .nth(1)
        .expect("the table is there");
    let rust = text_of("tests", &[".rs"]) + &text_of("rust/proto", &[".rs"]);
    let api = text_of("tests/api", &[".c"]);
    let mutants = text_of("tests/sim", &["mutants.sh"]);
    let mut rows = 0;
    let mut named = 0;
    let mut missing = Vec::new();
    for line in table.lines() {
        let line = line.trim_start();
        if line.starts_with("* - ") {
            rows += 1;
        }
        let line = line.trim_start_matches("- ");
        let Some((kind, names)) = line
            .strip_prefix("| ")
            .and_then(|line| line.split_once(": "))
        else {
            continue;
        };
        for name in names.split("; ") {
            let there = match kind {
                "host" => rust.contains(&format!("fn {name}(")),
                "counter" => rust.contains(&format!("\"{name}\"")),
                "mutant" => mutants.contains(&format!(" {name} ")),
                "case" => api.contains(&format!("\"{name}\"")),
                "guest" => root()
                    .join(format!("tests/vm/scenarios/{name}.sh"))
                    .exists(),
                _ => false,
            };
            named += 1;
            if !there {
                missing.push(format!("{kind}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "there is no {missing:?}");
    assert!(rows > 20 && named > 2 * rows, "{rows} rows, {named} names");
}
