//! Redactions in an archive: pieces that hold a redacted event are written again with its stub, and the old
//! ones go. What was followed is noted beside them, last: after a crash it is done again.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use trefoil::KnownRedaction;
use trefoil::archive::PieceName;

use super::shelf::{ArchiveShelf, LineNames};

/// So many documents about redactions become one.
const DOCUMENTS_MAX: usize = 64;

/// Redactions that a line of an archive has followed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RedactionsDocument {
    pub(super) redactions: Vec<KnownRedaction>,
}

/// How far the log is shipped that is being followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineEnd {
    /// When its archive began, which is its name.
    pub(super) begun: u64,
    /// The position of the last event.
    pub(super) position: u64,
    /// Whether it was just taken over: whoever shipped it before may have put pieces together that were
    /// followed meanwhile, and may have ended before it noticed.
    pub(super) is_taken_over: bool,
}

/// Makes all lines of a namespace follow redactions, also those of earlier logs: they have the same events
/// if the namespace was restored to an earlier point. Returns whether anything was to be done.
pub(super) fn follow(
    shelf: &ArchiveShelf<'_>,
    newest: LineEnd,
    redactions: &[KnownRedaction],
    now: u64,
) -> anyhow::Result<bool> {
    if redactions.is_empty() {
        return Ok(false);
    }
    let mut is_changed = false;
    for (begun, line) in &shelf.names()?.lines {
        let followed = followed(shelf, *begun, line)?;
        // An event that is not shipped yet was redacted by a commit that is not shipped yet.
        let is_there =
            |one: &&KnownRedaction| *begun != newest.begun || one.position <= newest.position;
        let there = redactions.iter().filter(is_there).copied();
        let is_looked_at_again = newest.is_taken_over && *begun == newest.begun;
        let (known, due): (Vec<_>, Vec<_>) = there.partition(|one| followed.contains(one));
        if is_looked_at_again && !known.is_empty() {
            is_changed |= rewrite(shelf, *begun, line, &known)?;
        }
        if !due.is_empty() {
            rewrite_all(shelf, *begun, &due)?;
            note(shelf, *begun, line, &followed, due, now)?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Writes pieces again until there is none left that has something to redact: somebody may have put some
/// together meanwhile. Who does so later finds that what it has read is gone.
fn rewrite_all(shelf: &ArchiveShelf<'_>, begun: u64, due: &[KnownRedaction]) -> anyhow::Result<()> {
    loop {
        let names = shelf.names()?;
        let Some(line) = names.lines.get(&begun) else {
            return Ok(());
        };
        if !rewrite(shelf, begun, line, due)? {
            return Ok(());
        }
    }
}

/// Returns the redactions that a line has followed.
pub(super) fn followed(
    shelf: &ArchiveShelf<'_>,
    begun: u64,
    line: &LineNames,
) -> anyhow::Result<HashSet<KnownRedaction>> {
    let mut followed = HashSet::new();
    for millis in &line.redactions {
        followed.extend(shelf.redactions(begun, *millis)?.redactions);
    }
    Ok(followed)
}

/// Writes the pieces of a line again that have something to redact. Those of which a larger one has the
/// commits go at once, and so does what was never finished. Returns whether a piece was written.
fn rewrite(
    shelf: &ArchiveShelf<'_>,
    begun: u64,
    line: &LineNames,
    due: &[KnownRedaction],
) -> anyhow::Result<bool> {
    let mut is_changed = false;
    shelf.remove_partial(begun)?;
    let due: BTreeMap<u64, KnownRedaction> = due.iter().map(|one| (one.position, *one)).collect();
    let chain: BTreeSet<PieceName> = line.chain().into_iter().collect();
    let end = chain.last().map_or(0, |last| last.last);
    // By their last commits, the last positions: where the next one begins.
    let ends = line.pieces.iter().map(|piece| (piece.last, piece.position));
    let ends: BTreeMap<u64, u64> = ends.collect();
    for name in &line.pieces {
        if name.last <= end && !chain.contains(name) {
            shelf.remove_piece(begun, name)?;
            continue;
        }
        let before = ends.range(..name.first).next_back();
        let before = before.map_or(0, |(_, position)| *position);
        let mut held = due.range(before + 1..).map(|(position, _)| *position);
        if held.next().is_none_or(|first| first > name.position) {
            continue;
        }
        if let Some(redacted) = shelf.piece(begun, name)?.redacted(&due)? {
            shelf.add_piece(begun, &redacted)?;
            shelf.remove_piece(begun, name)?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Notes that a line has followed redactions.
fn note(
    shelf: &ArchiveShelf<'_>,
    begun: u64,
    line: &LineNames,
    followed: &HashSet<KnownRedaction>,
    mut redactions: Vec<KnownRedaction>,
    now: u64,
) -> anyhow::Result<()> {
    let documents = line.redactions.as_slice();
    let replaced = match documents.len() < DOCUMENTS_MAX {
        true => &[],
        false => documents,
    };
    if !replaced.is_empty() {
        redactions.extend(followed);
    }
    let last = documents.iter().max().map_or(0, |last| last + 1);
    shelf.add_redactions(begun, now.max(last), &RedactionsDocument { redactions })?;
    for millis in replaced {
        shelf.remove_redactions(begun, *millis)?;
    }
    Ok(())
}
