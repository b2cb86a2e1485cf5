//! Comma-separated values (RFC 4180), made of anything that becomes JSON.
//!
//! The names of an object are the head. A text is a cell as it is, `null` an empty one, and
//! everything else is the JSON it is.

use std::fmt;
use std::io::{self, Write};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Writes rows and remembers their head. Rows with other names begin another table, after an empty
/// line.
#[derive(Debug, Default)]
pub(super) struct CsvRows {
    head: Vec<String>,
}

impl CsvRows {
    pub(super) fn put(&mut self, out: &mut impl Write, row: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(row)?;
        let NamedCells(cells) = match text.starts_with('{') {
            true => serde_json::from_str(&text)?,
            // What has no names is a table of one column.
            false => NamedCells(vec![("value".to_owned(), RawValue::from_string(text)?)]),
        };
        let names = cells.iter().map(|(name, _)| name);
        if !names.clone().eq(&self.head) {
            if !self.head.is_empty() {
                out.write_all(b"\r\n")?;
            }
            self.head = names.cloned().collect();
            line(out, self.head.iter().cloned())?;
        }
        let cells = cells.iter().map(|(_, cell)| content(cell));
        line(out, cells.collect::<Result<Vec<_>, _>>()?.into_iter())
    }
}

fn content(cell: &RawValue) -> serde_json::Result<String> {
    match cell.get() {
        "null" => Ok(String::new()),
        text if text.starts_with('"') => serde_json::from_str(text),
        other => Ok(other.to_owned()),
    }
}

fn line(out: &mut impl Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        let is_plain = !cell.contains(['"', ',', '\r', '\n']) && cell.trim() == cell;
        match is_plain {
            true => out.write_all(cell.as_bytes())?,
            false => write!(out, "\"{}\"", cell.replace('"', "\"\""))?,
        }
    }
    out.write_all(b"\r\n")
}

/// The names and values of an object, in their order and with their digits.
struct NamedCells(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for NamedCells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = NamedCells;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedCells, A::Error> {
                let mut cells = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    cells.push(entry);
                }
                Ok(NamedCells(cells))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(rows: &[serde_json::Value]) -> String {
        let mut out = Vec::new();
        let mut csv = CsvRows::default();
        for row in rows {
            csv.put(&mut out, row).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let rows = [
            json!({"a": "x", "b": null, "c": 1.5}),
            json!({"a": "he said \"no\", twice", "b": "two\nlines", "c": {"k": [1, "v"]}}),
            json!({"a": " padded", "b": "größe", "c": true}),
        ];
        let expected = "a,b,c\r\nx,,1.5\r\n\"he said \"\"no\"\", twice\",\"two\nlines\",\
                        \"{\"\"k\"\":[1,\"\"v\"\"]}\"\r\n\" padded\",größe,true\r\n";
        assert_eq!(written(&rows), expected);
    }

    #[test]
    fn other_names_begin_another_table_and_what_has_none_gets_one() {
        let rows = [json!({"a": 1}), json!({"b": 2}), json!({"b": 3})];
        assert_eq!(written(&rows), "a\r\n1\r\n\r\nb\r\n2\r\n3\r\n");
        assert_eq!(written(&[json!("x"), json!([1])]), "value\r\nx\r\n[1]\r\n");
    }
}
