//! The words of a command, made of the fields of an object.

use std::ops::RangeInclusive;

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::value::RawValue;
use trefoil::{Call, Commands};

use crate::error::{Failure, Result};
use crate::json::text;
use crate::rpc::state;
use crate::strict;

/// How much of a wrong seat is repeated.
const QUOTED_CHARS_MAX: usize = 40;

/// A command that is being put together. A field may be left out where nothing else is said.
pub(super) struct SeatsCommand {
    method: &'static str,
    words: Vec<Bytes>,
}

impl SeatsCommand {
    /// The command of the same name.
    pub(super) fn of(method: &'static str) -> Self {
        let words = vec![Bytes::from_static(method.as_bytes())];
        Self { method, words }
    }

    /// How errors call a field.
    fn what(&self, field: &str) -> String {
        format!("{}.{field}", self.method)
    }

    fn push(&mut self, word: impl Into<Bytes>) {
        self.words.push(word.into());
    }

    /// An id, which must be there.
    pub(super) fn id(mut self, field: &str, value: Option<&RawValue>) -> Result<Self> {
        let id = strict::name(value, &self.what(field))?;
        self.push(id);
        Ok(self)
    }

    /// An id.
    pub(super) fn optional_id(self, field: &str, value: Option<&RawValue>) -> Result<Self> {
        match value {
            None => Ok(self),
            value => self.id(field, value),
        }
    }

    /// A word and the number after it.
    pub(super) fn number(
        mut self,
        word: &'static str,
        field: &str,
        value: Option<&RawValue>,
    ) -> Result<Self> {
        let Some(value) = value else { return Ok(self) };
        let number = value.get();
        // The command itself says which numbers it takes.
        if !number.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            let what = self.what(field);
            return Err(Failure::invalid(format!("{what} must be a number")));
        }
        self.push(word);
        self.push(number.to_owned());
        Ok(self)
    }

    /// A word that stands for itself, if the field is true.
    pub(super) fn flag(
        mut self,
        word: &'static str,
        field: &str,
        value: Option<&RawValue>,
    ) -> Result<Self> {
        if strict::flag(value, &self.what(field))? {
            self.push(word);
        }
        Ok(self)
    }

    /// A word and the seats after it; `counts` says how many there may be.
    pub(super) fn seats(
        mut self,
        word: &'static str,
        field: &str,
        value: Option<&RawValue>,
        counts: RangeInclusive<usize>,
    ) -> Result<Self> {
        if value.is_none() {
            return Ok(self);
        }
        let what = self.what(field);
        let (n_min, n_max) = counts.into_inner();
        let seats = strict::texts(value, &what, n_max)?;
        if seats.len() < n_min {
            let text = format!("{what} must name {n_min} seats or more");
            return Err(Failure::invalid(text));
        }
        self.push(word);
        for seat in seats {
            // What could be a word of the command is no seat.
            if !seat.contains('-') {
                return Err(no_seat(&seat));
            }
            self.push(seat);
        }
        Ok(self)
    }

    /// The prefix of keys.
    pub(super) fn with_prefix(mut self, value: Option<&RawValue>) -> Result<Self> {
        if let Some(value) = value {
            let what = self.what("prefix");
            let prefix = text(value);
            let prefix =
                prefix.ok_or_else(|| Failure::invalid(format!("{what} must be a string")))?;
            self.push("PREFIX");
            self.push(prefix.into_owned());
        }
        Ok(self)
    }

    /// The whole command.
    pub(super) fn into_call(self, commands: &Commands) -> Result<Call> {
        state::call(commands, self.words, self.method)
    }
}

/// As the command itself says it.
fn no_seat(text: &str) -> Failure {
    let text: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let text = text.escape_default();
    let message = format!("'{text}' is not a seat: one is written row-number, such as 3-7");
    Failure::new(StatusCode::BAD_REQUEST, "BADSEAT", message)
}
