//! A backup that is restored is what was there at its commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use trefoil_core::{Error, ImportedEvent, NamespaceId, Result, Timestamp, Tracking};

use super::*;
use crate::home::{Home, LocalHome, MemoryHome};
use crate::{
    Call, Clock, Commit, Database, List, ManualTime, Namespaces, NamespacesOptions, NewEvent,
    NewNamespace, Options, Reply, Selection, TimeSource as _, Token, Transaction,
};

/// A backup with its parts, and how many of them were read to make it.
#[derive(Default, Clone)]
struct Kept {
    list: Option<NamespaceBackup>,
    parts: HashMap<String, Vec<u8>>,
    n_read: usize,
    n_heads: usize,
    /// How many parts were new.
    n_new: usize,
}

impl Kept {
    fn take(&mut self, before: Option<&NamespaceBackup>, step: BackupStep) -> Result<()> {
        match step {
            BackupStep::Head(head) => {
                self.n_heads += 1;
                self.list = Some(NamespaceBackup::begin("tenant", &head, before).unwrap());
            }
            BackupStep::Part(part) => {
                self.n_read += 1;
                self.add(part);
            }
        }
        Ok(())
    }

    fn add(&mut self, part: BackupPart) {
        let reference = self.list.as_mut().unwrap().add(&part).unwrap();
        let before = self.parts.insert(reference.hash, part.bytes);
        self.n_new += usize::from(before.is_none());
    }

    fn list(&self) -> &NamespaceBackup {
        self.list.as_ref().unwrap()
    }

    fn fetch(&self) -> impl FnMut(&PartReference) -> Result<Vec<u8>> + '_ {
        |part| part.check(self.parts[&part.hash].clone())
    }

    /// Restores it into a new home and opens that.
    fn restored(&self, name: &str) -> (Namespaces, Option<Token>) {
        let home = Arc::new(MemoryHome::new());
        let (id, options) = (id(name), Options::default());
        let token = restore_namespace(
            home.as_ref(),
            &id,
            self.list(),
            RestoreOrder::default(),
            &options,
            &mut self.fetch(),
        );
        let namespaces = Namespaces::open_in(home, NamespacesOptions::default()).unwrap();
        (namespaces, token.unwrap().token)
    }
}

fn id(name: &str) -> NamespaceId {
    NamespaceId::new(name).unwrap()
}

fn back_up(namespaces: &Namespaces, before: Option<&Kept>) -> Kept {
    let mut kept = before.cloned().unwrap_or_default();
    (kept.n_read, kept.n_heads, kept.n_new) = (0, 0, 0);
    let before = kept.list.take();
    let base = before.as_ref().map(NamespaceBackup::base);
    let mut cutter = LogCutter::default();
    let take = &mut |step| match step {
        BackupStep::Part(part) if part.kind == PartKind::Log => {
            kept.n_read += 1;
            cutter
                .add(part)?
                .into_iter()
                .for_each(|part| kept.add(part));
            Ok(())
        }
        BackupStep::Head(head) => {
            cutter = LogCutter::new(&head, before.as_ref());
            kept.take(before.as_ref(), BackupStep::Head(head))
        }
        step => kept.take(before.as_ref(), step),
    };
    let made = namespaces.backup("tenant", &base.unwrap_or_default(), take);
    made.unwrap();
    cutter.finish().into_iter().for_each(|part| kept.add(part));
    assert!(kept.list().is_whole());
    kept
}

fn call(line: &str) -> Call {
    let words = line
        .split(' ')
        .map(|word| bytes::Bytes::from(word.to_owned()));
    Call::new(words.collect()).unwrap().unwrap()
}

fn run(database: &Database, line: &str) {
    database.transact(Transaction::of_call(call(line))).unwrap();
}

