//! In which form data is printed: `--output`, and `--json` for short.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};

use crate::exit::UsageError;

/// The form of what goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Lines and tables for people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values with a head.
    Csv,
}

const NAMES: [(&str, OutputFormat); 4] = [
    ("table", OutputFormat::Table),
    ("json", OutputFormat::Json),
    ("ndjson", OutputFormat::Ndjson),
    ("csv", OutputFormat::Csv),
];

/// What `--output` was given: the form of the data, or the file of an export, which the flag has
/// named since EventoDB.
#[derive(Debug, Clone)]
pub(crate) enum OutputFlag {
    Format(OutputFormat),
    File(PathBuf),
}

impl OutputFlag {
    /// Reads the name of a form.
    pub(crate) fn format_parser() -> impl TypedValueParser<Value = Self> {
        let names = PossibleValuesParser::new(NAMES.map(|(name, _)| name));
        names.map(|given| {
            let found = NAMES.into_iter().find(|(name, _)| *name == given);
            Self::Format(found.map_or(OutputFormat::Table, |(_, format)| format))
        })
    }

    /// Takes anything as the name of a file.
    pub(crate) fn file_parser() -> impl TypedValueParser<Value = Self> {
        PathBufValueParser::new().map(Self::File)
    }

    /// The form that both flags ask for together.
    pub(crate) fn format(given: Option<&Self>, is_json: bool) -> anyhow::Result<OutputFormat> {
        match (given, is_json) {
            (Some(Self::Format(OutputFormat::Ndjson)) | Some(Self::File(_)) | None, true) => {
                Ok(OutputFormat::Ndjson)
            }
            (Some(Self::Format(_)), true) => {
                let text = "--json means --output ndjson: give one of the two";
                Err(UsageError(text.to_owned()).into())
            }
            (Some(Self::Format(format)), false) => Ok(*format),
            (Some(Self::File(_)) | None, false) => Ok(OutputFormat::Table),
        }
    }
}

impl OutputFormat {
    /// Whether errors are JSON too.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Ndjson)
    }

    /// Whether arguments that cannot be understood ask for JSON.
    pub(crate) fn is_json_wanted(arguments: &[OsString]) -> bool {
        let is_json = |name: &str| {
            let found = NAMES.into_iter().find(|(known, _)| *known == name);
            found.is_some_and(|(_, format)| format.is_json())
        };
        let texts: Vec<&str> = arguments.iter().filter_map(|text| text.to_str()).collect();
        let joined = |text: &&str| text.strip_prefix("--output=").is_some_and(is_json);
        let apart = |pair: &[&str]| pair[0] == "--output" && is_json(pair[1]);
        texts.iter().any(|text| *text == "--json" || joined(text)) || texts.windows(2).any(apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_json_is_seen_in_arguments_that_are_wrong() {
        let wanted = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            OutputFormat::is_json_wanted(&words)
        };
        for line in ["--json", "x --output json", "--output=ndjson x"] {
            assert!(wanted(line), "{line}");
        }
        for line in ["x", "--output csv", "--output table json", "--output"] {
            assert!(!wanted(line), "{line}");
        }
    }

    #[test]
    fn json_is_short_for_ndjson() {
        let format = |given: Option<OutputFormat>, is_json| {
            let given = given.map(OutputFlag::Format);
            OutputFlag::format(given.as_ref(), is_json).ok()
        };
        assert_eq!(format(None, false), Some(OutputFormat::Table));
        assert_eq!(format(None, true), Some(OutputFormat::Ndjson));
        assert_eq!(
            format(Some(OutputFormat::Csv), false),
            Some(OutputFormat::Csv)
        );
        assert_eq!(format(Some(OutputFormat::Csv), true), None);
    }
}
