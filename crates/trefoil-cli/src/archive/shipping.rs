//! Shipping one namespace: the next commits become a piece, many small pieces a large one, a new snapshot
//! of the state a base, and what was redacted goes.

use std::collections::BTreeSet;

use anyhow::{Context as _, anyhow};
use trefoil::archive::{ArchivePiece, ArchiveSource, PieceName};
use trefoil::backup::{BackedUpState, BackupSnapshot, BackupStep, PartReference, content_hash};
use trefoil::{Error, NamespaceId, Namespaces};
use trefoil_server::ArchiveProgress;

use super::redacting::{LineEnd, follow};
use super::shelf::{ArchiveShelf, EntryDocument, LineDocument, LineNames};
use crate::backups::Repository;

/// So many small pieces become one, ...
const SMALL_PIECES_MAX: usize = 64;
/// ... or so many bytes of them.
const SMALL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A piece with this many bytes is not small.
const SMALL_PIECE_BYTES: u64 = 2 * 1024 * 1024;

/// How far the log of a namespace is shipped.
#[derive(Debug, Clone)]
pub(super) struct ShippedLine {
    document: LineDocument,
    /// Which log of the namespace it is, in this process.
    pub(super) generation: u64,
    /// When its archive began, which is its name.
    begun: u64,
    /// The last commit that was shipped.
    pub(super) commit: u64,
    /// When that was there, in milliseconds since 1970; 0 if nothing was shipped.
    pub(super) millis: u64,
    /// The position of the last event that was shipped.
    position: u64,
    /// Whether there may be redactions that the archive has yet to follow.
    owes_redactions: bool,
    /// Whether what others have shipped of it was not looked at yet.
    is_taken_over: bool,
    /// When redactions were followed, as far as that is known.
    followed: BTreeSet<u64>,
    /// The small pieces at the end.
    small: Vec<PieceName>,
    /// Pieces of which a larger one has the commits. They stay for a while: somebody may be restoring.
    replaced: Vec<PieceName>,
    /// The commit of the newest base.
    base: u64,
}

/// What one step did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShippedStep {
    /// Whether there was more to ship when it began.
    pub(super) has_more: bool,
}

/// What is read of a namespace at once.
struct ReadStep {
    document: LineDocument,
    generation: u64,
    /// The last commit.
    end: u64,
    piece: Option<ArchivePiece>,
    snapshot: Option<BackupSnapshot>,
}

/// Ships namespaces to a repository.
#[derive(Clone, Copy)]
pub(super) struct Shipper<'a> {
    pub(super) namespaces: &'a Namespaces,
    pub(super) repository: &'a Repository,
    pub(super) progress: &'a ArchiveProgress,
}

