//! What `COMMAND` and `ACL CAT` tell of each command: `catalogue.txt` and `documents.txt`, read once, and
//! what commands of applications say of themselves.

use bytes::Bytes;
use hashbrown::HashMap;
use trefoil::application::Application;
use trefoil::{CommandAccess, CommandSpec, Commands};

use super::super::words::{integer, is};
use super::documents::{CommandDocument, documents};
use super::{FoundCommand, by_name};
use crate::VERSION;

/// The categories of commands, in Redis' order and as it writes them.
pub(super) const CATEGORIES: [&str; 21] = [
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
];

/// What is known of a command.
#[derive(Debug)]
pub(super) struct CatalogueEntry {
    /// The name in lower case, with the name of the subcommand after a `|`.
    pub(super) name: &'static str,
    pub(super) arity: i32,
    pub(super) since: &'static str,
    pub(super) group: &'static str,
    pub(super) document: CommandDocument,
    pub(super) flags: Vec<&'static str>,
    pub(super) categories: Vec<&'static str>,
    pub(super) tips: Vec<&'static str>,
    pub(super) keys: Vec<KeySpec>,
}

/// How to find some of a command's keys.
#[derive(Debug)]
pub(super) struct KeySpec {
    pub(super) flags: Vec<&'static str>,
    pub(super) place: KeyPlace,
}

/// Where keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPlace {
    /// From the argument `first` on; `last` is counted from there, or from the end if negative.
    Range {
        first: usize,
        last: i32,
        step: usize,
    },
    /// As many as the argument `count` says, after it.
    Counted { count: usize, step: usize },
    /// Somewhere.
    Unknown,
}

/// Every command of the server, and what is told of it.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// The commands that have no subcommands, by name.
    pub(super) by_name: HashMap<&'static [u8], FoundCommand>,
    /// Every command and every subcommand, by name.
    entries: Vec<CatalogueEntry>,
}

impl Catalogue {
    /// The commands of the server itself, and these on the state.
    pub(crate) fn new(commands: &Commands) -> Self {
        let lines = include_str!("catalogue.txt").lines();
        let lines = lines.filter(|line| !line.starts_with('#'));
        let mut documents = documents();
        let parsed = lines.filter_map(|line| parse(line, &mut documents));
        let mut entries: Vec<CatalogueEntry> = parsed.collect();
        for application in commands.applications() {
            let specs = application.commands().iter();
            entries
                .extend(specs.filter_map(|spec| CatalogueEntry::of_application(application, spec)));
        }
        entries.sort_unstable_by_key(|entry| entry.name);
        Self {
            by_name: by_name(commands),
            entries,
        }
    }

    /// Returns every command and every subcommand, by name.
    pub(super) fn entries(&self) -> impl Iterator<Item = &CatalogueEntry> {
        self.entries.iter()
    }

    /// Returns the command of this name in lower case.
    pub(super) fn entry(&self, name: &str) -> Option<&CatalogueEntry> {
        let found = self.entries.binary_search_by_key(&name, |entry| entry.name);
        found.ok().map(|index| &self.entries[index])
    }

    /// Returns the names of all commands, subcommands included.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|entry| entry.name)
    }
}

/// Reads a line; the document of the command is taken.
fn parse(
    line: &'static str,
    documents: &mut HashMap<&'static str, CommandDocument>,
) -> Option<CatalogueEntry> {
    let mut parts = line.split('|').map(str::trim);
    // The name of a subcommand has such a line in it as well.
    let (mut name, mut head) = ("", parts.next()?);
    if !head.contains(' ') {
        name = head;
        head = parts.next()?;
    }
    let mut words = head.split(' ');
    let last = words.next()?;
    let name = match name {
        "" => last,
        container => &line[..container.len() + 1 + last.len()],
    };
    let arity = words.next()?.parse().ok()?;
    let since = words.next()?;
    let group = words.next()?;
    let mut list = || Some(parts.next()?.split_whitespace().collect::<Vec<_>>());
    let (flags, categories, tips) = (list()?, list()?, list()?);
    let keys = list()?.into_iter().map(parse_key).collect::<Option<_>>()?;
    Some(CatalogueEntry {
        name,
        arity,
        since: if since == "-" { VERSION } else { since },
        group,
        document: documents.remove(name)?,
        categories: all_categories(&flags, &categories),
        flags,
        tips,
        keys,
    })
}

