//! What is archived can be restored, as of any point.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use trefoil_core::{NamespaceId, Result, Timestamp};

use super::*;
use crate::backup::{
    BackedUpState, BackupStep, NamespaceBackup, PartReference, RestoreOrder, RestorePoint,
    check_backup, content_hash, restore_namespace,
};
use crate::home::MemoryHome;
use crate::{
    Call, Clock, Commit, Database, KnownRedaction, ManualTime, Namespaces, NamespacesOptions,
    NewEvent, NewNamespace, Options, Reply, Selection, TimeSource as _, Transaction,
};

/// An archive in memory.
#[derive(Default, Clone)]
struct KeptArchive {
    line: ArchivedLine,
    pieces: HashMap<String, Vec<u8>>,
    parts: HashMap<String, Vec<u8>>,
}

impl KeptArchive {
    fn shipped(&self) -> u64 {
        self.line.chain().last().map_or(0, |piece| piece.last)
    }

    fn add(&mut self, piece: &ArchivePiece) {
        let name = piece.name();
        assert_eq!(PieceName::parse(&name.to_string()), Some(name));
        self.pieces.insert(name.to_string(), piece.encode());
        self.line.pieces.push(name);
    }

    /// Ships all that is there, and the snapshot if there is a new one.
    fn ship(&mut self, namespaces: &Namespaces) {
        let shipped = namespaces.archive(&id(), |source| {
            while let Some(piece) = source.next(self.shipped())? {
                assert!(source.has(&piece)?);
                self.add(&piece);
            }
            assert_eq!(self.shipped(), source.end());
            let last = self.line.bases.iter().map(|base| base.commit).max();
            match source.snapshot() {
                Some(snapshot) if last < Some(snapshot.commit) => self.ship_base(source),
                _ => Ok(()),
            }
        });
        shipped.unwrap().unwrap();
    }

    fn ship_base(&mut self, source: &ArchiveSource) -> Result<()> {
        let snapshot = source.snapshot().unwrap();
        let mut parts = Vec::new();
        let is_it = source.read_snapshot(snapshot.commit, &mut |step| {
            let BackupStep::Part(part) = step else {
                panic!("a snapshot has no head");
            };
            parts.push(PartReference {
                hash: content_hash(&part.bytes),
                bytes: part.bytes.len() as u64,
                first: part.first,
                last: part.last,
            });
            self.parts.insert(content_hash(&part.bytes), part.bytes);
            Ok(())
        });
        assert!(is_it?);
        self.line.bases.push(BackedUpState {
            commit: snapshot.commit,
            entries: snapshot.entries,
            parts,
        });
        Ok(())
    }

    fn piece(&self, name: &PieceName) -> Result<ArchivePiece> {
        ArchivePiece::decode(name, &self.pieces[&name.to_string()])
    }

    fn backup(&self, entry: &str, point: Option<RestorePoint>) -> Result<NamespaceBackup> {
        let place = |piece: &PieceName, of_changes| match of_changes {
            true => format!("c{piece}"),
            false => format!("l{piece}"),
        };
        let fetch = &mut |piece: &PieceName| self.piece(piece);
        self.line.backup(("tenant", entry), point, &place, fetch)
    }

    fn fetch(&self, part: &PartReference) -> Result<Vec<u8>> {
        if let Some(content) = self.parts.get(&part.hash) {
            return Ok(content.clone());
        }
        let (kind, name) = part.hash.split_at(1);
        let piece = self.piece(&PieceName::parse(name).unwrap())?;
        Ok(match kind {
            "l" => piece.into_log(),
            _ => piece.into_changes(),
        })
    }

    fn restored(&self, list: &NamespaceBackup) -> Seen {
        check_backup(list, &mut |part| self.fetch(part)).unwrap();
        let home = Arc::new(MemoryHome::new());
        let (options, fetch) = (Options::default(), &mut |part: &_| self.fetch(part));
        restore_namespace(
            home.as_ref(),
            &id(),
            list,
            RestoreOrder::default(),
            &options,
            fetch,
        )
        .unwrap();
        let namespaces = Namespaces::open_in(home, NamespacesOptions::default()).unwrap();
        seen(&namespaces.database(&id()).unwrap())
    }
}