impl Shipper<'_> {
    /// Ships the next piece. Takes what is known of the namespace, or finds it out, and changes it as far as
    /// something was shipped. A namespace that was never used has nothing to ship.
    ///
    /// What is committed while it works is left to the next look: otherwise pieces would become smaller the
    /// more is written.
    pub(super) fn step(
        self,
        id: &NamespaceId,
        known: &mut Option<ShippedLine>,
    ) -> anyhow::Result<ShippedStep> {
        let Some(mut read) = self.read(id, known.as_ref())? else {
            return Ok(ShippedStep::default());
        };
        let is_known = |line: &ShippedLine| line.is_of(&read.document, read.generation);
        if !known.as_ref().is_some_and(is_known) {
            *known = Some(self.find(id, &read)?);
            let again = self.read(id, known.as_ref())?;
            read = again.context("the namespace was made anew meanwhile")?;
            // What was committed while nobody shipped waits for as long.
            let line = known.as_ref().filter(|line| line.commit > 0);
            if let (Some(line), Some(_)) = (line, &read.piece) {
                self.progress.found(id, line.millis);
            }
        }
        let line = known.as_mut().context("nothing is known of the log")?;
        let shelf = ArchiveShelf::of(self.repository, id.as_str());
        if let Some(piece) = read.piece {
            let written = shelf.add_piece(line.begun, &piece)?;
            line.add(piece.name());
            line.owes_redactions |= piece.may_tell_of_redactions();
            self.progress.shipped(id, line.commit, written);
        }
        if let Some(snapshot) = read.snapshot.filter(|snapshot| line.needs(snapshot)) {
            let written = self.ship_base(&shelf, id, line, snapshot)?;
            self.progress.shipped(id, line.commit, written);
        }
        if line.owes_redactions {
            self.redact(&shelf, id, line)?;
        }
        if line.small_is_full() {
            let written = merge(&shelf, line)?;
            self.progress.shipped(id, line.commit, written);
        }
        Ok(ShippedStep {
            has_more: line.commit < read.end,
        })
    }

    /// Reads what follows, if it is the log that is known.
    fn read(
        self,
        id: &NamespaceId,
        known: Option<&ShippedLine>,
    ) -> trefoil::Result<Option<ReadStep>> {
        self.namespaces.archive(id, |source| {
            let document = LineDocument {
                namespace: id.to_string(),
                created: source.created().to_string(),
            };
            let generation = source.generation();
            let known = known.filter(|line| line.is_of(&document, generation));
            // A snapshot that is looked at first is of a commit that is read, or was.
            let (snapshot, end) = (source.snapshot(), source.end());
            Ok(ReadStep {
                end,
                generation,
                piece: match known {
                    Some(line) => source.next(line.commit)?,
                    None => None,
                },
                document,
                snapshot,
            })
        })
    }

    /// Finds out how far a log is shipped. If what was shipped last is of another one, a new line begins.
    fn find(self, id: &NamespaceId, read: &ReadStep) -> anyhow::Result<ShippedLine> {
        let document = &read.document;
        let shelf = ArchiveShelf::of(self.repository, id.as_str());
        let mut names = shelf.names()?;
        let newest = names.lines.pop_last();
        let last_begun = newest.as_ref().map_or(0, |(begun, _)| *begun);
        if let Some((begun, names)) = newest
            && shelf.line(begun).is_ok_and(|line| line == *document)
        {
            let chain = names.chain();
            let is_it = match chain.last() {
                None => true,
                Some(last) => {
                    let piece = shelf.piece(begun, last)?;
                    let has = self.namespaces.archive(id, |source| source.has(&piece))?;
                    has == Some(true)
                }
            };
            if is_it {
                shelf.remove_unfinished(begun, &names)?;
                let mut line = ShippedLine::new(read, begun);
                line.look(&names);
                return Ok(line);
            }
        }
        let now = self.namespaces.clock().now().millis();
        let begun = now.max(last_begun + 1);
        // Without an entry the log would be of no use.
        if names.entries.is_empty() {
            let namespace = id.to_string();
            let entry = Some(self.namespaces.entry_text(id.as_str())?);
            shelf.add_entry(now, &EntryDocument { namespace, entry })?;
        }
        shelf.add_line(begun, document)?;
        Ok(ShippedLine::new(read, begun))
    }

    /// Makes the archive follow redactions.
    fn redact(
        self,
        shelf: &ArchiveShelf<'_>,
        id: &NamespaceId,
        line: &mut ShippedLine,
    ) -> anyhow::Result<()> {
        let redactions = self.namespaces.archive(id, ArchiveSource::redactions)?;
        let newest = LineEnd {
            begun: line.begun,
            position: line.position,
            is_taken_over: line.is_taken_over,
        };
        let now = self.namespaces.clock().now().millis();
        if follow(shelf, newest, &redactions.unwrap_or_default(), now)? {
            let names = shelf.names()?;
            let names = names.lines.get(&line.begun);
            line.look(names.context("the line is gone")?);
        }
        (line.owes_redactions, line.is_taken_over) = (false, false);
        Ok(())
    }

    /// Ships the snapshot of the state, unless there is another one by now.
    fn ship_base(
        self,
        shelf: &ArchiveShelf<'_>,
        id: &NamespaceId,
        line: &mut ShippedLine,
        snapshot: BackupSnapshot,
    ) -> anyhow::Result<u64> {
        let BackupSnapshot {
            commit, entries, ..
        } = snapshot;
        let (mut parts, mut written, mut failure) = (Vec::new(), 0, None);
        let shipped = self.namespaces.archive(id, |source| {
            source.read_snapshot(commit, &mut |step| {
                let BackupStep::Part(part) = step else {
                    return Ok(());
                };
                let reference = PartReference {
                    hash: content_hash(&part.bytes),
                    bytes: part.bytes.len() as u64,
                    first: part.first,
                    last: part.last,
                };
                let added = shelf.add_base_part(line.begun, commit, &reference, &part.bytes);
                parts.push(reference);
                added.map(|bytes| written += bytes).map_err(|error| {
                    failure = Some(error);
                    Error::Closed("the archive cannot be written".to_owned())
                })
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        if shipped? == Some(true) {
            let base = BackedUpState {
                commit,
                entries,
                parts,
            };
            shelf.add_base(line.begun, &base)?;
            line.base = commit;
        }
        Ok(written)
    }
}

impl ShippedLine {
    fn new(read: &ReadStep, begun: u64) -> Self {
        Self {
            document: read.document.clone(),
            generation: read.generation,
            begun,
            commit: 0,
            millis: 0,
            position: 0,
            owes_redactions: true,
            is_taken_over: true,
            followed: BTreeSet::new(),
            small: Vec::new(),
            replaced: Vec::new(),
            base: 0,
        }
    }

    /// Takes over what is there.
    fn look(&mut self, names: &LineNames) {
        let chain = names.chain();
        self.small.clear();
        for piece in &chain {
            self.add(*piece);
        }
        let pieces = names.pieces.iter().filter(|piece| !chain.contains(piece));
        self.replaced = pieces.copied().collect();
        self.base = names.bases.iter().max().copied().unwrap_or(0);
        self.followed = names.redactions.iter().copied().collect();
    }

    fn is_of(&self, document: &LineDocument, generation: u64) -> bool {
        self.document == *document && self.generation == generation
    }

    /// A piece was shipped.
    fn add(&mut self, piece: PieceName) {
        (self.commit, self.millis) = (piece.last, piece.millis);
        self.position = piece.position;
        let is_like = |small: &PieceName| small.has_changes == piece.has_changes;
        if piece.bytes >= SMALL_PIECE_BYTES || !self.small.iter().all(is_like) {
            self.small.clear();
        }
        if piece.bytes < SMALL_PIECE_BYTES {
            self.small.push(piece);
        }
    }

    /// Returns whether a snapshot is to be a base.
    fn needs(&self, snapshot: &BackupSnapshot) -> bool {
        self.base < snapshot.commit && snapshot.commit <= self.commit
    }

    fn small_is_full(&self) -> bool {
        let bytes: u64 = self.small.iter().map(|piece| piece.bytes).sum();
        let is_large = bytes >= SMALL_BYTES_MAX && self.small.len() > 1;
        is_large || self.small.len() >= SMALL_PIECES_MAX
    }
}

/// Makes one piece of the small ones. Those that were replaced the last time go. Returns how many bytes were
/// written.
///
/// Another node may have taken the line over and have followed redactions: then what was read here must not
/// come back. It is looked before, and again after, because the other one may not have seen the new piece.
fn merge(shelf: &ArchiveShelf<'_>, line: &mut ShippedLine) -> anyhow::Result<u64> {
    let merged = match read_small(shelf, line) {
        Ok(merged) => merged,
        Err(error) => {
            look_again(shelf, line)?;
            return Err(error);
        }
    };
    if !is_as_known(shelf, line)? {
        look_again(shelf, line)?;
        return Ok(0);
    }
    let written = shelf.add_piece(line.begun, &merged)?;
    if !is_as_known(shelf, line)? {
        shelf.remove_piece(line.begun, &merged.name())?;
        look_again(shelf, line)?;
        return Ok(written);
    }
    for replaced in &line.replaced {
        shelf.remove_piece(line.begun, replaced)?;
    }
    line.replaced = std::mem::take(&mut line.small);
    line.add(merged.name());
    Ok(written)
}

/// Returns the small pieces as one.
fn read_small(shelf: &ArchiveShelf<'_>, line: &ShippedLine) -> anyhow::Result<ArchivePiece> {
    let mut pieces = line.small.iter().map(|name| shelf.piece(line.begun, name));
    let mut merged = pieces.next().context("there is nothing to merge")??;
    for piece in pieces {
        if !merged.append(piece?) {
            return Err(anyhow!("pieces of the archive do not follow each other"));
        }
    }
    Ok(merged)
}

/// Returns whether nobody else has followed redactions, or removed pieces that become one.
fn is_as_known(shelf: &ArchiveShelf<'_>, line: &ShippedLine) -> anyhow::Result<bool> {
    let names = shelf.names()?;
    let names = names.lines.get(&line.begun).context("the line is gone")?;
    let followed: BTreeSet<u64> = names.redactions.iter().copied().collect();
    let mut small = line.small.iter();
    Ok(followed == line.followed && small.all(|piece| names.pieces.contains(piece)))
}

/// Takes over what others have made of a line.
fn look_again(shelf: &ArchiveShelf<'_>, line: &mut ShippedLine) -> anyhow::Result<()> {
    let names = shelf.names()?;
    line.look(names.lines.get(&line.begun).context("the line is gone")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use trefoil::{Commit, NamespacesOptions, NewEvent, NewNamespace};

    use super::*;
    use crate::archive::redacting::RedactionsDocument;
    use crate::backups::Use;
    use crate::places::HomePlace;

    #[test]
    fn pieces_are_not_put_together_when_somebody_else_has_followed_redactions() {
        let directory = tempfile::tempdir().unwrap();
        let place = HomePlace::Directory(directory.path().join("archive"));
        let repository = Repository::open(&place, Use::Archive, None).unwrap();
        let namespaces = Namespaces::in_memory(NamespacesOptions::default()).unwrap();
        let id = NamespaceId::new("tenant").unwrap();
        namespaces.create(&id, NewNamespace::default()).unwrap();
        let progress = ArchiveProgress::default();
        let shipper = Shipper {
            namespaces: &namespaces,
            repository: &repository,
            progress: &progress,
        };
        let mut known = None;
        for _ in 0..3 {
            let event = NewEvent::new("account-1", "Deposited", "{}");
            let database = namespaces.database(&id).unwrap();
            database.commit(Commit::new([event])).unwrap();
            shipper.step(&id, &mut known).unwrap();
        }
        let mut line = known.unwrap();
        let shelf = ArchiveShelf::of(&repository, id.as_str());
        let n_pieces = || shelf.names().unwrap().lines[&line_of(&shelf)].pieces.len();
        assert_eq!((line.small.len(), n_pieces()), (3, 3));
        let redactions = Vec::new();
        let document = RedactionsDocument { redactions };
        shelf.add_redactions(line.begun, 1, &document).unwrap();
        assert_eq!(merge(&shelf, &mut line).unwrap(), 0);
        assert_eq!(n_pieces(), 3);
        // Now it knows of them.
        assert!(merge(&shelf, &mut line).unwrap() > 0);
        assert_eq!(n_pieces(), 4);
        // A piece that it would put together is gone.
        let mut line = ShippedLine {
            small: line.replaced.clone(),
            ..line
        };
        shelf.remove_piece(line.begun, &line.small[1]).unwrap();
        merge(&shelf, &mut line).unwrap_err();
        assert_eq!((n_pieces(), line.commit), (3, 3));
    }

    fn line_of(shelf: &ArchiveShelf<'_>) -> u64 {
        *shelf.names().unwrap().lines.keys().next().unwrap()
    }
}
