//! Small commands: `PING [text]`, `ECHO text`, `SELECT index`, `TIME`, `ROLE`, `UNWATCH`,
//! `WAIT replicas timeout`, `WAITAOF local replicas timeout`, `DEBUG SLEEP seconds`.
//!
//! A write is answered when it is on disk here, and nowhere else: there are no replicas to wait for.
//! So `WAIT` counts none and `WAITAOF` says that everything so far is in the log. Both answer when
//! that is so, and do not wait for replicas that nobody will see until the timeout is over.

use std::time::Duration;

use bytes::Bytes;
use trefoil::Reply;

use super::super::session::Session;
use super::super::words::{ReplyResult, Words, error, integer, text};

pub(super) fn ping(_: &mut Session, words: &[Bytes]) -> ReplyResult {
    match words {
        [_] => Ok(Reply::Simple("PONG")),
        [_, text] => Ok(Reply::Bulk(text.clone())),
        _ => Err(error("ERR wrong number of arguments for 'ping' command")),
    }
}

pub(super) fn echo(_: &mut Session, words: &[Bytes]) -> ReplyResult {
    Ok(Reply::Bulk(words[1].clone()))
}

pub(super) fn select(_: &mut Session, words: &[Bytes]) -> ReplyResult {
    match integer(&words[1])? {
        0 => Ok(Reply::OK),
        _ => Err(error(
            "ERR DB index is out of range: there is one database, 0. Namespaces are apart from each \
             other as databases are, and are chosen by token, with AUTH",
        )),
    }
}

pub(super) fn time(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    let micros = session.shared().namespaces.clock().now().0 / 1_000;
    let parts = [micros / 1_000_000, micros % 1_000_000];
    let parts = parts.map(|part| Reply::bulk(part.to_string()));
    Ok(Reply::Array(parts.into()))
}

/// Nobody follows, so there is nothing that they could have missed.
pub(super) fn role(_: &mut Session, _: &[Bytes]) -> ReplyResult {
    Ok(Reply::Array(vec![
        Reply::bulk("master"),
        Reply::Integer(0),
        Reply::Array(Vec::new()),
    ]))
}

pub(super) fn unwatch(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    session.unwatch();
    Ok(Reply::OK)
}

pub(super) fn wait(_: &mut Session, words: &[Bytes]) -> ReplyResult {
    let mut words = Words::after(words, 1);
    words.integer()?;
    check_timeout(words.integer()?)?;
    Ok(Reply::Integer(0))
}

/// Waits until all writes are in the log, which they are: unless one of them failed.
pub(in super::super) async fn wait_for_log(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let mut words = Words::after(words, 1);
    if !(0..=1).contains(&words.integer()?) {
        return Err(error(
            "ERR value is out of range, value must between 0 and 1",
        ));
    }
    words.number()?;
    check_timeout(words.integer()?)?;
    match session.database().await?.refuses_writes() {
        Some(why) => Err(error(format!("READONLY {why}"))),
        None => Ok(Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)])),
    }
}

fn check_timeout(timeout: i64) -> ReplyResult<()> {
    if timeout < 0 {
        return Err(error("ERR timeout is negative"));
    }
    Ok(())
}

/// Sleeps, for tests.
pub(in super::super) async fn sleep(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    if !session.config().test_mode {
        return Err(error("ERR DEBUG command not allowed outside of test mode"));
    }
    let seconds = text(&words[2])?.parse::<f64>().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let duration = duration.ok_or_else(|| error("ERR value is not a valid float"))?;
    tokio::time::sleep(duration).await;
    Ok(Reply::OK)
}
