//! Copying a namespace from one home to another, whatever they are.

use trefoil_core::{Error, NamespaceId, Result};
use trefoil_storage::{Group, Storage};

use super::{Gaps, open_storage};
use crate::home::{Claim, Home, Stamp};
use crate::{Database, Options, namespaces};

/// The entry of a namespace that is not yet whole. It is no entry that a server takes for one, so a
/// copy that was cut short is damage until it is made again, and never an empty namespace.
const UNFINISHED: &[u8] = b"a copy that was not finished: copy it again";

/// What copying a namespace did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// How many commits were copied.
    pub commits: u64,
    /// How many events.
    pub events: u64,
}

/// How far copying a namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// The log is being copied.
    Log {
        /// The last commit that was copied.
        done: u64,
        /// The last commit there is.
        total: u64,
    },
    /// The snapshot of the state is being copied.
    State {
        /// How many entries were copied.
        done: u64,
        /// How many there are.
        total: u64,
    },
    /// The index is being made.
    Index,
}

/// Copies a namespace: its entry in the registry, its log, its state, and when something of it is
/// due. The index is made anew. Nothing is changed in the home that it comes from; in the other there
/// must be no namespace of this id. A copy that was cut short is removed and made again.
pub fn copy_namespace(
    from: &dyn Home,
    to: &dyn Home,
    id: &NamespaceId,
    options: &Options,
    progress: &mut dyn FnMut(CopyStep),
) -> Result<Copied> {
    let entry = from.entry(id)?;
    let entry = entry.ok_or_else(|| Error::NamespaceNotFound(id.to_string()))?;
    let is_made = namespaces::is_made(id, &entry)? || from.has_storage(id)?;
    if !is_made {
        remove_unfinished(to, id)?;
        to.create(id, &entry.bytes)?;
        return Ok(Copied::default());
    }
    let source = from.claim(id, entry.stamp.incarnation, true)?;
    let mut copied = Copied::default();
    let mut fill = |target: &dyn Storage| {
        copied = copy_content(source.as_ref(), target, progress)?;
        let due = source.facts()?.due;
        source.release();
        progress(CopyStep::Index);
        Ok(due)
    };
    make_namespace(to, id, &entry.bytes, options, &mut fill, &mut |_| Ok(()))?;
    Ok(copied)
}

/// Makes a namespace whose log and snapshot `fill` writes, which returns when something of it is due.
/// What is left to do in it once it is open, `settle` does. It is a namespace only then. There must be none of this id. What was cut short is
/// removed and made again.
pub(crate) fn make_namespace(
    to: &dyn Home,
    id: &NamespaceId,
    entry: &[u8],
    options: &Options,
    fill: &mut dyn FnMut(&dyn Storage) -> Result<Option<u64>>,
    settle: &mut dyn FnMut(&Database) -> Result<()>,
) -> Result<()> {
    remove_unfinished(to, id)?;
    let stamp = to.create(id, UNFINISHED)?;
    let target = to.claim(id, stamp.incarnation, false)?;
    let storage = open_storage(target.as_ref())?;
    let due = fill(storage.as_ref())?;
    storage.seal()?;
    drop(storage);
    if due.is_some() {
        target.set_due(due)?;
    }
    let database = Database::open_claimed(target, options)?;
    database.checkpoint()?;
    settle(&database)?;
    database.close()?;
    finish(to, id, entry, stamp)
}

/// Removes what an earlier attempt left, and nothing else.
fn remove_unfinished(to: &dyn Home, id: &NamespaceId) -> Result<()> {
    match to.entry(id)? {
        None => Ok(()),
        Some(entry) if entry.bytes == UNFINISHED => {
            let erase = to.delete(id, entry.stamp.incarnation)?;
            erase()
        }
        Some(_) => Err(Error::NamespaceExists(id.to_string())),
    }
}

/// From here on the copy is a namespace.
fn finish(to: &dyn Home, id: &NamespaceId, entry: &[u8], stamp: Stamp) -> Result<()> {
    match to.replace(id, stamp, entry)? {
        Some(_) => Ok(()),
        None => Err(Error::invalid(format!(
            "namespace '{id}' was changed while it was copied"
        ))),
    }
}

/// Copies the log and the snapshot.
fn copy_content(
    source: &dyn Claim,
    to: &dyn Storage,
    progress: &mut dyn FnMut(CopyStep),
) -> Result<Copied> {
    let from = open_storage(source)?;
    let copied = copy_log(from.as_ref(), to, progress)?;
    copy_snapshot(from.as_ref(), to, progress)?;
    Ok(copied)
}

fn copy_log(
    from: &dyn Storage,
    to: &dyn Storage,
    progress: &mut dyn FnMut(CopyStep),
) -> Result<Copied> {
    let limits = to.group_limits();
    let mut copied = Copied::default();
    let (mut group, mut bytes) = (Group::default(), 0);
    let mut gaps = Gaps::default();
    let total = from.end().commit;
    from.replay(0, &mut |record| {
        let record = gaps.fill(record);
        copied.commits += u64::from(record.n_commits);
        copied.events += record.items.len() as u64;
        bytes += record.items.n_bytes() + record.commits.len() + record.changes.len();
        let done = record.last_commit();
        group.records.push(record);
        if bytes >= limits.bytes || group.records.len() >= limits.commits {
            to.append(&std::mem::take(&mut group)).wait()?;
            bytes = 0;
            progress(CopyStep::Log { done, total });
        }
        Ok(())
    })?;
    if !group.records.is_empty() {
        to.append(&group).wait()?;
    }
    gaps.drop_from(to)?;
    let (found, expected) = (to.end(), from.end());
    match found == expected {
        true => Ok(copied),
        false => Err(Error::invalid(format!(
            "the copy of the log ends at commit {}, not at {}",
            found.commit, expected.commit
        ))),
    }
}