fn id() -> NamespaceId {
    NamespaceId::new("tenant").unwrap()
}

fn call(line: &str) -> Call {
    let words = line
        .split(' ')
        .map(|word| bytes::Bytes::from(word.to_owned()));
    Call::new(words.collect()).unwrap().unwrap()
}

fn run(database: &Database, line: &str) -> u64 {
    let executed = database.transact(Transaction::of_call(call(line)));
    executed.unwrap().commit.unwrap()
}

type Seen = (Vec<String>, Vec<Reply>);

fn seen(database: &Database) -> Seen {
    let events = database.read(&Selection::all()).unwrap();
    let looks = [call("LRANGE list 0 -1"), call("GET counter")];
    (
        events.iter().map(|event| format!("{event:?}")).collect(),
        database.look(&looks).unwrap(),
    )
}

/// A namespace whose clock stands still between commits.
fn tenant() -> (Namespaces, Database, Arc<ManualTime>) {
    let time = ManualTime::new(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
    let options = Options::default().with_clock(Clock::new(time.clone()));
    let options = NamespacesOptions::default().with_database(options);
    let namespaces = Namespaces::open_in(Arc::new(MemoryHome::new()), options).unwrap();
    namespaces.create(&id(), NewNamespace::default()).unwrap();
    let database = Database::clone(&namespaces.database(&id()).unwrap());
    (namespaces, database, time)
}

/// What was there after each commit, and when.
type Moments = Vec<(u64, Timestamp, Seen)>;

/// Every other commit only changes the state. A second passes before each.
fn write(database: &Database, time: &ManualTime, numbers: std::ops::Range<u32>) -> Moments {
    let mut moments = Vec::new();
    for number in numbers {
        time.advance(Duration::from_secs(1));
        let commit = match number % 2 {
            0 => {
                let event = NewEvent::new("account-1", "Deposited", format!(r#"{{"n":{number}}}"#));
                database.commit(Commit::new([event])).unwrap().commit
            }
            _ => run(database, &format!("RPUSH list {number}")),
        };
        moments.push((commit, time.wall(), seen(database)));
    }
    moments
}

#[test]
fn every_moment_that_was_shipped_can_be_restored() {
    let (namespaces, database, time) = tenant();
    let entry = namespaces.entry_text("tenant").unwrap();
    let mut kept = KeptArchive::default();
    let mut moments = Moments::new();
    for round in 0..6 {
        moments.extend(write(&database, &time, round * 10..round * 10 + 7));
        kept.ship(&namespaces);
        // The storage drops the changes that were shipped; the base has what they led to.
        if round % 2 == 1 {
            database.compact().unwrap();
        }
        // Each second of these is shipped by itself.
        for number in round * 10 + 7..round * 10 + 10 {
            moments.extend(write(&database, &time, number..number + 1));
            time.advance(Duration::from_millis(10));
            kept.ship(&namespaces);
        }
    }
    assert!(kept.line.bases.len() >= 2);
    let list = kept.backup(&entry, None).unwrap();
    assert_eq!(list.commit, database_end(&namespaces));
    assert_eq!(kept.restored(&list), seen(&database));
    for (commit, at, expected) in &moments {
        let list = kept
            .backup(&entry, Some(RestorePoint::Commit(*commit)))
            .unwrap();
        assert_eq!(list.commit, *commit);
        assert_eq!(&kept.restored(&list), expected, "commit {commit}");
        // Half a second later nothing else had happened.
        let later = Timestamp(at.0 + 500_000_000);
        let Ok(list) = kept.backup(&entry, Some(RestorePoint::Time(later))) else {
            assert_eq!(
                *commit,
                database_end(&namespaces),
                "the last one is of the end"
            );
            continue;
        };
        let restored = kept.restored(&list);
        assert_eq!(restored.0, expected.0, "events at {later}");
        // State alone has the time of its shipment.
        let is_shipped_alone = kept.line.pieces.iter().any(|piece| piece.last == *commit);
        if is_shipped_alone {
            assert_eq!(&restored, expected, "{later}");
        }
    }
    let n_events = moments.last().unwrap().2.0.len() as u64;
    for position in 1..=n_events {
        let list = kept
            .backup(&entry, Some(RestorePoint::Position(position)))
            .unwrap();
        assert_eq!(list.position, position);
        assert_eq!(kept.restored(&list).0.len() as u64, position);
    }
    for beyond in [
        RestorePoint::Position(n_events + 1),
        RestorePoint::Commit(list.commit + 1),
        RestorePoint::Time(Timestamp(time.wall().0 + 1_000_000_000)),
    ] {
        let error = kept.backup(&entry, Some(beyond)).unwrap_err();
        assert!(
            error.to_string().contains("the archive ends with"),
            "{error}"
        );
    }
}

fn database_end(namespaces: &Namespaces) -> u64 {
    let end = namespaces.archive(&id(), |source| Ok(source.end()));
    end.unwrap().unwrap()
}

#[test]
fn what_was_dropped_before_it_was_shipped_needs_a_base() {
    let (namespaces, database, time) = tenant();
    let entry = namespaces.entry_text("tenant").unwrap();
    let early = write(&database, &time, 0..20);
    database.compact().unwrap();
    let late = write(&database, &time, 20..40);
    let mut kept = KeptArchive::default();
    kept.ship(&namespaces);
    let base = kept.line.bases[0].commit;
    assert!(kept.line.pieces.iter().any(|piece| !piece.has_changes));
    for (commit, _, expected) in early.iter().chain(&late) {
        let restored = kept.backup(&entry, Some(RestorePoint::Commit(*commit)));
        match *commit < base {
            true => {
                let error = restored.unwrap_err().to_string();
                assert!(error.contains(&format!("from commit {base} on")), "{error}");
            }
            false => assert_eq!(&kept.restored(&restored.unwrap()), expected, "{commit}"),
        }
    }
    // It was written long before it was shipped: the events say when.
    let (_, at, expected) = &late[10];
    let list = kept.backup(&entry, Some(RestorePoint::Time(*at))).unwrap();
    assert_eq!(&kept.restored(&list), expected);
}

#[test]
fn pieces_that_overlap_or_were_merged_are_one_log() {
    let (namespaces, database, time) = tenant();
    let entry = namespaces.entry_text("tenant").unwrap();
    let mut kept = KeptArchive::default();
    for number in 0..12 {
        write(&database, &time, number..number + 1);
        kept.ship(&namespaces);
    }
    let expected = seen(&database);
    let small: Vec<PieceName> = kept.line.chain();
    assert_eq!(small.len(), 12);
    let mut merged = kept.piece(&small[3]).unwrap();
    assert!(
        !merged.clone().append(kept.piece(&small[5]).unwrap()),
        "a gap"
    );
    for name in &small[4..9] {
        assert!(merged.append(kept.piece(name).unwrap()));
    }
    kept.add(&merged);
    let chain = kept.line.chain();
    assert_eq!(chain.last().unwrap().last, 12);
    assert_eq!(kept.restored(&kept.backup(&entry, None).unwrap()), expected);
    // Without those that it replaces; also if one that leads nowhere was left behind.
    kept.line
        .pieces
        .retain(|piece| !small[3..9].contains(piece));
    let mut astray = merged.clone();
    assert!(astray.append(kept.piece(&small[9]).unwrap()));
    kept.add(&astray);
    assert_eq!(kept.restored(&kept.backup(&entry, None).unwrap()), expected);
    for commit in 1..=12 {
        let list = kept.backup(&entry, Some(RestorePoint::Commit(commit)));
        assert_eq!(list.unwrap().commit, commit);
    }
    // What lacks ends the log.
    kept.line.pieces.retain(|piece| piece.first != 3);
    assert_eq!(kept.line.chain().last().unwrap().last, 2);
}

#[test]
fn another_log_is_told_from_the_one_that_was_shipped() {
    let (namespaces, database, time) = tenant();
    write(&database, &time, 0..6);
    let piece = namespaces.archive(&id(), |source| source.next(0));
    let piece = piece.unwrap().unwrap().unwrap();
    let state = |source: &ArchiveSource| Ok((source.generation(), source.has(&piece)?));
    let (before, has) = namespaces.archive(&id(), state).unwrap().unwrap();
    assert!(has);
    database.clear().unwrap();
    let (after, has) = namespaces.archive(&id(), state).unwrap().unwrap();
    assert!(after > before && !has);
    write(&database, &time, 0..20);
    let (_, has) = namespaces.archive(&id(), state).unwrap().unwrap();
    assert!(!has, "the same events at another time");
    let damaged = PieceName {
        last: 5,
        ..piece.name()
    };
    assert!(ArchivePiece::decode(&damaged, &piece.encode()).is_err());
    assert!(ArchivePiece::decode(&piece.name(), &piece.encode()[1..]).is_err());
}

fn name(first: u64, last: u64, has_changes: bool, edition: u32) -> PieceName {
    PieceName {
        first,
        last,
        position: last,
        millis: last,
        bytes: 1,
        has_changes,
        edition,
    }
}

#[test]
fn a_chain_takes_the_largest_pieces_and_the_latest_editions() {
    // Small pieces stay for a while after they were put together.
    let large = name(1, 3, true, 0);
    let mut pieces: Vec<PieceName> = (1..=3).map(|at| name(at, at, true, 0)).collect();
    pieces.extend([large, name(4, 5, true, 0), name(4, 5, true, 1)]);
    let chain = |pieces: &[PieceName]| {
        let pieces = pieces.to_vec();
        let bases = Vec::new();
        ArchivedLine { pieces, bases }.chain()
    };
    assert_eq!(chain(&pieces), [large, name(4, 5, true, 1)]);
    // Changes are worth more.
    pieces[3].has_changes = false;
    assert_eq!(chain(&pieces).len(), 4);
    for name in pieces {
        assert_eq!(PieceName::parse(&name.to_string()), Some(name));
    }
}

#[test]
fn a_piece_is_redacted_and_still_known_as_the_same_commits() {
    let (namespaces, database, time) = tenant();
    let mut kept = KeptArchive::default();
    write(&database, &time, 0..6);
    let secret = NewEvent::new("user-1", "Registered", r#"{"name":"confidential"}"#);
    let position = database.commit(Commit::new([secret])).unwrap().position;
    kept.ship(&namespaces);
    let names = kept.line.chain();
    let piece = kept.piece(&names[0]).unwrap();
    assert!(!piece.may_tell_of_redactions());
    database.redact(position, false).unwrap();
    let (known, told) = namespaces
        .archive(&id(), |source| {
            let told = source.next(piece.last())?.unwrap();
            Ok((source.redactions()?, told))
        })
        .unwrap()
        .unwrap();
    assert!(told.may_tell_of_redactions());
    assert_eq!((known.len(), known[0].position), (1, position));
    let by_position = |known: KnownRedaction| [(known.position, known)].into();
    let redacted = piece.redacted(&by_position(known[0])).unwrap().unwrap();
    let has = |piece: &ArchivePiece| {
        let bytes = piece.encode();
        bytes.windows(12).any(|window| window == b"confidential")
    };
    assert_eq!((has(&piece), has(&redacted)), (true, false));
    assert_ne!(piece.name(), redacted.name());
    assert_eq!(redacted.redacted(&by_position(known[0])).unwrap(), None);
    // An event with another id is another one.
    let other = KnownRedaction {
        id: trefoil_core::EventId::from_u128(1),
        ..known[0]
    };
    assert_eq!(piece.redacted(&by_position(other)).unwrap(), None);
    // Before and after the log has followed.
    for _ in 0..2 {
        for piece in [&piece, &redacted] {
            let is_it = namespaces.archive(&id(), |source| source.has(piece));
            assert_eq!(is_it.unwrap(), Some(true));
        }
        database.compact().unwrap();
    }
    let mut wrong = redacted.clone();
    wrong.log.truncate(wrong.log.len() - 1);
    let is_it = namespaces.archive(&id(), |source| source.has(&wrong));
    assert_eq!(is_it.unwrap(), Some(false));
}
