//! What a repository keeps of the archive of one namespace.
//!
//! | name below `archive/tenant-a/` | what it is |
//! |---|---|
//! | `entries/1763300000000` | its entry in the registry from that time on, or that it was deleted |
//! | `1763300000000/line` | that its log began then: it was archived for the first time, made anew, or restored to an earlier point |
//! | `1763300000000/pieces/…` | commits of that log, see `PieceName` |
//! | `1763300000000/redactions/1763300100000` | redactions that the pieces of that log have followed |
//! | `1763300000000/bases/…7/list` | the list of the parts of a snapshot of the state |
//! | `1763300000000/bases/…7/ab12…` | such a part, by its hash |
//!
//! Times are in milliseconds since 1970. All of it is written once. Small pieces are replaced by larger
//! ones, which have the same commits, and pieces with redacted events by others without them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trefoil::archive::{ArchivePiece, ArchivedLine, PieceName};
use trefoil::backup::{BackedUpState, PartReference};

use super::redacting::RedactionsDocument;
use crate::backups::Repository;

const ARCHIVE: &str = "archive/";

/// Of which namespace a log is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LineDocument {
    pub(super) namespace: String,
    /// When the namespace was made.
    pub(super) created: String,
}

/// The entry of a namespace in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntryDocument {
    pub(super) namespace: String,
    /// `None`: it was deleted.
    pub(super) entry: Option<String>,
}

/// A place for the archive of one namespace.
#[derive(Clone)]
pub(super) struct ArchiveShelf<'a> {
    repository: &'a Repository,
    folder: String,
}

/// The names of what is there.
#[derive(Debug, Default)]
pub(super) struct ShelfNames {
    /// When the entries began to hold, in order.
    pub(super) entries: Vec<u64>,
    /// The logs, by when they began.
    pub(super) lines: BTreeMap<u64, LineNames>,
}

/// The names of what is there of a log.
#[derive(Debug, Default)]
pub(super) struct LineNames {
    pub(super) pieces: Vec<PieceName>,
    /// Commits of snapshots that are there as a whole.
    pub(super) bases: Vec<u64>,
    /// Parts of snapshots that may not be.
    pub(super) base_parts: Vec<(u64, String)>,
    /// When redactions were followed.
    pub(super) redactions: Vec<u64>,
}

impl<'a> ArchiveShelf<'a> {
    pub(super) fn of(repository: &'a Repository, namespace: &str) -> Self {
        let folder = format!("{ARCHIVE}{}/", repository.shown_name(namespace));
        Self { repository, folder }
    }

    /// Returns whether something of this name is part of an archive.
    pub(super) fn is_name(name: &str) -> bool {
        name.starts_with(ARCHIVE)
    }

    /// Returns the shelves of all namespaces, in order.
    pub(super) fn all(repository: &'a Repository) -> anyhow::Result<Vec<Self>> {
        let names = repository.names(ARCHIVE)?;
        let mut folders: Vec<String> = { names.iter() }
            .filter_map(|name| name.strip_prefix(ARCHIVE)?.split_once('/'))
            .map(|(namespace, _)| format!("{ARCHIVE}{namespace}/"))
            .collect();
        folders.sort();
        folders.dedup();
        let folders = folders.into_iter();
        Ok(folders.map(|folder| Self { repository, folder }).collect())
    }

    pub(super) fn names(&self) -> anyhow::Result<ShelfNames> {
        let mut found = ShelfNames::default();
        for name in self.repository.names(&self.folder)? {
            let rest = name.strip_prefix(&self.folder).unwrap_or_default();
            let words: Vec<&str> = rest.split('/').collect();
            match words.as_slice() {
                ["entries", time] => found.entries.extend(time.parse::<u64>()),
                [line, rest @ ..] => {
                    if let Ok(begun) = line.parse() {
                        found.lines.entry(begun).or_default().add(rest);
                    }
                }
                [] => {}
            }
        }
        found.entries.sort_unstable();
        Ok(found)
    }

    pub(super) fn add_entry(&self, millis: u64, entry: &EntryDocument) -> anyhow::Result<()> {
        self.repository
            .add_document(&self.entry_name(millis), entry)
    }

    pub(super) fn entry(&self, millis: u64) -> anyhow::Result<EntryDocument> {
        self.repository.document(&self.entry_name(millis))
    }

    fn entry_name(&self, millis: u64) -> String {
        format!("{}entries/{millis:013}", self.folder)
    }

    fn line_folder(&self, begun: u64) -> String {
        format!("{}{begun:013}/", self.folder)
    }

