//! `SLOWLOG GET [count]`, `LEN` and `RESET`: the last slow requests of the client's namespace.

use bytes::Bytes;
use trefoil::Reply;
use trefoil::redis::parse_integer;

use super::super::profile::not_authenticated;
use super::super::session::Session;
use super::super::words::{ReplyResult, error, not_an_integer};
use super::help_lines;
use crate::requests::{SlowRequest, micros};

/// How many are told of unless the client says how many it wants.
const COUNT_DEFAULT: usize = 10;

pub(super) fn help(_: &mut Session, _: &[Bytes]) -> ReplyResult {
    let lines = [
        "GET [<count>]",
        "    Return the newest <count> slow requests (default: 10, -1 means all): id, time, duration in",
        "    microseconds, arguments, address and name of the client.",
        "LEN",
        "    Return how many slow requests are kept.",
        "RESET",
        "    Forget them.",
    ];
    Ok(help_lines(
        "SLOWLOG <subcommand> [<arg> ...]. Subcommands are:",
        &lines,
    ))
}

pub(super) fn get(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let n_max = match words.get(2) {
        None => COUNT_DEFAULT,
        Some(word) => match parse_integer(word).ok_or_else(not_an_integer)? {
            -1 => usize::MAX,
            count => usize::try_from(count)
                .map_err(|_| error("ERR count should be greater than or equal to -1"))?,
        },
    };
    let namespace = session.namespace.as_ref().ok_or_else(not_authenticated)?;
    let slow = session.shared().requests.slow.last(namespace, n_max);
    Ok(Reply::Array(slow.into_iter().map(told).collect()))
}

fn told(request: SlowRequest) -> Reply {
    let number = |number: u64| Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let words = request.words.into_iter().map(Reply::Bulk);
    Reply::Array(vec![
        number(request.id),
        number(request.time.millis() / 1000),
        number(micros(request.elapsed)),
        Reply::Array(words.collect()),
        Reply::bulk(request.address),
        Reply::bulk(request.client),
    ])
}

pub(super) fn len(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    let namespace = session.namespace.as_ref().ok_or_else(not_authenticated)?;
    let count = session.shared().requests.slow.count(namespace);
    Ok(Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
}

pub(super) fn reset(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    let namespace = session.namespace.as_ref().ok_or_else(not_authenticated)?;
    session.shared().requests.slow.reset(namespace);
    Ok(Reply::OK)
}
