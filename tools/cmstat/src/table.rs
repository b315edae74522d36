// SPDX-License-Identifier: GPL-2.0
//! A table of the module: its first line names the columns, each other line is a row.

use crate::json::Value;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A row, by the names of the columns.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    columns: &'a [String],
    words: &'a [String],
}

impl Table {
    /// Reads a table. None when a line does not fit the columns.
    pub fn parse(text: &str) -> Option<Self> {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_string).collect() };
        let mut lines = text.lines();
        let columns = words(lines.next()?);
        let rows: Vec<_> = lines.map(words).collect();
        rows.iter()
            .all(|row| row.len() == columns.len())
            .then_some(Table { columns, rows })
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|words| Row {
            columns: &self.columns,
            words,
        })
    }
}

impl<'a> Row<'a> {
    /// The word in a column; `-` where there is no such column.
    pub fn get(&self, column: &str) -> &'a str {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| self.words.get(at))
            .map_or("-", String::as_str)
    }

    /// A column as a number.
    pub fn number<N: std::str::FromStr>(&self, column: &str) -> Option<N> {
        self.get(column).parse().ok()
    }

    /// All of it.
    pub fn to_json(self) -> Value {
        let fields = self.columns.iter().zip(self.words);
        Value::object(fields.map(|(name, word)| (name.clone(), Value::of_word(word))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        let table = Table::parse("a b c\n1 x -\n2 y 0x10\n").unwrap();
        let rows: Vec<_> = table.rows().collect();
        assert_eq!(rows[0].get("b"), "x");
        assert_eq!(rows[1].number::<u32>("a"), Some(2));
        assert_eq!(rows[0].number::<u32>("c"), None);
        assert_eq!(rows[0].get("no such column"), "-");
        assert_eq!(
            rows[1].to_json().to_string(),
            r#"{"a":2,"b":"y","c":"0x10"}"#
        );
        assert_eq!(rows[0].to_json().to_string(), r#"{"a":1,"b":"x","c":null}"#);
    }

    #[test]
    fn torn_lines_are_noticed() {
        assert!(Table::parse("a b\n1\n").is_none());
        assert!(Table::parse("").is_none());
        assert_eq!(Table::parse("a b\n").unwrap().rows().count(), 0);
    }
}
