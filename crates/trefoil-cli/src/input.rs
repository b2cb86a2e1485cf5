//! What commands take in: JSON from an argument or standard input, and a yes from a person.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};

use anyhow::Context as _;
use serde_json::value::RawValue;
use trefoil::Timestamp;

use crate::exit::UsageError;

/// A day, which begins at midnight, UTC, or a time.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, String> {
    let time = Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")));
    time.ok_or_else(|| "expected a day like 2026-01-31 or a time in RFC 3339".to_owned())
}

/// A JSON value given as an argument, kept byte for byte; `-` reads standard input.
pub(crate) fn json_value(what: &str, argument: &str) -> anyhow::Result<Box<RawValue>> {
    match argument {
        "-" => json(what, stdin(what)?),
        text => json(what, text.to_owned()),
    }
}

/// The JSON value in a file, kept byte for byte; `-` reads standard input.
pub(crate) fn json_file(what: &str, path: &str) -> anyhow::Result<Box<RawValue>> {
    if path == "-" {
        return json(what, stdin(what)?);
    }
    let text = std::fs::read_to_string(path);
    json(
        what,
        text.with_context(|| format!("cannot read {what} from {path}"))?,
    )
}

fn stdin(what: &str) -> anyhow::Result<String> {
    let text = std::io::read_to_string(std::io::stdin());
    text.with_context(|| format!("cannot read {what} from standard input"))
}

fn json(what: &str, text: String) -> anyhow::Result<Box<RawValue>> {
    let value = RawValue::from_string(text);
    value.map_err(|error| UsageError(format!("{what} is not JSON: {error}")).into())
}

/// As [`json_value`], of an object.
pub(crate) fn json_object(what: &str, argument: &str) -> anyhow::Result<Box<RawValue>> {
    let value = json_value(what, argument)?;
    match value.get().trim_start().starts_with('{') {
        true => Ok(value),
        false => Err(UsageError(format!("{what} must be a JSON object")).into()),
    }
}

/// Asks before something that cannot be undone. The answer is the first line of standard input,
/// by a person or by a script.
pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        eprint!("{question} [y/N] ");
        std::io::stderr().flush()?;
    }
    let mut answer = Vec::new();
    let mut first = stdin.lock().take(ANSWER_BYTES_MAX);
    first.read_until(b'\n', &mut answer)?;
    match answer.trim_ascii() {
        b"y" | b"Y" | b"yes" => Ok(()),
        _ if stdin.is_terminal() => anyhow::bail!("cancelled"),
        _ => Err(UsageError(format!("{question} Say so with --yes.")).into()),
    }
}

/// The longest answer that is read, with the end of its line.
const ANSWER_BYTES_MAX: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_or_rfc_3339() {
        let parsed = |text| parse_time(text).map(|time| time.to_string());
        assert_eq!(parsed("2026-01-31").unwrap(), "2026-01-31T00:00:00Z");
        let with_offset = parsed("2026-01-31T12:00:00+02:00").unwrap();
        assert_eq!(with_offset, "2026-01-31T10:00:00Z");
        assert!(parsed("yesterday").is_err());
    }
}
