//! `COMMAND`: what commands there are.
//!
//! ```text
//! COMMAND | COMMAND COUNT | COMMAND HELP
//! COMMAND INFO [name …]
//! COMMAND DOCS [name …]
//! COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]
//! COMMAND GETKEYS command argument …
//! ```

use bytes::Bytes;
use trefoil::{Access, Reply, commands};
use trefoil_state::matches_glob;

use super::super::session::Session;
use super::super::words::{Answer, Words, error, syntax_error};
use super::{CONTAINERS, Found, OWN, find, help_lines, lower};

pub(super) fn help(_: &mut Session, _: &[Bytes]) -> Answer {
    let lines = [
        "(no subcommand)",
        "COUNT",
        "DOCS [<command-name> ...]",
        "GETKEYS <full-command>",
        "INFO [<command-name> ...]",
        "LIST [FILTERBY (MODULE <module-name>|ACLCAT <cat>|PATTERN <pattern>)]",
    ];
    Ok(help_lines(
        "COMMAND <subcommand> [<arg> ...]. Subcommands are:",
        &lines,
    ))
}

/// Every command, subcommands aside: those are told of by their first word.
fn everything() -> Vec<(&'static str, Option<Found>)> {
    let state = commands().map(|spec| (spec.name, Some(Found::State(spec))));
    let is_whole = |name: &str| !name.contains('|') && !CONTAINERS.contains(&name);
    let own = OWN.iter().filter(|own| is_whole(own.name));
    let own = own.map(|own| (own.name, Some(Found::Own(own))));
    let containers = CONTAINERS.into_iter().map(|name| (name, None));
    state.chain(own).chain(containers).collect()
}

fn by_name(name: &[u8]) -> Option<(&'static str, Option<Found>)> {
    let name = lower(name)?;
    everything().into_iter().find(|(known, _)| *known == name)
}

pub(super) fn all(_: &mut Session, _: &[Bytes]) -> Answer {
    Ok(Reply::Array(
        everything().into_iter().map(describe).collect(),
    ))
}

pub(super) fn count(_: &mut Session, _: &[Bytes]) -> Answer {
    Ok(Reply::count(everything().len()))
}

pub(super) fn info(session: &mut Session, words: &[Bytes]) -> Answer {
    if words.len() == 2 {
        return all(session, words);
    }
    let names = words[2..].iter();
    let info = |name: &Bytes| by_name(name).map_or(Reply::NilArray, describe);
    Ok(Reply::Array(names.map(info).collect()))
}

fn describe((name, found): (&'static str, Option<Found>)) -> Reply {
    let (arity, flags, keys) = match found {
        Some(Found::State(spec)) => {
            let flags: &[&'static str] = match spec.access {
                Access::Write => &["write"],
                Access::Read => &["readonly"],
                Access::FastRead => &["readonly", "fast"],
            };
            let keys = [spec.keys.first, spec.keys.last, spec.keys.step];
            (spec.arity, flags, keys)
        }
        Some(Found::Own(own)) => (own.arity, [].as_slice(), [0; 3]),
        None => (-2, [].as_slice(), [0; 3]),
    };
    let flags = flags.iter().map(|flag| Reply::Simple(flag)).collect();
    let integer = |n: i32| Reply::Integer(i64::from(n));
    let [first, last, step] = keys.map(integer);
    Reply::Array(vec![
        Reply::bulk(name),
        integer(arity),
        Reply::Set(flags),
        first,
        last,
        step,
        // Categories, tips, the ways to find keys, and subcommands.
        Reply::Set(Vec::new()),
        Reply::Set(Vec::new()),
        Reply::Set(Vec::new()),
        Reply::Set(Vec::new()),
    ])
}

/// What belongs together, in Redis' words.
fn group(found: Option<Found>) -> &'static str {
    match found {
        Some(Found::State(_)) => "generic",
        Some(Found::Own(own)) if own.name.contains('.') => "module",
        _ => "server",
    }
}

pub(super) fn docs(_: &mut Session, words: &[Bytes]) -> Answer {
    let wanted: Vec<_> = match &words[2..] {
        [] => everything(),
        names => names.iter().filter_map(|name| by_name(name)).collect(),
    };
    let doc = |(name, found): (&'static str, Option<Found>)| {
        let summary = "See docs/state.md and docs/resp.md";
        let doc = [
            ("summary", summary),
            ("since", "7.0.0"),
            ("group", group(found)),
        ];
        let doc = doc.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value)));
        (Reply::bulk(name), Reply::Map(doc.into()))
    };
    Ok(Reply::Map(wanted.into_iter().map(doc).collect()))
}

pub(super) fn list(_: &mut Session, words: &[Bytes]) -> Answer {
    let mut words = Words::after(words, 2);
    let mut all = everything();
    if words.take("filterby") {
        if words.take("pattern") {
            let pattern = words.word()?.to_ascii_lowercase();
            all.retain(|(name, _)| matches_glob(&pattern, name.as_bytes()));
        } else if words.take("module") || words.take("aclcat") {
            words.word()?;
            all.clear();
        } else {
            return Err(syntax_error());
        }
    }
    if !words.is_empty() {
        return Err(syntax_error());
    }
    let names = all.into_iter().map(|(name, _)| Reply::bulk(name));
    Ok(Reply::Array(names.collect()))
}

pub(super) fn get_keys(_: &mut Session, words: &[Bytes]) -> Answer {
    let words = &words[2..];
    by_name(&words[0]).ok_or_else(|| error("ERR Invalid command specified"))?;
    let wrong = |_| error("ERR Invalid number of arguments specified for command");
    let keys = match find(words).map_err(wrong)? {
        Found::State(spec) => spec.keys,
        Found::Own(_) => return Err(error("ERR The command has no key arguments")),
    };
    let count = i64::try_from(words.len()).unwrap_or(i64::MAX);
    let last = match i64::from(keys.last) {
        last @ ..0 => count + last,
        last => last,
    };
    let (first, step) = (usize::try_from(keys.first), usize::try_from(keys.step));
    match (first, usize::try_from(last), step) {
        (Ok(first @ 1..), Ok(last), Ok(step @ 1..)) => {
            let keys = (first..=last).step_by(step).filter_map(|at| words.get(at));
            Ok(Reply::Array(keys.cloned().map(Reply::Bulk).collect()))
        }
        _ => Err(error("ERR The command has no key arguments")),
    }
}
