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
use trefoil::Reply;
use trefoil::redis::matches_glob;

use super::super::session::Session;
use super::super::words::{ReplyResult, Words, error, syntax_error};
use super::catalogue::{CATEGORIES, Catalogue, CatalogueEntry, KeyPlace, KeySpec};
use super::syntax;
use super::{beginning, help_lines, lower};
use crate::limits::RESP_REPEATED_BYTES_MAX;

pub(super) fn help(_: &mut Session, _: &[Bytes]) -> ReplyResult {
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

fn catalogue(session: &Session) -> &Catalogue {
    &session.shared().resp.catalogue
}

impl Catalogue {
    /// Every command, subcommands aside: those are told of with the command they belong to.
    fn whole(&self) -> impl Iterator<Item = &CatalogueEntry> {
        self.entries().filter(|entry| entry.container().is_none())
    }

    /// The subcommands of a command.
    pub(super) fn subcommands(
        &self,
        container: &CatalogueEntry,
    ) -> impl Iterator<Item = &CatalogueEntry> {
        let name = container.name;
        self.entries()
            .filter(move |entry| entry.container() == Some(name))
    }

    fn by_name(&self, name: &[u8]) -> Option<&CatalogueEntry> {
        self.entry(&lower(name)?)
    }
}

pub(super) fn all(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    let catalogue = catalogue(session);
    let described = catalogue.whole().map(|entry| describe(catalogue, entry));
    Ok(Reply::Array(described.collect()))
}

pub(super) fn count(session: &mut Session, _: &[Bytes]) -> ReplyResult {
    Ok(Reply::count(catalogue(session).whole().count()))
}

pub(super) fn info(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    if words.len() == 2 {
        return all(session, words);
    }
    let names = words[2..].iter();
    let catalogue = catalogue(session);
    let info = |name: &Bytes| match catalogue.by_name(name) {
        Some(entry) => describe(catalogue, entry),
        None => Reply::Nil,
    };
    Ok(Reply::Array(names.map(info).collect()))
}

fn describe(catalogue: &Catalogue, entry: &CatalogueEntry) -> Reply {
    let simple = |words: &[&'static str]| {
        Reply::Set(words.iter().map(|&word| Reply::Simple(word)).collect())
    };
    let tips = entry.tips.iter().map(|tip| Reply::bulk(*tip));
    let [first, last, step] = entry.range().map(Reply::Integer);
    let subcommands = catalogue.subcommands(entry);
    Reply::Array(vec![
        Reply::bulk(entry.name),
        Reply::Integer(i64::from(entry.arity)),
        simple(&entry.flags),
        first,
        last,
        step,
        simple(&entry.categories),
        Reply::Set(tips.collect()),
        Reply::Set(entry.keys.iter().map(describe_keys).collect()),
        Reply::Set(subcommands.map(|sub| describe(catalogue, sub)).collect()),
    ])
}

fn describe_keys(spec: &KeySpec) -> Reply {
    let flags = spec.flags.iter().map(|&flag| Reply::Simple(flag));
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let (begin, keys) = match spec.place {
        KeyPlace::Unknown => (part("unknown", &[]), part("unknown", &[])),
        KeyPlace::Range { first, last, step } => (
            part("index", &[("index", number(first))]),
            part(
                "range",
                &[
                    ("lastkey", i64::from(last)),
                    ("keystep", number(step)),
                    ("limit", 0),
                ],
            ),
        ),
        KeyPlace::Counted { count, step } => (
            part("index", &[("index", number(count))]),
            part(
                "keynum",
                &[("keynumidx", 0), ("firstkey", 1), ("keystep", number(step))],
            ),
        ),
    };
    Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(flags.collect())),
        (Reply::bulk("begin_search"), begin),
        (Reply::bulk("find_keys"), keys),
    ])
}

/// One of the two parts of how keys are found.
fn part(kind: &'static str, numbers: &[(&'static str, i64)]) -> Reply {
    let numbers = numbers.iter();
    let numbers = numbers.map(|(name, value)| (Reply::bulk(*name), Reply::Integer(*value)));
    Reply::Map(vec![
        (Reply::bulk("type"), Reply::bulk(kind)),
        (Reply::bulk("spec"), Reply::Map(numbers.collect())),
    ])
}