fn write(database: &Database, events: std::ops::Range<u32>) {
    for number in events {
        let event = NewEvent::new("account-1", "Deposited", format!(r#"{{"n":{number}}}"#));
        database.commit(Commit::new([event])).unwrap();
        run(database, &format!("SET key:{} {number}", number % 7));
        run(database, &format!("RPUSH list {number}"));
    }
    let mut tracked = Commit::new([NewEvent::new("read-1", "Read", "{}")]);
    tracked.tracking = Some(Tracking {
        source: "other".to_owned(),
        position: database.head().unwrap(),
    });
    database.commit(tracked).unwrap();
}

/// Everything that clients can see.
fn seen(database: &Database) -> (Vec<String>, Vec<Reply>, Vec<Tracking>) {
    let events = database.read(&Selection::all()).unwrap();
    let mut looks: Vec<Call> = (0..7).map(|n| call(&format!("GET key:{n}"))).collect();
    looks.extend([call("LRANGE list 0 -1"), call("DBSIZE")]);
    (
        events.iter().map(|event| format!("{event:?}")).collect(),
        database.look(&looks).unwrap(),
        database.trackings(&List::new(100)).unwrap(),
    )
}

fn tenant(home: Arc<dyn Home>) -> (Namespaces, Database, Token) {
    let namespaces = Namespaces::open_in(home, NamespacesOptions::default()).unwrap();
    let new = NewNamespace::default();
    let (_, token) = namespaces.create(&id("tenant"), new).unwrap();
    let database = Database::clone(&namespaces.database(&id("tenant")).unwrap());
    (namespaces, database, token)
}

#[test]
fn what_is_restored_is_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let local = || LocalHome::open(directory.path(), Options::default().local()).unwrap();
    let (namespaces, database, token) = tenant(Arc::new(local()));
    let unused = back_up(&namespaces, None);
    assert_eq!(unused.list().commit, 0);
    write(&database, 0..50);
    // With a snapshot of which the log has dropped the changes, and changes after it.
    database.compact().unwrap();
    write(&database, 50..80);
    let expected = seen(&database);
    let kept = back_up(&namespaces, None);
    write(&database, 80..90);
    assert!(kept.list().state.is_some() && !kept.list().changes.is_empty());
    let checked = check_backup(kept.list(), &mut kept.fetch()).unwrap();
    assert_eq!(checked.events, 82);
    assert_eq!(checked.commits, kept.list().commit);

    let (restored, new_token) = kept.restored("tenant");
    assert_eq!(new_token, None);
    assert_eq!(restored.authenticate(&token), Some(id("tenant")));
    assert_eq!(seen(&restored.database(&id("tenant")).unwrap()), expected);
    // Under another name it needs another token.
    let (beside, new_token) = kept.restored("beside");
    assert_eq!(beside.authenticate(&token), None);
    assert_eq!(beside.authenticate(&new_token.unwrap()), Some(id("beside")));
    assert_eq!(seen(&beside.database(&id("beside")).unwrap()), expected);

    // A stopped directory gives the same backup as the server that had it open.
    let open = back_up(&namespaces, None);
    drop(database);
    namespaces.close().unwrap();
    let mut closed = Kept::default();
    let base = BackupBase::default();
    backup_namespace(&local(), &id("tenant"), &base, &mut |step| {
        closed.take(None, step)
    })
    .unwrap();
    assert_eq!(closed.list(), open.list());
}

#[test]
fn only_what_changed_is_read_again() {
    let (namespaces, database, _) = tenant(Arc::new(MemoryHome::new()));
    let large = "x".repeat(300_000);
    let write_large = |n: u32| {
        for _ in 0..n {
            let event = NewEvent::new("account-1", "Deposited", format!(r#""{large}""#));
            database.commit(Commit::new([event])).unwrap();
        }
    };
    write_large(40);
    write(&database, 0..20);
    database.compact().unwrap();
    let first = back_up(&namespaces, None);
    assert!(first.list().log.len() >= 3, "{}", first.list().log.len());
    write_large(1);
    let second = back_up(&namespaces, Some(&first));
    // The last part of the log and what changed since, but neither the parts before nor the state.
    assert_eq!(second.n_read, 2);
    assert_eq!(second.list().state, first.list().state);
    let n_kept = first.list().log.len() - 1;
    assert_eq!(second.list().log[..n_kept], first.list().log[..n_kept]);
    assert_eq!(second.list().commit, first.list().commit + 1);
    let whole = back_up(&namespaces, None);
    assert_eq!(whole.list(), second.list());
    let (restored, _) = second.restored("tenant");
    let restored = restored.database(&id("tenant")).unwrap();
    assert_eq!(seen(&restored), seen(&database));
    // A namespace that was made anew is not taken for the one before.
    database.clear().unwrap();
    write(&database, 0..3);
    let third = back_up(&namespaces, Some(&second));
    let (restored, _) = third.restored("tenant");
    let restored = restored.database(&id("tenant")).unwrap();
    assert_eq!(seen(&restored), seen(&database));
}

#[test]
fn a_snapshot_that_is_taken_meanwhile_does_no_harm() {
    let (namespaces, database, _) = tenant(Arc::new(MemoryHome::new()));
    write(&database, 0..30);
    let mut kept = Kept::default();
    let mut expected = None;
    let base = BackupBase::default();
    let made = namespaces.backup("tenant", &base, &mut |step| {
        let is_head = matches!(step, BackupStep::Head(_));
        if is_head && kept.n_heads < 3 {
            // The changes that the backup is about to read are dropped.
            write(&database, 30..40);
            database.compact().unwrap();
        } else if is_head {
            expected = Some(seen(&database));
        } else {
            // What comes later is not part of it.
            run(&database, "SET key:1 later");
            database.compact().unwrap();
        }
        kept.take(None, step)
    });
    made.unwrap();
    assert_eq!(kept.n_heads, 4);
    let (restored, _) = kept.restored("tenant");
    let restored = restored.database(&id("tenant")).unwrap();
    assert_eq!(Some(seen(&restored)), expected);
}

#[test]
fn damage_is_found_wherever_it_is() {
    let (namespaces, database, _) = tenant(Arc::new(MemoryHome::new()));
    write(&database, 0..20);
    database.compact().unwrap();
    write(&database, 20..30);
    let kept = back_up(&namespaces, None);
    let sound = check_backup(kept.list(), &mut kept.fetch()).unwrap();
    assert!(sound.entries > 0 && sound.changes > 0);
    for (_, part) in kept.list().parts() {
        let mut damaged = kept.clone();
        let bytes = damaged.parts.get_mut(&part.hash).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let error = check_backup(kept.list(), &mut damaged.fetch()).unwrap_err();
        assert!(error.to_string().contains(&part.hash), "{error}");
        let home = MemoryHome::new();
        let options = Options::default();
        let restore = |kept: &Kept| {
            let order = RestoreOrder {
                with_new_token: true,
                ..RestoreOrder::default()
            };
            let fetch = &mut kept.fetch();
            restore_namespace(&home, &id("tenant"), kept.list(), order, &options, fetch)
        };
        assert!(matches!(restore(&damaged), Err(Error::Damaged(_))));
        // What was begun is no namespace, and does not stand in the way.
        assert!(restore(&kept).unwrap().token.is_some());
        assert!(matches!(restore(&kept), Err(Error::NamespaceExists(_))));
    }
    // A part that lacks, or is there twice.
    for list in [0, 1, 2] {
        for is_twice in [false, true] {
            let mut changed = kept.list().clone();
            let parts = match list {
                0 => &mut changed.log,
                1 => &mut changed.changes,
                _ => &mut changed.state.as_mut().unwrap().parts,
            };
            match is_twice {
                true => parts.push(parts[0].clone()),
                false => drop(parts.pop()),
            }
            assert!(is_twice || !changed.is_whole());
            let checked = check_backup(&changed, &mut kept.fetch());
            assert!(checked.is_err(), "{list} {is_twice}");
        }
    }
}

/// What was seen after a commit, and when that was.
struct Moment {
    commit: u64,
    position: u64,
    time: Timestamp,
    seen: (Vec<String>, Vec<Reply>, Vec<Tracking>),
}

/// Writes and notes what there is after each commit with an event. Commits that only change the state
/// come before it.
fn moments(database: &Database, time: &ManualTime, numbers: std::ops::Range<u32>) -> Vec<Moment> {
    let mut moments = Vec::new();
    for number in numbers {
        run(database, &format!("SET key:{} {number}", number % 7));
        run(database, &format!("RPUSH list {number}"));
        time.advance(Duration::from_secs(10));
        let events = (0..=number % 3).map(|_| NewEvent::new("account-1", "Deposited", "{}"));
        let committed = database.commit(Commit::new(events)).unwrap();
        moments.push(Moment {
            commit: committed.commit,
            position: committed.position,
            time: time.wall(),
            seen: seen(database),
        });
    }
    moments
}

/// The time that an event brought along is not when it was written.
fn import_from_the_future(database: &Database) {
    let imported = ImportedEvent {
        event: NewEvent::new("other-1", "Imported", "{}"),
        stream_position: 0,
        position: database.head().unwrap() + 5,
        time: Timestamp::parse("2100-01-01T00:00:00Z").unwrap(),
        tracking: None,
        is_redacted: false,
    };
    database.import(vec![imported]).unwrap();
}

#[test]
fn a_backup_is_restored_to_any_point_that_it_has_the_state_of() {
    let time = ManualTime::new(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
    let options = Options::default().with_clock(Clock::new(time.clone()));
    let options = NamespacesOptions::default().with_database(options);
    let namespaces = Namespaces::open_in(Arc::new(MemoryHome::new()), options).unwrap();
    let new = NewNamespace::default();
    namespaces.create(&id("tenant"), new).unwrap();
    let database = Database::clone(&namespaces.database(&id("tenant")).unwrap());
    let early = moments(&database, &time, 0..5);
    database.compact().unwrap();
    import_from_the_future(&database);
    let late = moments(&database, &time, 5..20);
    let kept = back_up(&namespaces, None);
    let until = |point| backup_until(kept.list(), point, &mut kept.fetch());
    for (index, moment) in late.iter().enumerate() {
        let second = Timestamp(moment.time.0 + 1_000_000_000);
        // The commits after it that only change the state count to it, except in the first case.
        for (point, is_exact) in [
            (RestorePoint::Commit(moment.commit), true),
            (RestorePoint::Position(moment.position), false),
            (RestorePoint::Time(moment.time), false),
            (RestorePoint::Time(second), false),
        ] {
            let list = until(point).unwrap();
            assert_eq!(list.position, moment.position, "{point}");
            let is_last = index + 1 == late.len();
            let n_later = if is_exact || is_last { 0 } else { 2 };
            assert_eq!(list.commit, moment.commit + n_later, "{point}");
            let cut = Kept {
                list: Some(list),
                ..kept.clone()
            };
            check_backup(cut.list(), &mut cut.fetch()).unwrap();
            let (restored, _) = cut.restored("tenant");
            let restored = seen(&restored.database(&id("tenant")).unwrap());
            assert_eq!(restored.0, moment.seen.0, "{point}");
            assert!(!is_exact || restored == moment.seen, "{point}");
        }
    }
    // In the middle of a commit of three events it is left out.
    let mut pairs = late.windows(2).map(|pair| (&pair[0], &pair[1]));
    let three = pairs.find(|(before, moment)| before.position + 3 == moment.position);
    let (before, three) = three.unwrap();
    let list = until(RestorePoint::Position(three.position - 1)).unwrap();
    assert_eq!(list.position, before.position);
    // The snapshot was taken later than this.
    let snapshot = kept.list().state.as_ref().unwrap().commit;
    for moment in &early[..4] {
        let error = until(RestorePoint::Position(moment.position)).unwrap_err();
        let expected = format!("oldest snapshot is of commit {snapshot}, position");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    let error = until(RestorePoint::Position(kept.list().position + 1)).unwrap_err();
    assert!(error.to_string().contains("is not there"), "{error}");
}

/// All records of a namespace, as its storage tells them: dropped items included.
fn items(database: &Database) -> Vec<Option<Vec<u8>>> {
    let mut items = Vec::new();
    let storage = &database.engine().unwrap().storage;
    let read = storage.replay(0, &mut |record| {
        items.extend({ record.items.iter() }.map(|item| item.map(|(_, bytes)| bytes.to_vec())));
        Ok(())
    });
    read.unwrap();
    items
}

#[test]
fn what_was_dropped_of_the_log_stays_so() {
    let directory = tempfile::tempdir().unwrap();
    let local = |name: &str| {
        let path = directory.path().join(name);
        Arc::new(LocalHome::open(path, Options::default().local()).unwrap())
    };
    let (namespaces, database, _) = tenant(local("a"));
    write(&database, 0..30);
    let storage = Arc::clone(&database.engine().unwrap().storage);
    storage.drop_items(&[3..6, 9..10]).unwrap();
    let expected = items(&database);
    assert_eq!(expected.iter().filter(|item| item.is_none()).count(), 4);
    let kept = back_up(&namespaces, None);
    let checked = check_backup(kept.list(), &mut kept.fetch()).unwrap();
    assert_eq!(checked.commits, kept.list().commit);
    for point in [RestorePoint::Position(10), RestorePoint::Position(4)] {
        let list = backup_until(kept.list(), point, &mut kept.fetch()).unwrap();
        check_backup(&list, &mut kept.fetch()).unwrap();
    }
    let (restored, _) = kept.restored("tenant");
    assert_eq!(items(&restored.database(&id("tenant")).unwrap()), expected);
    drop((storage, database));
    namespaces.close().unwrap();
    let (from, to) = (local("a"), local("b"));
    let copied = crate::tools::copy_namespace(
        from.as_ref(),
        to.as_ref(),
        &id("tenant"),
        &Options::default(),
        &mut |_| {},
    );
    copied.unwrap();
    let moved = Namespaces::open_in(to, NamespacesOptions::default()).unwrap();
    assert_eq!(items(&moved.database(&id("tenant")).unwrap()), expected);
}

#[test]
fn what_was_truncated_is_dropped_again_from_what_is_restored() {
    let (namespaces, database, _) = tenant(Arc::new(MemoryHome::new()));
    let large = format!(r#""{}""#, "x".repeat(300_000));
    for stream in ["gone-1", "kept-1"] {
        for _ in 0..20 {
            let event = NewEvent::new(stream, "Deposited", large.clone());
            database.commit(Commit::new([event])).unwrap();
        }
    }
    database.checkpoint().unwrap();
    let mut before = back_up(&namespaces, None);
    assert!(before.list().log.len() >= 2);
    database.delete_stream("gone-1", None).unwrap();
    database.compact().unwrap();
    let expected = items(&database);
    assert_eq!(expected.iter().filter(|item| item.is_none()).count(), 20);
    // What was dropped is not in the next backup, unless an earlier version has made it, or it is an
    // archive: then it has the part of the log with the events, and says that they were dropped.
    let kept = back_up(&namespaces, Some(&before));
    assert_ne!(kept.list().log[0], before.list().log[0]);
    before.list.as_mut().unwrap().edits = kept.list().edits;
    let kept = back_up(&namespaces, Some(&before));
    assert_eq!(kept.list().log[0], before.list().log[0]);
    let (restored, _) = kept.restored("tenant");
    let restored = restored.database(&id("tenant")).unwrap();
    assert_eq!(seen(&restored), seen(&database));
    assert_ne!(items(&restored), expected);
    restored.compact().unwrap();
    assert_eq!(items(&restored), expected);
}

#[test]
fn what_a_replaced_namespace_knew_outlives_a_restore_that_was_cut_short() {
    let (namespaces, database, _) = tenant(Arc::new(MemoryHome::new()));
    write(&database, 0..5);
    let kept = back_up(&namespaces, None);
    database.redact(3, true).unwrap();
    let redactions = database.redactions().unwrap();
    let home = MemoryHome::new();
    let tenant = id("tenant");
    let restore = |order: RestoreOrder<'_>, fetch: &mut FetchPart<'_>| {
        restore_namespace(
            &home,
            &tenant,
            kept.list(),
            order,
            &Options::default(),
            fetch,
        )
    };
    restore(RestoreOrder::default(), &mut kept.fetch()).unwrap();
    let replacing = RestoreOrder {
        redactions: &redactions,
        replaces: true,
        ..RestoreOrder::default()
    };
    // It fails when the one that was there is gone, which was noted before.
    let failed = restore(replacing, &mut |_| {
        assert_eq!(home.read_audit(u64::MAX, 9)?.len(), 2);
        Err(Error::DiskFull("no more".to_owned()))
    });
    assert!(matches!(failed, Err(Error::DiskFull(_))), "{failed:?}");
    // Nobody else knows of the redaction.
    let restored = restore(RestoreOrder::default(), &mut kept.fetch()).unwrap();
    assert_eq!(restored.redacted, 1);
    assert_eq!(home.entries().unwrap().len(), 1);
}

#[test]
fn what_was_redacted_is_in_no_backup_that_is_made_later() {
    let (namespaces, database, _) = tenant(Arc::new(MemoryHome::new()));
    let large = "x".repeat(300_000);
    for number in 0..40 {
        let data = format!(r#""secret {number}, {large}""#);
        let event = NewEvent::new("account-1", "Deposited", data);
        database.commit(Commit::new([event])).unwrap();
    }
    database.checkpoint().unwrap();
    let first = back_up(&namespaces, None);
    database.redact(3, false).unwrap();
    database.compact().unwrap();
    let second = back_up(&namespaces, Some(&first));
    let has_secret = |kept: &Kept| {
        let parts = kept.list().log.iter();
        let mut contents = parts.map(|part| &kept.parts[&part.hash]);
        contents.any(|content| content.windows(9).any(|window| window == b"secret 2,"))
    };
    assert!(has_secret(&first) && !has_secret(&second));
    // Only the part that has changed is another one, besides changes of the state and its snapshot, and the
    // next backup builds on this one.
    let (before, after) = (&first.list().log, &second.list().log);
    let n_same = after.iter().filter(|part| before.contains(part)).count();
    assert_eq!(n_same + 2, before.len(), "{before:?} {after:?}");
    let third = back_up(&namespaces, Some(&second));
    assert!(third.n_read < second.n_read && third.n_new <= 2);
    let checked = check_backup(second.list(), &mut second.fetch()).unwrap();
    assert_eq!(checked.events, 40);
}

#[test]
fn it_is_told_how_many_events_a_point_lacks() {
    let (namespaces, database, _) = tenant(Arc::new(MemoryHome::new()));
    for stream in ["a-1", "b-1", "c-1"] {
        let event = || NewEvent::new(stream, "Deposited", "{}");
        let commit = Commit::new((0..10).map(|_| event()));
        database.commit(commit).unwrap();
    }
    let storage = Arc::clone(&database.engine().unwrap().storage);
    database.delete_stream("a-1", None).unwrap();
    database.delete_stream("b-1", None).unwrap();
    // Of the first one all is dropped, of the second one a part.
    storage.drop_items(&[1..11, 11..14]).unwrap();
    let kept = back_up(&namespaces, None);
    for (commit, missing) in [(3, 13), (4, 3), (5, 0)] {
        let point = RestorePoint::Commit(commit);
        let list = backup_until(kept.list(), point, &mut kept.fetch()).unwrap();
        let restored = restore_namespace(
            &MemoryHome::new(),
            &id("tenant"),
            &list,
            RestoreOrder::default(),
            &Options::default(),
            &mut kept.fetch(),
        );
        assert_eq!(restored.unwrap().missing, missing, "{commit}");
    }
}
