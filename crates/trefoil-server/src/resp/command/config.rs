//! `CONFIG GET pattern …`, `CONFIG SET parameter value …` and `CONFIG RESETSTAT`.
//!
//! What is told is what is true of this server in Redis' words. Nothing of it can be changed while
//! the server runs, so `SET` accepts what is so anyway and refuses the rest.

use std::time::Duration;

use bytes::Bytes;
use trefoil::Reply;
use trefoil::limits::REQUEST_BYTES_MAX;
use trefoil::redis::matches_glob;

use super::super::session::Session;
use super::super::words::{ReplyResult, error};
use super::help_lines;
use crate::Config;
use crate::limits::RESP_REQUEST_BYTES_MAX;
use crate::requests::SLOW_REQUESTS_MAX;

/// A parameter and what it is.
type Parameter = (&'static str, fn(&Config) -> String);

const PARAMETERS: &[Parameter] = &[
    ("appendfsync", |_| "always".into()),
    ("appendonly", |_| "yes".into()),
    ("client-query-buffer-limit", |_| {
        RESP_REQUEST_BYTES_MAX.to_string()
    }),
    ("cluster-enabled", |_| "no".into()),
    ("databases", |_| "1".into()),
    ("maxclients", |config| config.connections_max.to_string()),
    ("maxmemory", |_| "0".into()),
    ("maxmemory-policy", |_| "noeviction".into()),
    ("notify-keyspace-events", |_| String::new()),
    ("proto-max-bulk-len", |_| REQUEST_BYTES_MAX.to_string()),
    ("save", |_| String::new()),
    ("slowlog-log-slower-than", |config| {
        let micros = |limit: Duration| limit.as_micros().to_string();
        config.slow_after.map_or_else(|| "-1".into(), micros)
    }),
    ("slowlog-max-len", |_| SLOW_REQUESTS_MAX.to_string()),
    ("timeout", |_| "0".into()),
];

pub(super) fn help(_: &mut Session, _: &[Bytes]) -> ReplyResult {
    let lines = [
        "GET <pattern> [<pattern> ...]",
        "RESETSTAT",
        "SET <directive> <value>",
    ];
    Ok(help_lines(
        "CONFIG <subcommand> [<arg> ...]. Subcommands are:",
        &lines,
    ))
}

pub(super) fn get(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let patterns: Vec<Vec<u8>> = words[2..]
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .collect();
    let is_wanted = |(name, _): &&Parameter| {
        let mut patterns = patterns.iter();
        patterns.any(|pattern| matches_glob(pattern, name.as_bytes()))
    };
    let config = session.config();
    let parameters = PARAMETERS.iter().filter(is_wanted);
    let tell = |(name, value): &Parameter| (Reply::bulk(*name), Reply::bulk(value(config)));
    Ok(Reply::Map(parameters.map(tell).collect()))
}

/// What is counted is of the whole server, so only the administrator may begin anew.
pub(super) fn reset_statistics(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    if !session.is_administrator() {
        return Err(error(
            "NOPERM statistics are of the whole server, and can be reset from the namespace \
             'default' only",
        ));
    }
    let shared = session.shared();
    shared.resp.reset_statistics(&shared.metrics.resp);
    Ok(Reply::OK)
}

pub(super) fn set(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let pairs = words[2..].chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(error(
            "ERR wrong number of arguments for 'config|set' command",
        ));
    }
    let config = session.config();
    for pair in pairs {
        let given = String::from_utf8_lossy(&pair[0]);
        let is_meant = |(name, _): &&Parameter| given.eq_ignore_ascii_case(name);
        let Some((name, value)) = PARAMETERS.iter().find(is_meant) else {
            return Err(error(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{given}'"
            )));
        };
        if value(config).as_bytes() != pair[1] {
            return Err(error(format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - can't set \
                 immutable config"
            )));
        }
    }
    Ok(Reply::OK)
}