pub(super) fn docs(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let catalogue = catalogue(session);
    let names = words[2..].iter();
    let wanted: Vec<_> = match &words[2..] {
        [] => catalogue.whole().collect(),
        _ => names.filter_map(|name| catalogue.by_name(name)).collect(),
    };
    let documents = wanted.into_iter().map(|entry| document(catalogue, entry));
    Ok(Reply::Map(documents.collect()))
}

fn document(catalogue: &Catalogue, entry: &CatalogueEntry) -> (Reply, Reply) {
    let told = &entry.document;
    let texts = [
        ("summary", Some(told.summary)),
        ("since", Some(entry.since)),
        ("group", Some(entry.group)),
        ("complexity", told.complexity),
    ];
    let texts = texts.into_iter();
    let texts = texts.filter_map(|(name, text)| Some((Reply::bulk(name), Reply::bulk(text?))));
    let mut pairs: Vec<_> = texts.collect();
    if !told.arguments.is_empty() {
        let arguments = syntax::replies(&told.arguments);
        pairs.push((Reply::bulk("arguments"), arguments));
    }
    let parts = catalogue.subcommands(entry);
    let parts: Vec<_> = parts.map(|sub| document(catalogue, sub)).collect();
    if !parts.is_empty() {
        pairs.push((Reply::bulk("subcommands"), Reply::Map(parts)));
    }
    (Reply::bulk(entry.name), Reply::Map(pairs))
}

pub(super) fn list(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let mut words = Words::after(words, 2);
    let mut wanted: Vec<&CatalogueEntry> = catalogue(session).entries().collect();
    if words.take("filterby") {
        if words.take("pattern") {
            let pattern = words.word()?.to_ascii_lowercase();
            wanted.retain(|entry| matches_glob(&pattern, entry.name.as_bytes()));
        } else if words.take("aclcat") {
            let category = words.word()?.to_ascii_lowercase();
            wanted.retain(|entry| is_in(entry, &category));
        } else if words.take("module") {
            words.word()?;
            wanted.clear();
        } else {
            return Err(syntax_error());
        }
    }
    if !words.is_empty() {
        return Err(syntax_error());
    }
    Ok(names(wanted.into_iter()))
}

fn names<'a>(entries: impl Iterator<Item = &'a CatalogueEntry>) -> Reply {
    Reply::Array(entries.map(|entry| Reply::bulk(entry.name)).collect())
}

/// Returns whether a command is of a category, which is named without its `@`.
fn is_in(entry: &CatalogueEntry, category: &[u8]) -> bool {
    let mut categories = entry.categories.iter();
    categories.any(|&name| plain(name).as_bytes() == category)
}

fn plain(category: &'static str) -> &'static str {
    category.trim_start_matches('@')
}

/// `ACL CAT [category]`
pub(super) fn categories(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let Some(category) = words.get(2) else {
        let names = CATEGORIES.map(|name| Reply::bulk(plain(name)));
        return Ok(Reply::Array(names.into()));
    };
    let category = category.to_ascii_lowercase();
    let mut known = CATEGORIES.into_iter().map(plain);
    if !known.any(|name| name.as_bytes() == category) {
        let category = beginning(&category, RESP_REPEATED_BYTES_MAX);
        return Err(error(format!("ERR Unknown category '{category}'")));
    }
    let entries = catalogue(session).entries();
    Ok(names(entries.filter(|entry| is_in(entry, &category))))
}

pub(super) fn get_keys(session: &mut Session, words: &[Bytes]) -> ReplyResult {
    let catalogue = catalogue(session);
    let words = &words[2..];
    let subcommand = words.get(1).and_then(|word| lower(word));
    let container = lower(&words[0]).unwrap_or_default();
    let subcommand = subcommand.and_then(|name| catalogue.entry(&format!("{container}|{name}")));
    let found = subcommand.or_else(|| catalogue.entry(&container));
    let found = found.ok_or_else(|| error("ERR Invalid command specified"))?;
    let is_right = catalogue.find(words).is_ok();
    if !is_right {
        return Err(error(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    if found.keys.is_empty() {
        return Err(error("ERR The command has no key arguments"));
    }
    match found.keys_of(words) {
        Some(keys) => Ok(Reply::Array(
            keys.into_iter().cloned().map(Reply::Bulk).collect(),
        )),
        None => Err(error("ERR Invalid arguments specified for command")),
    }
}
