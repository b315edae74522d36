// SPDX-License-Identifier: GPL-2.0
//! What the fuzzer found interesting, once more.

use std::fs;
use std::path::Path;

fn replay(name: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files = 0;
    for file in fs::read_dir(&folder).expect("the corpus is there") {
        let path = file.expect("the corpus can be read").path();
        eprintln!("{}", path.display());
        check(&fs::read(&path).expect("the file can be read"));
        files += 1;
    }
    assert!(files > 20, "the corpus in {folder:?} is not whole");
}

#[test]
fn messages() {
    replay("messages", ib_cm_fuzz::messages::check);
}

#[test]
fn one_connection() {
    replay("connection", ib_cm_fuzz::connection::check);
}

#[test]
fn a_host() {
    replay("host", ib_cm_fuzz::host::check);
}
