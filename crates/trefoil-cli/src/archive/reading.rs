//! Reading an archive: what there is of a namespace, as a backup that ends at a point.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use serde::Serialize;
use trefoil::archive::{ArchivePiece, ArchivedLine, PieceName};
use trefoil::backup::{BackedUpState, NamespaceBackup, PartReference, RestorePoint};
use trefoil::{Error, KnownRedaction, Timestamp};

use super::redacting::followed;
use super::shelf::{ArchiveShelf, EntryDocument, LineNames, ShelfNames};
use crate::backups::Repository;
use crate::exit::NotFound;

/// What the names of parts end with that are the events of a piece, ...
const LOG: &str = "#log";
/// ... and the changes of the state.
const CHANGES: &str = "#changes";
/// A piece with fewer bytes may soon be replaced by a larger one, so it is fetched at once.
const FETCHED_AT_ONCE_BYTES: u64 = 2 * 1024 * 1024;
/// No more than this many of them.
const FETCHED_AT_ONCE_MAX: usize = 128;

/// The archive in a repository.
pub(crate) struct ArchiveReader<'a> {
    repository: &'a Repository,
    shelves: BTreeMap<String, ReadShelf<'a>>,
    pieces: Mutex<ReadPieces>,
}

/// Pieces that were fetched, by their full names.
#[derive(Default)]
struct ReadPieces {
    /// The events and the changes of a piece are asked for one after the other.
    last: Option<(String, ArchivePiece)>,
    small: HashMap<String, ArchivePiece>,
}

struct ReadShelf<'a> {
    shelf: ArchiveShelf<'a>,
    names: ShelfNames,
}

/// How far the archive of a namespace reaches.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArchivedReach {
    pub(crate) namespace: String,
    /// When the archive of its log began.
    pub(crate) begun: String,
    pub(crate) commit: u64,
    pub(crate) position: u64,
    /// When that was there.
    pub(crate) time: String,
    /// How many bytes of commits and changes there are.
    pub(crate) bytes: u64,
}

/// The redactions that an archive has followed.
#[derive(Debug, Default)]
pub(crate) struct ArchivedRedactions {
    pub(crate) redactions: Vec<KnownRedaction>,
    /// When it was added to last; `None` if it does not reach as far as what is restored.
    pub(crate) until: Option<Timestamp>,
}

impl<'a> ArchiveReader<'a> {
    /// Looks what is there. There may be nothing.
    pub(crate) fn open(repository: &'a Repository) -> anyhow::Result<Self> {
        let mut shelves = BTreeMap::new();
        for shelf in ArchiveShelf::all(repository)? {
            let names = shelf.names()?;
            // A namespace of which only a part of the first shipment is there has no entry yet.
            if let Some(first) = names.entries.first() {
                let namespace = shelf.entry(*first)?.namespace;
                shelves.insert(namespace, ReadShelf { shelf, names });
            }
        }
        Ok(Self {
            repository,
            shelves,
            pieces: Mutex::default(),
        })
    }

