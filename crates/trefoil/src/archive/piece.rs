//! Pieces of an archive, and their names.
//!
//! ```text
//! piece    marks: bytes | log: bytes | whether the changes are there: 0 or 1 | changes: bytes
//! mark     commit: varint | when it was there: varint, milliseconds since 1970 | whether it was the last: 0 or 1
//! name     first commit - last commit - last position - last mark's time - bytes - c or e [- edition]
//! ```
//!
//! The log and the changes are as in the parts of a backup. A mark says that a commit had been made by
//! then, and all before it; and if it was the last one, that all others were made later. The names alone
//! tell where a point is. A piece that was written again has the next edition, so that it has another
//! name in any case.

use trefoil_core::{Error, Result, put_bytes, put_varint, take_bytes, take_varint};

/// That all commits up to one had been made by some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveMark {
    /// The number of the commit.
    pub commit: u64,
    /// The time, in milliseconds since 1970.
    pub millis: u64,
    /// Whether there was none after it then.
    pub was_last: bool,
}

/// Commits that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivePiece {
    /// The number of the first commit.
    pub first: u64,
    /// The position of the last event up to the last commit.
    pub position: u64,
    /// How often it was written again because events were redacted.
    pub edition: u32,
    /// When the commits were read; the last one is of the last commit.
    pub marks: Vec<ArchiveMark>,
    /// The commits with their events, as in a part of a backup.
    pub(crate) log: Vec<u8>,
    /// What they changed of the state, as in a part of a backup; `None` if that was dropped.
    pub(crate) changes: Option<Vec<u8>>,
}

impl ArchivePiece {
    /// Returns the number of the last commit.
    pub fn last(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.commit)
    }

    /// Returns whether all commits after it were made later than it was read.
    pub fn was_last(&self) -> bool {
        self.marks.last().is_some_and(|mark| mark.was_last)
    }

    /// Returns the name that says what it holds.
    pub fn name(&self) -> PieceName {
        let changes = self.changes.as_ref().map_or(0, Vec::len);
        PieceName {
            first: self.first,
            last: self.last(),
            position: self.position,
            millis: self.marks.last().map_or(0, |mark| mark.millis),
            bytes: (self.log.len() + changes) as u64,
            has_changes: self.changes.is_some(),
            edition: self.edition,
        }
    }

    /// Returns the content of the log, as a part of a backup has it.
    pub fn into_log(self) -> Vec<u8> {
        self.log
    }

    /// Returns the changes of the state, as a part of a backup has them.
    pub fn into_changes(self) -> Vec<u8> {
        self.changes.unwrap_or_default()
    }

    /// Returns it as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut marks = Vec::new();
        for mark in &self.marks {
            put_varint(&mut marks, mark.commit);
            put_varint(&mut marks, mark.millis);
            put_varint(&mut marks, u64::from(mark.was_last));
        }
        let mut out = Vec::new();
        put_bytes(&mut out, &marks);
        put_bytes(&mut out, &self.log);
        put_varint(&mut out, u64::from(self.changes.is_some()));
        put_bytes(&mut out, self.changes.as_deref().unwrap_or_default());
        out
    }

    /// Reads the piece of this name.
    pub fn decode(name: &PieceName, bytes: &[u8]) -> Result<Self> {
        let piece = Self::take(name, bytes);
        let piece = piece.filter(|piece| piece.name() == *name);
        piece.ok_or_else(|| Error::invalid(format!("{name} is no piece of an archive")))
    }

    fn take(name: &PieceName, mut bytes: &[u8]) -> Option<Self> {
        let mut rest = take_bytes(&mut bytes)?;
        let mut marks = Vec::new();
        while !rest.is_empty() {
            marks.push(ArchiveMark {
                commit: take_varint(&mut rest)?,
                millis: take_varint(&mut rest)?,
                was_last: take_varint(&mut rest)? == 1,
            });
        }
        let log = take_bytes(&mut bytes)?.to_vec();
        let has_changes = take_varint(&mut bytes)? == 1;
        let changes = take_bytes(&mut bytes)?.to_vec();
        bytes.is_empty().then_some(Self {
            first: name.first,
            position: name.position,
            edition: name.edition,
            marks,
            log,
            changes: has_changes.then_some(changes),
        })
    }

    /// Adds the piece that follows. Returns whether it could: a piece has the changes of all its commits,
    /// or of none.
    pub fn append(&mut self, next: Self) -> bool {
        if next.first != self.last() + 1 || next.changes.is_some() != self.changes.is_some() {
            return false;
        }
        self.position = next.position;
        self.edition = self.edition.max(next.edition);
        self.marks.extend(next.marks);
        self.log.extend(next.log);
        if let (Some(changes), Some(next)) = (&mut self.changes, next.changes) {
            changes.extend(next);
        }
        true
    }
}

/// What the name of a piece says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PieceName {
    /// The number of the first commit.
    pub first: u64,
    /// The number of the last commit.
    pub last: u64,
    /// The position of the last event up to the last commit.
    pub position: u64,
    /// When the last commit was there, in milliseconds since 1970.
    pub millis: u64,
    /// How many bytes of commits and changes it has.
    pub bytes: u64,
    /// Whether it has what the commits changed of the state.
    pub has_changes: bool,
    /// How often it was written again because events were redacted.
    pub edition: u32,
}

impl PieceName {
    /// Reads a name; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('-');
        let mut number = || words.next()?.parse().ok();
        let (first, last, position) = (number()?, number()?, number()?);
        let (millis, bytes) = (number()?, number()?);
        let has_changes = match words.next()? {
            "c" => true,
            "e" => false,
            _ => return None,
        };
        let edition = words.next().map_or(Some(0), |word| word.parse().ok())?;
        let is_whole = words.next().is_none() && 0 < first && first <= last;
        is_whole.then_some(Self {
            first,
            last,
            position,
            millis,
            bytes,
            has_changes,
            edition,
        })
    }
}

/// Names sort as their first commits do.
impl std::fmt::Display for PieceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            first,
            last,
            position,
            millis,
            bytes,
            has_changes,
            edition,
        } = self;
        let kind = if *has_changes { 'c' } else { 'e' };
        write!(
            formatter,
            "{first:020}-{last:020}-{position:020}-{millis:013}-{bytes}-{kind}"
        )?;
        match edition {
            0 => Ok(()),
            edition => write!(formatter, "-{edition}"),
        }
    }
}
