//! Query conditions, looked into before a commit reaches the writer.
//!
//! Whether an event matches may take long to find out: an old position, a cold index, two frequent
//! tags that never meet. So the caller of a commit looks into its conditions up to the head of
//! the log, and the writer only at what came later.

use std::time::Duration;

use trefoil_core::{Commit, Condition, Result};

use crate::database::engine::Engine;
use crate::index::Effort;
use crate::read::{Matcher, SearchResult, first_match};

/// How many positions are looked at in one go: about a millisecond of work.
const EFFORT_POSITIONS: usize = 16 * 1024;

/// At most about how many events the writer is left to look at: a look that took so long that more
/// were written meanwhile goes on.
const NEW_EVENTS_MAX: u64 = 1024;

/// What is known of the conditions of a commit.
#[derive(Debug, Default)]
pub(crate) struct CheckedConditions {
    /// Up to where the log was looked into.
    pub(crate) up_to: u64,
    /// For each condition, the position of a match; empty if no condition is a query.
    pub(crate) matches: Vec<Option<u64>>,
}

impl CheckedConditions {
    /// Returns a match of the condition of this index.
    pub(crate) fn match_of(&self, condition: usize) -> Option<u64> {
        self.matches.get(condition).copied().flatten()
    }
}

/// A look into the conditions of a commit, which can be interrupted.
#[derive(Debug)]
pub(crate) struct ConditionCheck {
    checked: CheckedConditions,
    /// Up to where the log was looked into before.
    floor: u64,
    /// The condition that is being looked into, and from where on if not from its beginning.
    index: usize,
    from: Option<u64>,
    /// When it began, by the steady clock.
    began: Option<Duration>,
}

impl ConditionCheck {
    /// Returns a look into the log as it is now.
    pub(crate) fn new(engine: &Engine, conditions: &[Condition]) -> Self {
        let has_query = |condition: &Condition| Matcher::of_condition(condition).is_some();
        let n = match conditions.iter().any(has_query) {
            true => conditions.len(),
            false => 0,
        };
        let checked = CheckedConditions {
            up_to: engine.writer.head(),
            matches: vec![None; n],
        };
        Self {
            checked,
            floor: 0,
            index: 0,
            from: None,
            began: (n > 0).then(|| engine.clock().steady()),
        }
    }

    /// Returns whether no condition is a query, so that there is nothing to look into.
    pub(crate) fn reads_nothing(&self) -> bool {
        self.checked.matches.is_empty()
    }

    /// Goes on with the look for a while. Returns whether it is finished.
    pub(crate) fn advance(&mut self, engine: &Engine, conditions: &[Condition]) -> Result<bool> {
        let effort = Effort::new(EFFORT_POSITIONS);
        while self.index < self.checked.matches.len() {
            if effort.is_spent() || !self.look(engine, &conditions[self.index], &effort)? {
                return Ok(false);
            }
            self.index += 1;
        }
        let head = engine.writer.head();
        if self.checked.matches.is_empty() || head - self.checked.up_to <= NEW_EVENTS_MAX {
            return Ok(true);
        }
        self.floor = std::mem::replace(&mut self.checked.up_to, head);
        self.index = 0;
        Ok(false)
    }

    /// Looks into one condition. Returns whether that is finished.
    fn look(&mut self, engine: &Engine, condition: &Condition, effort: &Effort) -> Result<bool> {
        let Some((matcher, after)) = Matcher::of_condition(condition) else {
            return Ok(true);
        };
        if self.checked.match_of(self.index).is_some() {
            return Ok(true);
        }
        let begin = after.max(self.floor).saturating_add(1);
        let from = self.from.take().unwrap_or(begin);
        let layers = engine.index.layers();
        let storage = engine.storage.as_ref();
        match first_match(storage, &layers, matcher, from, self.checked.up_to, effort)? {
            SearchResult::Paused(position) => {
                self.from = Some(position);
                return Ok(false);
            }
            SearchResult::Match(position) => self.checked.matches[self.index] = Some(position),
            SearchResult::Nothing => {}
        }
        Ok(true)
    }

    /// Returns what was found.
    pub(crate) fn finish(self, engine: &Engine) -> CheckedConditions {
        if let Some(began) = self.began {
            let elapsed = engine.clock().since(began);
            engine.background.stats.conditions.record_duration(elapsed);
        }
        self.checked
    }
}

/// Looks into the conditions of a commit to the end. Blocks the thread.
pub(crate) fn check(engine: &Engine, conditions: &[Condition]) -> Result<CheckedConditions> {
    let mut check = ConditionCheck::new(engine, conditions);
    while !check.advance(engine, conditions)? {}
    Ok(check.finish(engine))
}

/// A commit, and what is known of its conditions.
#[derive(Debug)]
pub(crate) struct CheckedCommit {
    pub(crate) commit: Commit,
    pub(crate) checked: CheckedConditions,
}