/// The categories of a command, those included that follow from its flags.
fn all_categories(flags: &[&str], besides: &[&str]) -> Vec<&'static str> {
    let has = |flag| flags.contains(&flag);
    let is_in = |category: &&str| {
        let category = category.trim_start_matches('@');
        let follows = match category {
            "read" => has("readonly"),
            "write" => has("write"),
            "admin" | "dangerous" => has("admin"),
            "fast" => has("fast"),
            "slow" => !has("fast"),
            _ => false,
        };
        follows || besides.contains(&category)
    };
    CATEGORIES.into_iter().filter(is_in).collect()
}

fn parse_key(text: &'static str) -> Option<KeySpec> {
    let (place, flags) = text.split_once(':')?;
    let flags = flags.split(',').collect();
    let (place, step) = place.split_once('/').unwrap_or((place, "1"));
    let step = step.parse().ok()?;
    let place = match place.strip_prefix('#') {
        Some(count) => KeyPlace::Counted {
            count: count.parse().ok()?,
            step,
        },
        None if place == "?" => KeyPlace::Unknown,
        None => {
            let (first, last) = place.split_once("..").unwrap_or((place, "0"));
            KeyPlace::Range {
                first: first.parse().ok()?,
                last: last.parse().ok()?,
                step,
            }
        }
    };
    Some(KeySpec { flags, place })
}

impl CatalogueEntry {
    /// What is known of a command of an application.
    fn of_application(application: &Application, spec: &CommandSpec) -> Option<Self> {
        let (flags, key_flags) = match spec.access {
            CommandAccess::FastRead => (vec!["readonly", "fast"], vec!["RO", "access"]),
            CommandAccess::Read => (vec!["readonly"], vec!["RO", "access"]),
            CommandAccess::Write => (vec!["write", "denyoom"], vec!["RW", "access", "update"]),
        };
        let keys = spec.keys;
        let first = usize::try_from(keys.first).unwrap_or_default();
        let last = if keys.last < 0 {
            keys.last
        } else {
            keys.last - keys.first
        };
        let step = usize::try_from(keys.step).unwrap_or(1);
        let place = KeyPlace::Range { first, last, step };
        let keys = KeySpec {
            flags: key_flags,
            place,
        };
        let summary = match spec.summary {
            "" => application.summary(),
            summary => summary,
        };
        Some(Self {
            name: spec.name,
            arity: spec.arity,
            since: VERSION,
            group: "trefoil",
            document: CommandDocument::new(spec.syntax, summary, None)?,
            categories: all_categories(&flags, &[]),
            flags,
            tips: Vec::new(),
            keys: if first > 0 { vec![keys] } else { Vec::new() },
        })
    }

    /// The command that has subcommands of which this is one.
    pub(super) fn container(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(container, _)| container)
    }

    /// The first key, the last and the step between them, in the words of old clients: what is in
    /// one piece.
    pub(super) fn range(&self) -> [i64; 3] {
        let mut range: Option<[i64; 3]> = None;
        for spec in &self.keys {
            let KeyPlace::Range { first, last, step } = spec.place else {
                continue;
            };
            let (first, last) = (first as i64, i64::from(last));
            let last = if last < 0 { last } else { first + last };
            range = match range {
                None => Some([first, last, step as i64]),
                Some([from, to, 1]) if to == first - 1 && step == 1 => Some([from, last, 1]),
                other => other,
            };
        }
        range.unwrap_or_default()
    }

    /// The keys among the words of a request; `None` if they are not as the command wants them.
    pub(super) fn keys_of<'a>(&self, words: &'a [Bytes]) -> Option<Vec<&'a Bytes>> {
        let mut keys = Vec::new();
        for spec in &self.keys {
            let (first, last, step) = match spec.place {
                KeyPlace::Range { first, last, step } => {
                    let counted = match usize::try_from(last) {
                        Ok(last) => first.checked_add(last)?,
                        Err(_) => words.len().checked_sub(last.unsigned_abs() as usize)?,
                    };
                    (first, counted, step)
                }
                KeyPlace::Counted { count, step } => {
                    let n_keys = usize::try_from(integer(words.get(count)?).ok()?).ok()?;
                    let last = n_keys.checked_sub(1)?.checked_mul(step)?;
                    (count + 1, last.checked_add(count + 1)?, step)
                }
                // The only one that is to be found: where the result goes.
                KeyPlace::Unknown if spec.flags.contains(&"OW") => {
                    keys.extend(stored_by_sort(words));
                    continue;
                }
                KeyPlace::Unknown => continue,
            };
            if last < first || last >= words.len() {
                return None;
            }
            keys.extend(words[first..=last].iter().step_by(step));
        }
        Some(keys)
    }
}

