//! Writing what is read of a namespace to a repository: each part once, whatever happens.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use indicatif::ProgressBar;
use trefoil::backup::{BackupHead, BackupPart, BackupStep, LogCutter, NamespaceBackup, PartKind};
use trefoil::{Clock, Error};

use crate::backups::{BackedUpNamespace, Repository};

/// After how many parts it is noted how far a backup has come.
const PARTS_PER_NOTE: usize = 16;

/// Keeps to a number of bytes per second.
pub(super) struct ReadingPace {
    clock: Clock,
    began: Duration,
    bytes: u64,
    bytes_per_second: Option<u64>,
}

impl ReadingPace {
    pub(super) fn new(bytes_per_second: Option<u64>) -> Self {
        let clock = Clock::default();
        Self {
            began: clock.steady(),
            clock,
            bytes: 0,
            bytes_per_second,
        }
    }

    /// Waits until as many bytes more may have been read.
    fn spend(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(rate) = self.bytes_per_second {
            let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(self.clock.since(self.began)));
        }
    }
}

/// What all namespaces of a backup have in common.
pub(super) struct RepositoryWriter<'a> {
    pub(super) repository: &'a Repository,
    /// The names of the parts that are there.
    pub(super) known: HashSet<String>,
    pub(super) pace: ReadingPace,
    /// How many bytes were written.
    pub(super) written: u64,
}

impl RepositoryWriter<'_> {
    /// Returns whether all parts that a list names are there.
    pub(super) fn has_all(&self, list: &NamespaceBackup) -> bool {
        list.parts()
            .all(|(_, part)| self.known.contains(&self.repository.name_of(&part.hash)))
    }
}

/// A namespace that is being written.
pub(super) struct NamespaceWriter<'a, 'b> {
    pub(super) to: &'a mut RepositoryWriter<'b>,
    pub(super) name: &'a str,
    /// The backup on which it builds.
    pub(super) before: Option<NamespaceBackup>,
    pub(super) list: Option<NamespaceBackup>,
    /// Cuts the log as it was cut before.
    cutter: LogCutter,
    /// How much of what was before is of use: it has to be what it says.
    pub(super) is_checked: bool,
    pub(super) n_unnoted: usize,
    pub(super) bar: &'a ProgressBar,
    pub(super) failure: Option<anyhow::Error>,
    /// Set when what was before is of another namespace that had this name.
    pub(super) is_another: bool,
}

impl<'a, 'b> NamespaceWriter<'a, 'b> {
    pub(super) fn new(
        to: &'a mut RepositoryWriter<'b>,
        name: &'a str,
        before: Option<NamespaceBackup>,
        bar: &'a ProgressBar,
    ) -> Self {
        Self {
            to,
            name,
            before,
            list: None,
            cutter: LogCutter::default(),
            is_checked: false,
            n_unnoted: 0,
            bar,
            failure: None,
            is_another: false,
        }
    }

    /// Takes a step. What goes wrong here is kept for [`Self::finish`].
    pub(super) fn take(&mut self, step: BackupStep) -> trefoil::Result<()> {
        let taken = match step {
            BackupStep::Head(head) => self.begin(&head),
            BackupStep::Part(part) if part.kind == PartKind::Log => self.cut(part),
            BackupStep::Part(part) => self.add(&part),
        };
        taken.map_err(|error| {
            self.failure = Some(error);
            Error::Closed("the backup cannot be written".to_owned())
        })
    }

    fn begin(&mut self, head: &BackupHead) -> anyhow::Result<()> {
        let list = NamespaceBackup::begin(self.name, head, self.before.as_ref());
        self.list = Some(list.context("the backup does not follow the one before")?);
        self.cutter = LogCutter::new(head, self.before.as_ref());
        // What is read again of the log shows whether it is the one that it was.
        self.is_checked = head.after == 0 && (head.has_state || head.snapshot.is_none());
        self.bar.set_length(head.commit.saturating_sub(head.after));
        self.bar.set_position(0);
        Ok(())
    }

    fn cut(&mut self, part: BackupPart) -> anyhow::Result<()> {
        let parts = self.cutter.add(part)?;
        parts.iter().try_for_each(|part| self.add(part))
    }

    fn add(&mut self, part: &BackupPart) -> anyhow::Result<()> {
        let last = self.before.as_ref().and_then(|before| before.log.last());
        if let (PartKind::Log, Some(last), false) = (part.kind, last, self.is_checked) {
            self.is_another = !NamespaceBackup::continues(last, part);
            if self.is_another {
                return Err(anyhow!("the log is not the one of the backup before"));
            }
            self.is_checked = true;
        }
        let list = self.list.as_mut();
        let reference = list.and_then(|list| list.add(part));
        let reference = reference.context("a part that does not follow the one before")?;
        let repository = self.to.repository;
        let name = repository.name_of(&reference.hash);
        if !self.to.known.contains(&name) {
            self.to.written += repository.add_part(&reference.hash, &part.bytes)?;
            self.to.known.insert(name);
        }
        self.n_unnoted += 1;
        if self.n_unnoted >= PARTS_PER_NOTE {
            self.note()?;
        }
        if part.kind == PartKind::Log {
            self.bar.inc(part.last.saturating_sub(part.first) + 1);
        }
        self.to.pace.spend(part.bytes.len());
        Ok(())
    }

    fn note(&mut self) -> anyhow::Result<()> {
        self.n_unnoted = 0;
        match &self.list {
            Some(list) => self.to.repository.note_unfinished(list),
            None => Ok(()),
        }
    }

    /// Ends the namespace. It counts when the document of the backup is written.
    pub(super) fn finish(mut self) -> anyhow::Result<BackedUpNamespace> {
        if let Some(rest) = self.cutter.finish() {
            self.add(&rest)?;
        }
        self.note()?;
        let list = self.list.filter(NamespaceBackup::is_whole);
        let list = list.context("the backup is not whole")?;
        let (hash, written) = self.to.repository.add_list(&list)?;
        if self.to.known.insert(self.to.repository.name_of(&hash)) {
            self.to.written += written;
        }
        Ok(BackedUpNamespace {
            namespace: list.namespace.clone(),
            commit: list.commit,
            position: list.position,
            content_bytes: list.content_bytes(),
            list: hash,
        })
    }
}
