//! All members, step by step or at random.

use bytes::Bytes;

use super::scored_reply;
use super::scores::{Scored, Scores, read_score};
use crate::command::arguments::is_word;
use crate::command::sample::SampleChoice;
use crate::command::scan::{self, ScanOptions, parse_cursor};
use crate::error::{CommandError, Result, SYNTAX};
use crate::format_double;
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]`
pub(super) fn zscan(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    parse_cursor(&arguments[2])?;
    let Some(scores) = Scores::find(keyspace, &arguments[1])? else {
        return Ok(scan::reply(None, Vec::new()));
    };
    let options = ScanOptions::parse(&arguments[2..], "")?;
    let part = keyspace.scan_named(scores.id(), options.cursor, options.count)?;
    let mut found = Vec::with_capacity(2 * part.found.len());
    for (member, value) in part.found {
        if options.selects(&member) {
            found.push(Reply::Bulk(member));
            found.push(Reply::bulk(score_text(read_score(&value)?)));
        }
    }
    Ok(scan::reply(part.next, found))
}

/// Returns a score as `ZSCAN` writes it: integers without an exponent, however large.
fn score_text(score: f64) -> String {
    const LARGEST: f64 = (i64::MAX / 2) as f64;
    match score.abs() <= LARGEST && score == score.trunc() {
        true => format!("{}", score as i64),
        false => format_double(score),
    }
}

/// `ZRANDMEMBER key [count [WITHSCORES]]`
pub(super) fn zrandmember(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(count) = arguments.get(2) else {
        let member = sample(keyspace, &arguments[1], SampleChoice::ONE)?.pop();
        return Ok(Reply::bulk_or_nil(member.map(|(member, _)| member)));
    };
    let choice = SampleChoice::parse(count)?;
    let with_scores = match &arguments[3..] {
        [] => false,
        [word] if is_word(word, "WITHSCORES") => true,
        _ => return Err(SYNTAX),
    };
    if with_scores && choice.count > i64::MAX as u64 / 2 {
        return Err(CommandError::refused("ERR value is out of range"));
    }
    let members = sample(keyspace, &arguments[1], choice)?;
    Ok(scored_reply(members, with_scores))
}

/// Chooses among the members of a sorted set.
fn sample(keyspace: &mut Keyspace<'_>, key: &Bytes, choice: SampleChoice) -> Result<Vec<Scored>> {
    let Some(scores) = Scores::find(keyspace, key)? else {
        return Ok(Vec::new());
    };
    let found = keyspace.sample(scores.id(), scores.len(), choice)?;
    let members = found.into_iter();
    members
        .map(|(member, value)| Ok((member, read_score(&value)?)))
        .collect()
}
