// SPDX-License-Identifier: GPL-2.0
//! The state machine as a table that people can read and judge: `table/*.txt`.
//!
//! The left part of each line comes from the code, the source behind the semicolon from a person.
//! `table/rules.txt` explains both.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use ib_cm_proto_tests::connections::chapters;
use ib_cm_proto_tests::connections::Chapter;
use ib_cm_proto_tests::inputs::EVENTS;
use ib_cm_proto_tests::notation::Cell;

const HEAD: &str = "\
# SPDX-License-Identifier: GPL-2.0
# input, next state, what is done; where that comes from. See rules.txt.
";

/// What stands where a person has to write the source.
const UNKNOWN: &str = "?";

/// Section and input.
type Place = (String, String);

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("table")
}

/// The content of a file; none if there is no such file yet.
fn read(file: &str) -> String {
    fs::read_to_string(folder().join(file)).unwrap_or_default()
}

/// The sources that a file of the table gives.
fn sources(text: &str) -> BTreeMap<Place, String> {
    let mut section = "";
    let mut sources = BTreeMap::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            section = title.split([',', ':']).next().unwrap_or(title);
        } else if let Some((left, source)) = line.split_once(" ; ") {
            // The name of an input may hold spaces, but not two in a row.
            let input = left.split("  ").next().unwrap_or(left);
            sources.insert(
                (section.to_owned(), input.to_owned()),
                source.trim().to_owned(),
            );
        }
    }
    sources
}

/// A chapter as the code has it, with the sources of the file as it is.
fn render(chapter: &Chapter) -> String {
    let sources = sources(&read(chapter.file));
    let mut text = HEAD.to_owned();
    for specimen in &chapter.specimens {
        let like = specimen.like.map(|name| {
            let same = chapter.specimens.iter().find(|other| other.name == name);
            same.expect("it is in the same chapter").conn
        });
        let title = match specimen.like {
            Some(name) => format!("{}, else like {name}", specimen.name),
            None => specimen.name.to_owned(),
        };
        writeln!(text, "\n== {title}: {}", specimen.about).unwrap();
        for (input, event) in EVENTS {
            let cell = Cell::of(&specimen.conn, event);
            if like.is_some_and(|like| Cell::of(&like, event) == cell) {
                continue;
            }
            let Cell { next, actions } = cell;
            let place = (specimen.name.to_owned(), input.to_owned());
            let source = sources.get(&place).map_or(UNKNOWN, String::as_str);
            writeln!(text, "{input:18} {next:15} {actions:13} ; {source}").unwrap();
        }
    }
    text
}

/// The lines that two texts do not share.
fn difference(old: &str, new: &str) -> String {
    let mut text = String::new();
    let mut section = "";
    let known: BTreeSet<_> = with_sections(old).collect();
    let wanted: BTreeSet<_> = with_sections(new).collect();
    let both = known.symmetric_difference(&wanted);
    for (title, line) in both {
        if *title != section {
            section = title;
            writeln!(text, "  {title}").unwrap();
        }
        let sign = if known.contains(&(*title, *line)) {
            '-'
        } else {
            '+'
        };
        writeln!(text, "{sign} {line}").unwrap();
    }
    text
}

/// The lines of a text, each with the title of its section.
fn with_sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut section = "";
    text.lines().map(move |line| {
        if line.starts_with("== ") {
            section = line;
        }
        (section, line)
    })
}

#[test]
fn the_code_does_what_the_table_says() {
    let update = env::var_os("UPDATE").is_some();
    let mut differences = String::new();
    for chapter in chapters() {
        let (old, new) = (read(chapter.file), render(&chapter));
        if old == new {
            continue;
        }
        if update {
            fs::write(folder().join(chapter.file), &new).expect("the table can be written");
        } else {
            writeln!(differences, "{}:\n{}", chapter.file, difference(&old, &new)).unwrap();
        }
    }
    assert!(
        differences.is_empty(),
        "\nthe code (+) is not what the table says (-); correct the code, or accept it by\n\
         scripts/enter env UPDATE=1 cargo test -p ib_cm_proto_tests --test table\n\
         and write the source of each new line behind its semicolon:\n\n{differences}"
    );
}

/// The rules, and the reasons why something cannot happen.
fn rules() -> BTreeSet<String> {
    read("rules.txt")
        .lines()
        .filter(|line| line.starts_with("rule ") || line.starts_with("unreachable "))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// The kernel's own connection manager, if its source is at hand.
fn cm_c() -> Option<String> {
    let source = PathBuf::from(env::var_os("IB_CM_KERNEL_SOURCE")?);
    fs::read_to_string(source.join("drivers/infiniband/core/cm.c")).ok()
}

#[test]
fn every_line_has_a_source() {
    let rules = rules();
    let cm_c = cm_c();
    let mut cited = BTreeSet::new();
    let mut complaints = String::new();
    for chapter in chapters() {
        for ((section, input), source) in sources(&read(chapter.file)) {
            let valid = source.split(", ").all(|part| {
                cited.insert(part.to_owned());
                rules.contains(part)
                    || part.starts_with("IBA 12.")
                    || is_function(part, cm_c.as_deref())
            });
            if !valid {
                writeln!(complaints, "{section}, {input}: {source}").unwrap();
            }
        }
    }
    for name in rules.difference(&cited) {
        writeln!(complaints, "rules.txt: no line cites \"{name}\"").unwrap();
    }
    assert!(
        complaints.is_empty(),
        "write a source that rules.txt allows:\n{complaints}"
    );
}

/// Whether `cm.c` has a function of this name; without its source, whether it could have.
fn is_function(name: &str, cm_c: Option<&str>) -> bool {
    let prefixed = name.starts_with("cm_") || name.starts_with("ib_");
    prefixed && cm_c.is_none_or(|text| text.contains(&format!("{name}(")))
}

#[test]
fn names_say_what_the_specimens_are() {
    for chapter in chapters() {
        for specimen in chapter.specimens {
            let derived = ib_cm_proto_tests::notation::state(&specimen.conn);
            // What no method tells apart is named in the list only.
            let named = specimen
                .name
                .trim_end_matches("+last")
                .trim_end_matches("+xrc");
            assert_eq!(named, derived);
        }
    }
}