fn copy_snapshot(
    from: &dyn Storage,
    to: &dyn Storage,
    progress: &mut dyn FnMut(CopyStep),
) -> Result<()> {
    let Some(snapshot) = from.snapshot() else {
        return Ok(());
    };
    let total = snapshot.entries;
    let mut done = 0;
    to.write_snapshot(snapshot.commit, &mut |sink| {
        from.read_snapshot(&mut |key, value| {
            done += 1;
            if done % 10_000 == 0 {
                progress(CopyStep::State { done, total });
            }
            sink(key.to_vec(), value.to_vec())
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::home::{LocalHome, MemoryHome};
    use crate::{Commit, Namespaces, NamespacesOptions, NewEvent, NewNamespace, Selection, Token};

    /// Opens a home again and again.
    type Open<'a> = &'a dyn Fn() -> Arc<dyn Home>;

    fn id(name: &str) -> NamespaceId {
        NamespaceId::new(name).unwrap()
    }

    fn copy(from: Open<'_>, to: Open<'_>, name: &str) -> Result<Copied> {
        let (from, to) = (from(), to());
        let options = Options::default();
        copy_namespace(from.as_ref(), to.as_ref(), &id(name), &options, &mut |_| {})
    }

    fn namespaces(open: Open<'_>) -> Namespaces {
        Namespaces::open_in(open(), NamespacesOptions::default()).unwrap()
    }

    /// Writes a namespace with events and returns its token.
    fn fill(open: Open<'_>, name: &str, events: u64) -> Token {
        let namespaces = namespaces(open);
        let new = NewNamespace::default();
        let (_, token) = namespaces.create(&id(name), new).unwrap();
        let database = namespaces.database(&id(name)).unwrap();
        for number in 0..events {
            let event = NewEvent::new("account-1", "Deposited", format!(r#"{{"n":{number}}}"#));
            database.commit(Commit::new([event])).unwrap();
        }
        drop(database);
        namespaces.close().unwrap();
        token
    }

    /// Reads what a namespace has, as `token` sees it.
    fn events(open: Open<'_>, name: &str, token: &Token) -> Vec<String> {
        let namespaces = namespaces(open);
        assert_eq!(namespaces.authenticate(token), Some(id(name)));
        let database = namespaces.database(&id(name)).unwrap();
        let read = database.read(&Selection::category("account")).unwrap();
        let events = read.iter().map(|event| format!("{event:?}")).collect();
        drop(database);
        namespaces.close().unwrap();
        events
    }

    #[test]
    fn a_copy_has_everything_and_the_source_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str| -> Arc<dyn Home> {
            let path = directory.path().join(name);
            Arc::new(LocalHome::open(path, Options::default().local()).unwrap())
        };
        let (a, b): (Open<'_>, Open<'_>) = (&|| open("a"), &|| open("b"));
        let token = fill(a, "tenant", 100);
        let before = events(a, "tenant", &token);
        assert_eq!(before.len(), 100);
        let expected = Copied {
            commits: 100,
            events: 100,
        };
        assert_eq!(copy(a, b, "tenant").unwrap(), expected);
        let again = copy(a, b, "tenant").unwrap_err();
        assert!(matches!(again, Error::NamespaceExists(_)), "{again}");
        assert_eq!(events(b, "tenant", &token), before);
        assert_eq!(events(a, "tenant", &token), before);
    }

    #[test]
    fn a_namespace_that_was_never_used_is_copied() {
        let (first, second) = (Arc::new(MemoryHome::new()), Arc::new(MemoryHome::new()));
        let (a, b): (Open<'_>, Open<'_>) = (&|| first.clone(), &|| second.clone());
        let created = namespaces(a).create(&id("new"), NewNamespace::default());
        let (_, token) = created.unwrap();
        assert_eq!(copy(a, b, "new").unwrap(), Copied::default());
        assert!(events(b, "new", &token).is_empty());
        let absent = copy(a, b, "absent").unwrap_err();
        assert!(matches!(absent, Error::NamespaceNotFound(_)), "{absent}");
    }

    #[test]
    fn a_copy_that_was_cut_short_is_no_namespace_and_is_made_again() {
        let (first, second) = (Arc::new(MemoryHome::new()), Arc::new(MemoryHome::new()));
        let (a, b): (Open<'_>, Open<'_>) = (&|| first.clone(), &|| second.clone());
        let token = fill(a, "tenant", 10);
        b().create(&id("tenant"), UNFINISHED).unwrap();
        assert!(namespaces(b).database(&id("tenant")).is_err());
        assert_eq!(copy(a, b, "tenant").unwrap().events, 10);
        assert_eq!(events(b, "tenant", &token).len(), 10);
    }
}
