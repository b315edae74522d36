// SPDX-License-Identifier: GPL-2.0
//! Printing: aligned text, or JSON.

use std::io;
use std::io::Write;

use crate::json::Value;
use crate::table::Row;

/// Where it goes, and how.
pub struct Output<W> {
    to: W,
    pub json: bool,
}

impl<W: Write> Output<W> {
    pub fn new(to: W, json: bool) -> Self {
        Output { to, json }
    }

    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.to, "{text}")
    }

    pub fn value(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.to, "{value}")
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Lines of words, each column as wide as its widest word.
    pub fn grid(&mut self, lines: &[Vec<String>]) -> io::Result<()> {
        let mut widths = Vec::new();
        for line in lines {
            widths.resize(widths.len().max(line.len()), 0);
            for (width, word) in widths.iter_mut().zip(line) {
                *width = word.chars().count().max(*width);
            }
        }
        for line in lines {
            let mut text = String::new();
            for (width, word) in widths.iter().zip(line) {
                text += &format!("{word:width$}  ");
            }
            self.line(text.trim_end())?;
        }
        Ok(())
    }

    /// Rows: all columns as JSON, some as text.
    pub fn rows<'a>(
        &mut self,
        rows: impl Iterator<Item = Row<'a>>,
        columns: &[&str],
    ) -> io::Result<()> {
        if self.json {
            return self.value(&Value::list(rows.map(Row::to_json)));
        }
        let mut lines = vec![columns.iter().map(|name| name.to_string()).collect()];
        lines.extend(rows.map(|row| {
            let word = |name: &&str| row.get(name).to_string();
            columns.iter().map(word).collect::<Vec<_>>()
        }));
        self.grid(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    #[test]
    fn columns_are_aligned() {
        let table = Table::parse("a b c\n1 long x\n22 s y\n").unwrap();
        let mut output = Output::new(Vec::new(), false);
        output.rows(table.rows(), &["a", "b"]).unwrap();
        assert_eq!(
            String::from_utf8(output.to).unwrap(),
            "a   b\n1   long\n22  s\n"
        );
        let mut output = Output::new(Vec::new(), true);
        output.rows(table.rows(), &["a"]).unwrap();
        assert_eq!(
            String::from_utf8(output.to).unwrap(),
            "[{\"a\":1,\"b\":\"long\",\"c\":\"x\"},{\"a\":22,\"b\":\"s\",\"c\":\"y\"}]\n"
        );
    }
}
