//! Random choices among named elements: each once, or any of them more than once.

use std::collections::HashSet;

use bytes::Bytes;

use super::arguments::integer;
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;

/// At most how many elements are chosen if any of them may come more than once.
const REPEATED_MAX: u64 = 1_000_000;

/// Of fewer elements than this, and where every fourth or more is chosen, all are walked over.
const WALKED_MAX: u64 = 128;

/// How many elements are to be chosen, and whether one may come more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleChoice {
    pub(crate) count: u64,
    pub(crate) may_repeat: bool,
}

impl SampleChoice {
    /// One element.
    pub(crate) const ONE: Self = Self::of(1);

    /// Returns a choice of this many different elements.
    pub(crate) const fn of(count: u64) -> Self {
        let may_repeat = false;
        Self { count, may_repeat }
    }

    /// `count`: as many different elements, or, if it is negative, as many of any.
    pub(crate) fn parse(argument: &[u8]) -> Result<Self> {
        let count = integer(argument)?;
        if count == i64::MIN {
            let (least, most) = (-i64::MAX, i64::MAX);
            return Err(CommandError::because(format!(
                "ERR value is out of range, value must between {least} and {most}"
            )));
        }
        Ok(Self {
            count: count.unsigned_abs(),
            may_repeat: count < 0,
        })
    }

    /// Chooses among the indexes of `len` elements. They come in order.
    pub(crate) fn indexes(self, keyspace: &mut Keyspace<'_>, len: u64) -> Result<Vec<u64>> {
        if !self.may_repeat {
            let mut n_left = self.count.min(len);
            let is_chosen = |index: &u64| {
                let chosen = keyspace.random() % (len - index) < n_left;
                n_left -= u64::from(chosen);
                chosen
            };
            return Ok((0..len).filter(is_chosen).collect());
        }
        self.check()?;
        let any = |_| keyspace.random() % len.max(1);
        let mut indexes: Vec<u64> = (0..self.count).map(any).collect();
        indexes.sort_unstable();
        Ok(indexes)
    }

    fn check(self) -> Result<()> {
        if self.may_repeat && self.count > REPEATED_MAX {
            return Err(CommandError::because(format!(
                "ERR value is out of range, at most {REPEATED_MAX} elements that may repeat"
            )));
        }
        Ok(())
    }
}

/// Returns what lies at these indexes of a walk, which are in order.
pub(crate) fn at_indexes<T: Clone>(
    walk: impl Iterator<Item = Result<T>>,
    indexes: &[u64],
) -> Result<Vec<T>> {
    let mut indexes = indexes.iter().peekable();
    let mut found = Vec::with_capacity(indexes.len());
    for (index, one) in (0..).zip(walk) {
        let one = one?;
        while indexes.next_if(|next| **next == index).is_some() {
            found.push(one.clone());
        }
        if indexes.peek().is_none() {
            break;
        }
    }
    Ok(found)
}

impl Keyspace<'_> {
    /// Chooses among `len` named elements; returns their names and values.
    pub(crate) fn sample(
        &mut self,
        id: u64,
        len: u64,
        choice: SampleChoice,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        choice.check()?;
        if len <= WALKED_MAX || choice.count >= len / 4 {
            let indexes = choice.indexes(self, len)?;
            let mut found = at_indexes(self.all_named(id), &indexes)?;
            if choice.may_repeat {
                self.shuffle(&mut found);
            }
            return Ok(found);
        }
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        while (found.len() as u64) < choice.count {
            let Some((name, value)) = self.random_named(id, len)? else {
                break;
            };
            if choice.may_repeat || seen.insert(name.clone()) {
                found.push((name, value));
            }
        }
        Ok(found)
    }

    /// Brings things into a random order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let other = self.random() % (last as u64 + 1);
            things.swap(last, other as usize);
        }
    }
}