    /// Returns the namespaces that there were at a time, or are.
    pub(crate) fn names(&self, time: Option<Timestamp>) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for (name, shelf) in &self.shelves {
            if shelf.exists(time)? {
                names.push(name.clone());
            }
        }
        Ok(names)
    }

    /// Returns how far each namespace is archived.
    pub(crate) fn reaches(&self) -> Vec<ArchivedReach> {
        let reach = |(name, shelf): (&String, &ReadShelf<'_>)| {
            let (begun, line) = shelf.names.lines.last_key_value()?;
            let chain = line.chain();
            let last = chain.last()?;
            Some(ArchivedReach {
                namespace: name.clone(),
                begun: time_of(*begun),
                commit: last.last,
                position: last.position,
                time: time_of(last.millis),
                bytes: chain.iter().map(|piece| piece.bytes).sum(),
            })
        };
        self.shelves.iter().filter_map(reach).collect()
    }

    /// Returns when the archive of a namespace was last added to, in milliseconds since 1970; `None` if
    /// there is none of it.
    pub(crate) fn last_millis(&self, name: &str) -> Option<u64> {
        let shelf = self.shelves.get(name)?;
        let pieces = { shelf.names.lines.values() }.flat_map(|line| &line.pieces);
        let pieces = pieces.map(|piece| piece.millis).max();
        pieces.max(shelf.names.entries.last().copied())
    }

    /// Returns the redactions of a namespace that the archive has followed, of all its logs.
    pub(crate) fn redactions(&self, name: &str, commit: u64) -> anyhow::Result<ArchivedRedactions> {
        let mut found = ArchivedRedactions::default();
        let Some(shelf) = self.shelves.get(name) else {
            return Ok(found);
        };
        for (begun, line) in &shelf.names.lines {
            let followed = followed(&shelf.shelf, *begun, line)?;
            found.redactions.extend(followed);
            // An archive that ended before the backup knows of none that came after it.
            let last = line.chain().last().copied();
            let reaching = last.filter(|last| last.last >= commit);
            found.until = found.until.max(reaching.map(|last| time_at(last.millis)));
        }
        Ok(found)
    }

    /// Returns a namespace as of a point, or as it was last.
    pub(crate) fn backup(
        &self,
        name: &str,
        point: Option<RestorePoint>,
    ) -> anyhow::Result<NamespaceBackup> {
        let time = match point {
            Some(RestorePoint::Time(time)) => Some(time),
            _ => None,
        };
        let missing = || NotFound(format!("the archive has no namespace '{name}'"));
        let shelf = self.shelves.get(name).ok_or_else(missing)?;
        let entry = shelf.last_entry(time)?.ok_or_else(missing)?;
        let no_lines = LineNames::default();
        let (begun, line) = shelf.line(time).unwrap_or((0, &no_lines));
        let archived = shelf.archived(begun, line)?;
        self.fetch_small(&shelf.shelf, begun, &archived.chain())?;
        let place = |piece: &PieceName, of_changes: bool| {
            let suffix = if of_changes { CHANGES } else { LOG };
            format!("{}{suffix}", shelf.shelf.piece_name(begun, piece))
        };
        let mut fetch = |piece: &PieceName| self.piece(&shelf.shelf.piece_name(begun, piece));
        Ok(archived.backup((name, &entry), point, &place, &mut fetch)?)
    }

    fn fetch_small(
        &self,
        shelf: &ArchiveShelf<'_>,
        begun: u64,
        chain: &[PieceName],
    ) -> anyhow::Result<()> {
        let small = { chain.iter().rev().take(FETCHED_AT_ONCE_MAX) }
            .take_while(|piece| piece.bytes < FETCHED_AT_ONCE_BYTES);
        let mut pieces = self.pieces.lock();
        pieces.small.clear();
        for name in small {
            let piece = shelf.piece(begun, name)?;
            pieces.small.insert(shelf.piece_name(begun, name), piece);
        }
        Ok(())
    }

    /// Returns the content of a part, if it is one of an archive.
    pub(crate) fn fetch(&self, part: &PartReference) -> Option<trefoil::Result<Vec<u8>>> {
        let name = part.hash.as_str();
        if let Some(name) = name.strip_suffix(LOG) {
            return Some(self.piece(name).map(ArchivePiece::into_log));
        }
        if let Some(name) = name.strip_suffix(CHANGES) {
            return Some(self.piece(name).map(ArchivePiece::into_changes));
        }
        let is_base = ArchiveShelf::is_name(name);
        is_base.then(|| self.repository.named(name).map_err(|error| told(&error)))
    }

    fn piece(&self, name: &str) -> trefoil::Result<ArchivePiece> {
        let mut pieces = self.pieces.lock();
        if let Some(small) = pieces.small.get(name) {
            return Ok(small.clone());
        }
        match &pieces.last {
            Some((last, piece)) if last == name => Ok(piece.clone()),
            _ => {
                let content = self.repository.named(name).map_err(|error| told(&error))?;
                let plain = name.rsplit('/').next().and_then(PieceName::parse);
                let plain = plain.ok_or_else(|| Error::invalid(format!("{name} is no piece")))?;
                let piece = ArchivePiece::decode(&plain, &content)?;
                pieces.last = Some((name.to_owned(), piece.clone()));
                Ok(piece)
            }
        }
    }
}

fn time_of(millis: u64) -> String {
    time_at(millis).to_string()
}

fn time_at(millis: u64) -> Timestamp {
    let nanos = i64::try_from(millis).unwrap_or(0).saturating_mul(1_000_000);
    Timestamp(nanos)
}

fn told(error: &anyhow::Error) -> Error {
    Error::invalid(format!("{error:#}"))
}

impl ReadShelf<'_> {
    /// Returns whether there was such a namespace at a time, or is. Before it was archived, its log says so.
    fn exists(&self, time: Option<Timestamp>) -> anyhow::Result<bool> {
        match (self.entry(time)?, self.line(time)) {
            (Some(document), _) => Ok(document.entry.is_some()),
            (None, None) => Ok(false),
            (None, Some((begun, _))) => {
                let created = Timestamp::parse(&self.shelf.line(begun)?.created);
                Ok(created <= time)
            }
        }
    }

    /// Returns the entry that held at a time, or holds; `None` if there was none yet.
    fn entry(&self, time: Option<Timestamp>) -> anyhow::Result<Option<EntryDocument>> {
        let last = self.entries_until(time).last();
        last.map(|millis| self.shelf.entry(*millis)).transpose()
    }

    /// Returns the last entry that held until a time, also if the namespace was deleted since.
    fn last_entry(&self, time: Option<Timestamp>) -> anyhow::Result<Option<String>> {
        // What was archived first is also of the time before.
        let first = self.names.entries.first();
        for millis in self.entries_until(time).iter().rev().chain(first) {
            if let Some(entry) = self.shelf.entry(*millis)?.entry {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn entries_until(&self, time: Option<Timestamp>) -> &[u64] {
        let until = time.map_or(u64::MAX, Timestamp::millis);
        let entries = self.names.entries.as_slice();
        &entries[..entries.partition_point(|millis| *millis <= until)]
    }

    /// Returns the log that was there at a time, or is. The first one also has what was there before it
    /// was archived.
    fn line(&self, time: Option<Timestamp>) -> Option<(u64, &LineNames)> {
        let until = time.map_or(u64::MAX, Timestamp::millis);
        let lines = &self.names.lines;
        let (begun, line) =
            { lines.range(..=until).next_back() }.or_else(|| lines.iter().next())?;
        Some((*begun, line))
    }

    /// Returns what is there of a log, with the lists of its bases.
    fn archived(&self, begun: u64, line: &LineNames) -> anyhow::Result<ArchivedLine> {
        let mut bases = Vec::new();
        for commit in &line.bases {
            let base = self.shelf.base(begun, *commit)?;
            let place = |part: PartReference| PartReference {
                hash: self.shelf.base_part_name(begun, *commit, &part.hash),
                ..part
            };
            bases.push(BackedUpState {
                parts: base.parts.into_iter().map(place).collect(),
                ..base
            });
        }
        Ok(ArchivedLine {
            pieces: line.pieces.clone(),
            bases,
        })
    }
}
