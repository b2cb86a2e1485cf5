//! `ZUNION`, `ZINTER`, `ZDIFF` and their kin: what several sorted sets or plain sets have together.

use bytes::Bytes;

use super::inputs::{AlgebraInput, Inputs};
use super::scored_reply;
use super::scores::{Scored, Scores, order_of};
use crate::command::arguments::check_name;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::reply::Reply;
use std::collections::HashMap;

/// What is made of several sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlgebraOperation {
    /// All members of any of them.
    Union,
    /// The members of all of them.
    Intersection,
    /// The members of the first that are in none of the others.
    Difference,
}

/// `ZUNION numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(super) fn zunion(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read(keyspace, arguments, AlgebraOperation::Union)
}

/// `ZINTER numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(super) fn zinter(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read(keyspace, arguments, AlgebraOperation::Intersection)
}

/// `ZDIFF numkeys key [key …] [WITHSCORES]`
pub(super) fn zdiff(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    read(keyspace, arguments, AlgebraOperation::Difference)
}

fn read(
    keyspace: &Keyspace<'_>,
    arguments: &[Bytes],
    operation: AlgebraOperation,
) -> Result<Reply> {
    let inputs = Inputs::parse(keyspace, arguments, 1, operation)?;
    let mut members = inputs.combine(keyspace, operation)?;
    members.sort_unstable_by(|(a, a_score), (b, b_score)| {
        let by_score = order_of(*a_score).cmp(&order_of(*b_score));
        by_score.then_with(|| a.cmp(b))
    });
    Ok(scored_reply(members, inputs.with_scores))
}

/// `ZUNIONSTORE destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
pub(super) fn zunionstore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    store(keyspace, arguments, AlgebraOperation::Union)
}

/// `ZINTERSTORE destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
pub(super) fn zinterstore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    store(keyspace, arguments, AlgebraOperation::Intersection)
}

/// `ZDIFFSTORE destination numkeys key [key …]`
pub(super) fn zdiffstore(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    store(keyspace, arguments, AlgebraOperation::Difference)
}

fn store(
    keyspace: &mut Keyspace<'_>,
    arguments: &[Bytes],
    operation: AlgebraOperation,
) -> Result<Reply> {
    let inputs = Inputs::parse(keyspace, arguments, 2, operation)?;
    let members = inputs.combine(keyspace, operation)?;
    check_name(&arguments[1])?;
    Ok(Reply::count(Scores::replace(
        keyspace,
        &arguments[1],
        &members,
    )?))
}

/// `ZINTERCARD numkeys key [key …] [LIMIT limit]`
pub(super) fn zintercard(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let inputs = Inputs::parse_counted(keyspace, arguments)?;
    let mut n_members = 0;
    for member in inputs.intersection(keyspace) {
        member?;
        n_members += 1;
        if n_members == inputs.limit {
            break;
        }
    }
    Ok(Reply::count(n_members))
}

impl Inputs {
    /// Returns the members that come out, in no order.
    fn combine(&self, keyspace: &Keyspace<'_>, operation: AlgebraOperation) -> Result<Vec<Scored>> {
        match operation {
            AlgebraOperation::Union => self.union(keyspace),
            AlgebraOperation::Intersection => self.intersection(keyspace).collect(),
            AlgebraOperation::Difference => self.difference(keyspace),
        }
    }

    fn union(&self, keyspace: &Keyspace<'_>) -> Result<Vec<Scored>> {
        let mut scores: HashMap<Bytes, f64> = HashMap::new();
        for input in &self.inputs {
            for member in input.members(keyspace) {
                let (member, score) = member?;
                let score = weighted(score, input.weight);
                let total = scores.get(&member).copied();
                let total = total.map_or(score, |total| self.aggregate.apply(total, score));
                scores.insert(member, total);
            }
        }
        Ok(scores.into_iter().collect())
    }

    fn intersection<'s>(
        &'s self,
        keyspace: &'s Keyspace<'_>,
    ) -> impl Iterator<Item = Result<Scored>> + 's {
        let (smallest, others) = match self.inputs.split_first() {
            Some((smallest, others)) => (Some(smallest), others),
            None => (None, [].as_slice()),
        };
        let walk = smallest.into_iter().flat_map(move |smallest| {
            let members = smallest.members(keyspace);
            members.map(|member| {
                member.map(|(member, score)| (member, weighted(score, smallest.weight)))
            })
        });
        walk.filter_map(move |member| match member {
            Ok(member) => self.meet(keyspace, others, member).transpose(),
            Err(failure) => Some(Err(failure)),
        })
    }

    /// Returns a member with the score that the others make of it, if all of them have it.
    fn meet(
        &self,
        keyspace: &Keyspace<'_>,
        others: &[AlgebraInput],
        (member, mut total): Scored,
    ) -> Result<Option<Scored>> {
        for other in others {
            let Some(score) = other.score(keyspace, &member)? else {
                return Ok(None);
            };
            total = self.aggregate.apply(total, score * other.weight);
        }
        Ok(Some((member, total)))
    }

    fn difference(&self, keyspace: &Keyspace<'_>) -> Result<Vec<Scored>> {
        let Some((first, others)) = self.inputs.split_first() else {
            return Ok(Vec::new());
        };
        let mut members = Vec::new();
        for member in first.members(keyspace) {
            let member = member?;
            if !is_in_any(keyspace, others, &member.0)? {
                members.push(member);
            }
        }
        Ok(members)
    }
}

fn is_in_any(keyspace: &Keyspace<'_>, inputs: &[AlgebraInput], member: &[u8]) -> Result<bool> {
    for input in inputs {
        if input.score(keyspace, member)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a score times a weight, where nothing times infinity is nothing.
fn weighted(score: f64, weight: f64) -> f64 {
    let product = score * weight;
    if product.is_nan() { 0.0 } else { product }
}