    pub(super) fn add_line(&self, begun: u64, line: &LineDocument) -> anyhow::Result<()> {
        let name = format!("{}line", self.line_folder(begun));
        self.repository.add_document(&name, line)
    }

    pub(super) fn line(&self, begun: u64) -> anyhow::Result<LineDocument> {
        let name = format!("{}line", self.line_folder(begun));
        self.repository.document(&name)
    }

    pub(super) fn piece_name(&self, begun: u64, piece: &PieceName) -> String {
        format!("{}pieces/{piece}", self.line_folder(begun))
    }

    /// Adds a piece. Returns how many bytes that takes.
    pub(super) fn add_piece(&self, begun: u64, piece: &ArchivePiece) -> anyhow::Result<u64> {
        let name = self.piece_name(begun, &piece.name());
        self.repository.add_named(&name, &piece.encode())
    }

    pub(super) fn piece(&self, begun: u64, name: &PieceName) -> anyhow::Result<ArchivePiece> {
        let content = self.repository.named(&self.piece_name(begun, name))?;
        Ok(ArchivePiece::decode(name, &content)?)
    }

    pub(super) fn remove_piece(&self, begun: u64, name: &PieceName) -> anyhow::Result<()> {
        self.repository.remove_named(&self.piece_name(begun, name))
    }

    /// Removes what was not written to its end.
    pub(super) fn remove_partial(&self, begun: u64) -> anyhow::Result<()> {
        self.repository.remove_partial(&self.line_folder(begun))
    }

    fn redactions_name(&self, begun: u64, millis: u64) -> String {
        format!("{}redactions/{millis:013}", self.line_folder(begun))
    }

    pub(super) fn add_redactions(
        &self,
        begun: u64,
        millis: u64,
        document: &RedactionsDocument,
    ) -> anyhow::Result<()> {
        let name = self.redactions_name(begun, millis);
        self.repository.add_document(&name, document)
    }

    pub(super) fn redactions(&self, begun: u64, millis: u64) -> anyhow::Result<RedactionsDocument> {
        self.repository
            .document(&self.redactions_name(begun, millis))
    }

    pub(super) fn remove_redactions(&self, begun: u64, millis: u64) -> anyhow::Result<()> {
        let name = self.redactions_name(begun, millis);
        self.repository.remove_named(&name)
    }

    fn base_folder(&self, begun: u64, commit: u64) -> String {
        format!("{}bases/{commit:020}/", self.line_folder(begun))
    }

    /// Returns where a part of a base is kept.
    pub(super) fn base_part_name(&self, begun: u64, commit: u64, hash: &str) -> String {
        let name = self.repository.shown_name(hash);
        format!("{}{name}", self.base_folder(begun, commit))
    }

    /// Adds a part of a base. Returns how many bytes that takes.
    pub(super) fn add_base_part(
        &self,
        begun: u64,
        commit: u64,
        part: &PartReference,
        content: &[u8],
    ) -> anyhow::Result<u64> {
        let name = self.base_part_name(begun, commit, &part.hash);
        self.repository.add_named(&name, content)
    }

    /// Adds the list of a base's parts: from now on it exists.
    pub(super) fn add_base(&self, begun: u64, base: &BackedUpState) -> anyhow::Result<()> {
        let name = format!("{}list", self.base_folder(begun, base.commit));
        self.repository.add_document(&name, base)
    }

    pub(super) fn base(&self, begun: u64, commit: u64) -> anyhow::Result<BackedUpState> {
        let name = format!("{}list", self.base_folder(begun, commit));
        self.repository.document(&name)
    }

    /// Removes parts of bases that were never finished.
    pub(super) fn remove_unfinished(&self, begun: u64, names: &LineNames) -> anyhow::Result<()> {
        for (commit, part) in &names.base_parts {
            if !names.bases.contains(commit) {
                let name = format!("{}{part}", self.base_folder(begun, *commit));
                self.repository.remove_named(&name)?;
            }
        }
        Ok(())
    }
}

impl LineNames {
    fn add(&mut self, words: &[&str]) {
        match words {
            ["pieces", name] => self.pieces.extend(PieceName::parse(name)),
            ["redactions", millis] => self.redactions.extend(millis.parse::<u64>()),
            ["bases", commit, name] => {
                if let Ok(commit) = commit.parse() {
                    match *name {
                        "list" => self.bases.push(commit),
                        part => self.base_parts.push((commit, part.to_owned())),
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the pieces that are the log as far as they reach.
    pub(super) fn chain(&self) -> Vec<PieceName> {
        let line = ArchivedLine {
            pieces: self.pieces.clone(),
            bases: Vec::new(),
        };
        line.chain()
    }
}
