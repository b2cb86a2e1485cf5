//! Choosing what a namespace is restored from: the archive, or the newest backup that reaches back to a
//! point and has the state as it was then.

use trefoil::Timestamp;
use trefoil::backup::{NamespaceBackup, PartReference, RestorePoint, backup_until};

use super::{BackupDocument, Repository};
use crate::archive::{ArchiveReader, ArchivedRedactions};
use crate::exit::NotFound;

/// What namespaces may be restored from.
pub(crate) struct Candidates<'a> {
    repository: &'a Repository,
    /// `None`: one backup was asked for.
    archive: Option<ArchiveReader<'a>>,
    /// Newest first.
    documents: Vec<BackupDocument>,
    point: Option<RestorePoint>,
}

impl<'a> Candidates<'a> {
    /// Returns the backup of this id, or all that the repository has for this point.
    pub(crate) fn find(
        repository: &'a Repository,
        id: Option<&str>,
        point: Option<RestorePoint>,
    ) -> anyhow::Result<Self> {
        let archive = match id {
            Some(_) => None,
            None => Some(ArchiveReader::open(repository)?),
        };
        let mut documents = match id {
            Some(_) => vec![repository.backup(id)?],
            None => repository.backups()?,
        };
        documents.reverse();
        if let Some(RestorePoint::Time(time)) = point {
            documents.retain(|document| created(document) >= Some(time));
        }
        let found = Self {
            repository,
            archive,
            documents,
            point,
        };
        match found.documents.is_empty() && found.archived_names()?.is_empty() {
            false => Ok(found),
            true => Err(found.nothing().into()),
        }
    }

    fn nothing(&self) -> NotFound {
        let repository = self.repository;
        NotFound(match self.point {
            Some(RestorePoint::Time(time)) => {
                format!("{repository} has no archive, and no backup of {time} or later")
            }
            _ => format!("{repository} has no backup"),
        })
    }

    fn time(&self) -> Option<Timestamp> {
        match self.point {
            Some(RestorePoint::Time(time)) => Some(time),
            _ => None,
        }
    }

    fn archived_names(&self) -> anyhow::Result<Vec<String>> {
        let archive = self.archive.as_ref();
        archive.map_or(Ok(Vec::new()), |archive| archive.names(self.time()))
    }

    /// Returns the namespaces that there were, or are: those of the archive, and those that it does not know
    /// of the newest backup, or of the one that was made next after the time.
    pub(crate) fn names(&self) -> anyhow::Result<Vec<String>> {
        let document = match self.time() {
            Some(_) => self.documents.last(),
            None => self.documents.first(),
        };
        let mut names = self.archived_names()?;
        for named in document
            .into_iter()
            .flat_map(|document| &document.namespaces)
        {
            let is_archived = self.archived_millis(&named.namespace).is_some();
            if !is_archived && !names.contains(&named.namespace) {
                names.push(named.namespace.clone());
            }
        }
        names.sort();
        Ok(names)
    }

    fn archived_millis(&self, name: &str) -> Option<u64> {
        self.archive.as_ref()?.last_millis(name)
    }

    /// Returns what a namespace is restored from, which ends at the point.
    pub(crate) fn choose(&self, name: &str) -> anyhow::Result<NamespaceBackup> {
        let archived = self.archived_millis(name);
        let backed_up = { self.documents.iter() }
            .find(|document| document.namespaces.iter().any(|one| one.namespace == name))
            .and_then(created)
            .map(Timestamp::millis);
        let Some(archive) = self.archive.as_ref().filter(|_| archived.is_some()) else {
            return self.choose_backup(name);
        };
        // A backup that was made after archiving had ended has more.
        if self.point.is_none() && backed_up > archived {
            return self.choose_backup(name);
        }
        let chosen = archive.backup(name, self.point);
        match chosen.is_err() && backed_up.is_some() {
            true => self.choose_backup(name).or(chosen),
            false => chosen,
        }
    }

    fn choose_backup(&self, name: &str) -> anyhow::Result<NamespaceBackup> {
        let mut failure = None;
        let mut newest: Option<NamespaceBackup> = None;
        for document in &self.documents {
            let named = document.namespaces.iter().find(|one| one.namespace == name);
            let Some(named) = named else {
                match self.point {
                    Some(_) => continue,
                    None => break,
                }
            };
            let list = self.repository.list_of(named)?;
            // Before that, another namespace had the name.
            let is_another = |newest: &NamespaceBackup| newest.origin != list.origin;
            if newest.as_ref().is_some_and(is_another) {
                break;
            }
            let Some(point) = self.point else {
                return Ok(list);
            };
            if failure.is_some() && !reaches(&list, point) {
                break;
            }
            match backup_until(&list, point, &mut |part| self.fetch(part)) {
                Ok(until) => return Ok(until),
                Err(error) => failure = Some(error),
            }
            newest.get_or_insert(list);
        }
        match (failure, self.documents.first()) {
            (Some(error), _) => Err(error.into()),
            (None, Some(document)) => {
                let text = format!("backup {} has no namespace '{name}'", document.id);
                Err(NotFound(text).into())
            }
            (None, None) => Err(self.nothing().into()),
        }
    }

    /// Returns what the archive of the repository knows of redactions of a namespace.
    pub(crate) fn redactions(
        &self,
        backup: &NamespaceBackup,
    ) -> anyhow::Result<ArchivedRedactions> {
        let (name, commit) = (backup.namespace.as_str(), backup.commit);
        match &self.archive {
            Some(archive) => archive.redactions(name, commit),
            None => ArchiveReader::open(self.repository)?.redactions(name, commit),
        }
    }

    /// Returns the content of a part, for the library.
    pub(crate) fn fetch(&self, part: &PartReference) -> trefoil::Result<Vec<u8>> {
        let archive = self.archive.as_ref();
        match archive.and_then(|archive| archive.fetch(part)) {
            Some(content) => content,
            None => self.repository.fetch(part),
        }
    }
}

fn created(document: &BackupDocument) -> Option<Timestamp> {
    Timestamp::parse(&document.created)
}

fn reaches(list: &NamespaceBackup, point: RestorePoint) -> bool {
    match point {
        RestorePoint::Commit(commit) => commit <= list.commit,
        RestorePoint::Position(position) => position <= list.position,
        RestorePoint::Time(_) => true,
    }
}
