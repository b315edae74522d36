// SPDX-License-Identifier: GPL-2.0
//! JSON, as much of it as is printed.

use std::fmt;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Number(String),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    pub fn object<N: Into<String>>(fields: impl IntoIterator<Item = (N, Value)>) -> Self {
        let fields = fields.into_iter();
        Value::Object(fields.map(|(name, value)| (name.into(), value)).collect())
    }

    pub fn list(values: impl IntoIterator<Item = Value>) -> Self {
        Value::List(values.into_iter().collect())
    }

    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(text.into())
    }

    /// A word of a table: a number where it is one, null for `-`.
    pub fn of_word(word: &str) -> Self {
        match word {
            "-" => Value::Null,
            word if is_number(word) => Value::Number(word.to_string()),
            word => Value::text(word),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(number.to_string())
    }
}

/// Whether JSON takes it for a number as it is: digits, perhaps with a fraction.
fn is_number(word: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    digits(whole) && digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Number(number) => f.write_str(number),
            Value::Text(text) => write_text(text, f),
            Value::List(values) => {
                f.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if at > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Value::Object(fields) => {
                f.write_str("{")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if at > 0 { "," } else { "" })?;
                    write_text(name, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            control if u32::from(control) < 0x20 => write!(f, "\\u{:04x}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for (word, shown) in [
            ("12", "12"),
            ("0", "0"),
            ("0.5", "0.5"),
            ("007", "\"007\""),
            ("1.", "\"1.\""),
            ("::1", "\"::1\""),
            ("0x10", "\"0x10\""),
            ("-", "null"),
        ] {
            assert_eq!(Value::of_word(word).to_string(), shown);
        }
    }

    #[test]
    fn what_needs_escapes() {
        let value = Value::object([("a\"b", Value::list([Value::text("\\\n"), Value::Null]))]);
        assert_eq!(value.to_string(), r#"{"a\"b":["\\\u000a",null]}"#);
    }
}
