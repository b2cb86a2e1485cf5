//! Query conditions, looked into before a commit reaches the writer.
//!
//! Whether an event matches may take long to find out: an old position, a cold index, two frequent
//! tags that never meet. So the caller of a commit looks into its conditions up to the head of
//! the log, and the writer only at what came later.

use std::time::Duration;

use trefoil_core::{Commit, Condition, Result};

use crate::database::engine::Engine;
use crate::index::Effort;
use crate::read::{Matcher, SearchResult, SearchedLog, first_match};
use crate::removal::HiddenEvents;

/// How many positions are looked at in one go on a thread that serves others too: about a millisecond
/// of work.
const SHORT_EFFORT_POSITIONS: usize = 16 * 1024;
/// The same on a thread for such work: each time anew, it takes as long as some of them to find out
/// where to look.
const LONG_EFFORT_POSITIONS: usize = 8 * SHORT_EFFORT_POSITIONS;
/// Queries of more types and tags than this together are not looked into on a thread that serves
/// others: to find out where to look takes too long.
const SHORT_TERMS_MAX: usize = 256;

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

    /// Begins the look, on a thread that serves others too. Returns whether it is finished.
    pub(crate) fn begin(&mut self, engine: &Engine, conditions: &[Condition]) -> Result<bool> {
        let queries = conditions.iter().filter_map(Matcher::of_condition);
        let n_terms: usize = queries.map(|(matcher, _)| matcher.query.n_terms()).sum();
        if n_terms > SHORT_TERMS_MAX {
            return Ok(false);
        }
        self.look_for(SHORT_EFFORT_POSITIONS, engine, conditions)
    }

    /// Goes on with the look for a while. Returns whether it is finished.
    pub(crate) fn advance(&mut self, engine: &Engine, conditions: &[Condition]) -> Result<bool> {
        self.look_for(LONG_EFFORT_POSITIONS, engine, conditions)
    }

    fn look_for(
        &mut self,
        n_positions: usize,
        engine: &Engine,
        conditions: &[Condition],
    ) -> Result<bool> {
        let effort = Effort::new(n_positions);
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
        let hidden = HiddenEvents::new(&engine.store);
        let log = SearchedLog {
            storage: engine.storage.as_ref(),
            layers: &layers,
            hidden: &hidden,
        };
        match first_match(log, matcher, from, self.checked.up_to, effort)? {
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

#[cfg(test)]
mod tests {
    use trefoil_core::{NewEvent, QueryItem};

    use super::*;
    use crate::{Database, Options};

    fn condition(n_items: usize) -> Condition {
        let item = |number: usize| QueryItem {
            types: vec!["Counted".to_owned(), format!("Other{number}")],
            tags: vec!["even".to_owned(), "odd".to_owned()],
        };
        Condition::no_match((0..n_items).map(item).collect())
    }

    #[test]
    fn large_queries_are_not_looked_into_on_a_thread_that_serves_others() {
        let database = Database::in_memory(&Options::default()).unwrap();
        for tag in ["even", "odd"] {
            let mut event = NewEvent::without_stream("Counted", "{}");
            event.tags = vec![tag.to_owned()];
            database.commit(Commit::new([event])).unwrap();
        }
        let engine = database.engine().unwrap();
        for (n_items, is_short) in [(1, true), (SHORT_TERMS_MAX / 4, true), (500, false)] {
            let conditions = [condition(n_items)];
            let mut check = ConditionCheck::new(&engine, &conditions);
            assert_eq!(check.begin(&engine, &conditions).unwrap(), is_short);
            while !check.advance(&engine, &conditions).unwrap() {}
            assert_eq!(check.finish(&engine).matches, [None]);
        }
    }
}
