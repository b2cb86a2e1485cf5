//! What `SORT` is asked for: by what to sort, which elements to return, and what of them.

use std::ops::Range;

use bytes::Bytes;
use trefoil_core::Direction;

use super::pattern::Pattern;
use crate::command::arguments::{ArgumentReader, integer, is_word};
use crate::error::{Result, SYNTAX};
use crate::keyspace::Keyspace;

/// What elements are sorted by.
#[derive(Debug)]
pub(super) enum SortBy {
    /// Themselves.
    Element,
    /// Nothing: they stay in the order in which they are.
    Nothing,
    /// Values of other keys.
    Pattern(Pattern),
}

#[derive(Debug)]
pub(super) struct SortOptions {
    pub(super) by: SortBy,
    pub(super) is_descending: bool,
    /// Whether elements are sorted as bytes, not as numbers.
    pub(super) is_alpha: bool,
    /// How many elements to skip, and how many to return at most; all, if negative.
    limit: (i64, i64),
    /// What is returned of each element; the element itself if there are none.
    gets: Vec<Pattern>,
    pub(super) store: Option<Bytes>,
}

impl SortOptions {
    pub(super) fn parse(arguments: &[Bytes], may_store: bool) -> Result<Self> {
        let mut options = Self {
            by: SortBy::Element,
            is_descending: false,
            is_alpha: false,
            limit: (0, -1),
            gets: Vec::new(),
            store: None,
        };
        let mut rest = ArgumentReader::new(arguments);
        while let Some(word) = rest.word() {
            if is_word(word, "ASC") {
                options.is_descending = false;
            } else if is_word(word, "DESC") {
                options.is_descending = true;
            } else if is_word(word, "ALPHA") {
                options.is_alpha = true;
            } else if is_word(word, "LIMIT") && rest.all().len() >= 2 {
                let mut number = || integer(rest.word().ok_or(SYNTAX)?);
                options.limit = (number()?, number()?);
            } else if may_store && is_word(word, "STORE") {
                options.store = Some(rest.word().ok_or(SYNTAX)?.clone());
            } else if is_word(word, "BY") {
                let pattern = Pattern::new(rest.word().ok_or(SYNTAX)?);
                options.by = match pattern.has_place() {
                    true => SortBy::Pattern(pattern),
                    false => SortBy::Nothing,
                };
            } else if is_word(word, "GET") {
                options.gets.push(Pattern::new(rest.word().ok_or(SYNTAX)?));
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    /// Returns which of the sorted elements to return.
    pub(super) fn range(&self, len: u64) -> Range<u64> {
        let start = u64::try_from(self.limit.0).unwrap_or(0).min(len);
        let n_max = u64::try_from(self.limit.1).unwrap_or(u64::MAX);
        start..start.saturating_add(n_max).min(len)
    }

    /// In which direction elements are read that are not sorted.
    pub(super) fn direction(&self) -> Direction {
        match self.is_descending {
            true => Direction::Backwards,
            false => Direction::Forwards,
        }
    }

    /// Returns the part of an element that the reply has.
    pub(super) fn values(
        &self,
        keyspace: &Keyspace<'_>,
        element: Bytes,
    ) -> Result<Vec<Option<Bytes>>> {
        if self.gets.is_empty() {
            return Ok(vec![Some(element)]);
        }
        let values = self.gets.iter().map(|get| get.value(keyspace, &element));
        values.collect()
    }
}