/// Where `SORT` puts its result, if it does.
fn stored_by_sort(words: &[Bytes]) -> Option<&Bytes> {
    let mut found = None;
    let mut at = 2;
    while let Some(word) = words.get(at) {
        let n_values = match word {
            word if is(word, "limit") => 2,
            word if is(word, "get") || is(word, "by") => 1,
            word if is(word, "store") => {
                found = words.get(at + 1).or(found);
                0
            }
            _ => 0,
        };
        at += 1 + n_values;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use trefoil::{Options, Scope};

    use super::super::{CONTAINERS, OWN};
    use super::*;
    use crate::need::Need;

    fn catalogue() -> Catalogue {
        Catalogue::new(&Options::default().commands)
    }

    #[test]
    fn every_line_is_understood_and_in_order() {
        let lines = include_str!("catalogue.txt").lines();
        let lines: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
        let mut documents = documents();
        let parsed = lines.iter().filter_map(|line| parse(line, &mut documents));
        let parsed: Vec<CatalogueEntry> = parsed.collect();
        assert_eq!(parsed.len(), lines.len());
        let left: Vec<&&str> = documents.keys().collect();
        assert!(left.is_empty(), "no such commands: {left:?}");
        assert!(parsed.is_sorted_by_key(|entry| entry.name));
        let catalogue = catalogue();
        for entry in &parsed {
            assert!(
                entry
                    .container()
                    .is_none_or(|name| catalogue.entry(name).is_some())
            );
        }
    }

    #[test]
    fn every_command_is_written_as_it_may_be() {
        let catalogue = catalogue();
        for entry in catalogue.entries() {
            let arguments = &entry.document.arguments;
            let n_least: usize = arguments.iter().map(|argument| argument.n_least()).sum();
            let n_least = n_least + entry.name.split('|').count();
            let is_container = catalogue.subcommands(entry).next().is_some();
            if !is_container {
                assert_eq!(
                    n_least,
                    entry.arity.unsigned_abs() as usize,
                    "{}",
                    entry.name
                );
                let may_vary = arguments.iter().any(|argument| argument.may_vary());
                assert!(entry.arity < 0 || !may_vary, "{}", entry.name);
            }
        }
    }

    #[test]
    fn every_command_is_told_of_as_it_is() {
        let catalogue = catalogue();
        let mut names: BTreeSet<&str> = catalogue.names().collect();
        for spec in Options::default().commands.iter() {
            let entry = catalogue
                .entry(spec.name)
                .unwrap_or_else(|| panic!("{}", spec.name));
            names.remove(spec.name);
            assert_eq!(entry.arity, spec.arity, "{}", spec.name);
            if ["object", "memory"].contains(&spec.name) {
                continue;
            }
            let writes = spec.access == CommandAccess::Write;
            assert_eq!(entry.flags.contains(&"write"), writes, "{}", spec.name);
            assert_eq!(entry.flags.contains(&"readonly"), !writes, "{}", spec.name);
            let takes_room = entry.flags.contains(&"denyoom");
            assert_eq!(takes_room, spec.takes_room(), "{}", spec.name);
            let keys = [spec.keys.first, spec.keys.last, spec.keys.step].map(i64::from);
            assert_eq!(entry.range(), keys, "{}", spec.name);
            let is_movable = |spec: &KeySpec| !matches!(spec.place, KeyPlace::Range { .. });
            let is_movable = entry.keys.iter().any(is_movable);
            assert_eq!(
                entry.flags.contains(&"movablekeys"),
                is_movable,
                "{}",
                spec.name
            );
        }
        for own in OWN {
            let entry = catalogue
                .entry(own.name)
                .unwrap_or_else(|| panic!("{}", own.name));
            let is_for_admins = own.need == Need::Whole(Scope::Admin);
            assert_eq!(
                entry.flags.contains(&"admin"),
                is_for_admins,
                "{}",
                own.name
            );
            names.remove(own.name);
            assert_eq!(entry.arity, own.arity, "{}", own.name);
        }
        // What is left is subcommands of commands on the state, and commands that have others.
        names.retain(|name| !name.starts_with("object|") && !name.starts_with("memory|"));
        let mut names = names.iter();
        assert!(names.all(|name| CONTAINERS.contains(name)), "{names:?}");
    }
}
