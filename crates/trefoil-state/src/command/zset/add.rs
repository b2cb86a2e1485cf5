//! `ZADD` and `ZINCRBY`: giving members scores.

use bytes::Bytes;

use super::scores::Scores;
use crate::command::arguments::{ArgumentReader, check_name, double};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// Which members `ZADD` gives a score, and what it replies.
#[derive(Debug, Default)]
struct AddOptions {
    only_new: bool,
    only_existing: bool,
    only_greater: bool,
    only_less: bool,
    count_changes: bool,
    increments: bool,
}

/// What became of a member.
#[derive(Debug, Clone, Copy, PartialEq)]
enum AddOutcome {
    Added(f64),
    Changed(f64),
    /// It has the score that it was to get.
    Same(f64),
    /// The options forbid it.
    Skipped,
}

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member …]`
pub(super) fn zadd(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    add(keyspace, arguments, AddOptions::default())
}

/// `ZINCRBY key increment member`
pub(super) fn zincrby(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let options = AddOptions {
        increments: true,
        ..AddOptions::default()
    };
    add(keyspace, arguments, options)
}

impl AddOptions {
    /// Adds options to these. Returns them and the pairs of scores and members after them.
    fn parse(self, arguments: &[Bytes]) -> Result<(Self, &[Bytes])> {
        let mut options = self;
        let mut rest = ArgumentReader::new(arguments);
        loop {
            if rest.take("NX") {
                options.only_new = true;
            } else if rest.take("XX") {
                options.only_existing = true;
            } else if rest.take("GT") {
                options.only_greater = true;
            } else if rest.take("LT") {
                options.only_less = true;
            } else if rest.take("CH") {
                options.count_changes = true;
            } else if rest.take("INCR") {
                options.increments = true;
            } else {
                break;
            }
        }
        let pairs = rest.all();
        if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
            return Err(SYNTAX);
        }
        options.check(pairs.len() / 2)?;
        Ok((options, pairs))
    }

    fn check(&self, n_pairs: usize) -> Result<()> {
        if self.only_new && self.only_existing {
            return Err(CommandError::refused(
                "ERR XX and NX options at the same time are not compatible",
            ));
        }
        let n_exclusive = [self.only_new, self.only_greater, self.only_less];
        if n_exclusive.into_iter().filter(|is_set| *is_set).count() > 1 {
            return Err(CommandError::refused(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.increments && n_pairs > 1 {
            return Err(CommandError::refused(
                "ERR INCR option supports a single increment-element pair",
            ));
        }
        Ok(())
    }

    /// Returns what becomes of a member that has this score, or none, and is to get another.
    fn decide(&self, before: Option<f64>, score: f64) -> Result<AddOutcome> {
        let Some(before) = before else {
            return Ok(match self.only_existing {
                true => AddOutcome::Skipped,
                false => AddOutcome::Added(score),
            });
        };
        if self.only_new {
            return Ok(AddOutcome::Skipped);
        }
        let score = if self.increments {
            before + score
        } else {
            score
        };
        if score.is_nan() {
            return Err(CommandError::refused(
                "ERR resulting score is not a number (NaN)",
            ));
        }
        let is_forbidden =
            (self.only_less && score >= before) || (self.only_greater && score <= before);
        Ok(match (is_forbidden, score == before) {
            (true, _) => AddOutcome::Skipped,
            (false, true) => AddOutcome::Same(score),
            (false, false) => AddOutcome::Changed(score),
        })
    }
}

fn add(keyspace: &mut Keyspace<'_>, arguments: &[Bytes], options: AddOptions) -> Result<Reply> {
    let key = &arguments[1];
    let (options, pairs) = options.parse(&arguments[2..])?;
    let numbers = pairs.iter().step_by(2).map(|score| double(score));
    let numbers = numbers.collect::<Result<Vec<f64>>>()?;
    let members = pairs.iter().skip(1).step_by(2);
    check_name(key)?;
    let mut scores = Scores::find_or_new(keyspace, key)?;
    let (mut n_added, mut n_changed) = (0, 0);
    let mut last = AddOutcome::Skipped;
    for (number, member) in numbers.into_iter().zip(members) {
        check_name(member)?;
        let before = scores.score(keyspace, member)?;
        last = options.decide(before, number)?;
        match last {
            AddOutcome::Added(score) => {
                scores.set(keyspace, member, before, score)?;
                n_added += 1;
            }
            AddOutcome::Changed(score) => {
                scores.set(keyspace, member, before, score)?;
                n_changed += 1;
            }
            AddOutcome::Same(_) | AddOutcome::Skipped => {}
        }
    }
    if n_added + n_changed > 0 {
        scores.save(keyspace, key)?;
    }
    Ok(match last {
        AddOutcome::Skipped if options.increments => Reply::Nil,
        AddOutcome::Added(score) | AddOutcome::Changed(score) | AddOutcome::Same(score)
            if options.increments =>
        {
            Reply::Double(score)
        }
        _ if options.count_changes => Reply::count(n_added + n_changed),
        _ => Reply::count(n_added),
    })
}
