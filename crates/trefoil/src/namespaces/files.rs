//! The data directory: names in it, its lock, and changes that a crash leaves done or undone.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use trefoil_core::{Damage, Error, NamespaceId, Result};
use trefoil_storage::local::disk::RealDisk;
use trefoil_storage::local::{files, private};

use super::entry::Record;
use super::fill_random;

/// The directory of the registry. An id cannot begin with an underscore, so no namespace can have
/// this name, nor those of the two prefixes.
const META: &str = "_meta";
const LOCK: &str = "LOCK";
const NEW_PREFIX: &str = "_new-";
const DELETED_PREFIX: &str = "_deleted-";
const REGISTRY_SUFFIX: &str = ".json";

/// Namespaces by id.
pub(super) type Records = BTreeMap<String, Record>;

/// A locked data directory.
#[derive(Debug)]
pub(super) struct Files {
    data: PathBuf,
    meta: PathBuf,
    lock: File,
}

/// What is still on disk of a namespace that exists no more.
#[derive(Debug, Default)]
pub(super) struct Remains {
    directory: Option<PathBuf>,
    marker: Option<PathBuf>,
}

impl Remains {
    /// Removes it. The marker goes last, so that an interrupted removal is taken up at the next
    /// start.
    pub(super) fn erase(self) -> Result<()> {
        if let Some(directory) = self.directory {
            remove_directory(&directory)?;
        }
        if let Some(marker) = self.marker {
            fs::remove_file(&marker).map_err(|error| failed("remove", &marker, &error))?;
        }
        Ok(())
    }
}

impl Files {
    /// Whether there is a data directory.
    pub(super) fn exist(data: &Path) -> bool {
        data.join(META).is_dir()
    }

    pub(super) fn open(data: &Path) -> Result<Self> {
        let meta = data.join(META);
        private::create_dir(&meta).map_err(|error| failed("create", &meta, &error))?;
        warn_if_open(data);
        files::sync_dir(&RealDisk, data)?;
        let path = meta.join(LOCK);
        let lock = private::file_options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let lock = lock.map_err(|error| failed("open", &path, &error))?;
        private::keep_others_from(&lock);
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                data: data.to_owned(),
                meta,
                lock,
            }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked {
                path: data.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path, &error)),
        }
    }

    pub(super) fn unlock(&self) -> Result<()> {
        self.lock
            .unlock()
            .map_err(|error| failed("unlock", &self.meta, &error))
    }

    /// How many bytes may still be written.
    pub(super) fn free_bytes(&self) -> Result<u64> {
        private::free_bytes(&self.data).map_err(|error| failed("measure", &self.data, &error))
    }

    /// Reads every registry file on its own, by id.
    pub(super) fn read_each(&self) -> Result<BTreeMap<String, Result<Record>>> {
        let mut records = BTreeMap::new();
        for name in names(&self.meta)? {
            if let Some(id) = name.strip_suffix(REGISTRY_SUFFIX) {
                let path = self.meta.join(&name);
                records.insert(id.to_owned(), read_record(&path, Some(id)));
            }
        }
        Ok(records)
    }

    /// The directory of a namespace.
    pub(super) fn directory(&self, id: &NamespaceId) -> PathBuf {
        self.data.join(id.as_str())
    }

    fn registry_file(&self, id: &NamespaceId) -> PathBuf {
        self.meta.join(format!("{id}{REGISTRY_SUFFIX}"))
    }

    /// Reads the registry and finishes what an interrupted process began.
    pub(super) fn load(&self) -> Result<Records> {
        let mut records = Records::new();
        let mut markers = Vec::new();
        for name in names(&self.meta)? {
            let path = self.meta.join(&name);
            if name.starts_with(NEW_PREFIX) {
                fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
            } else if name.starts_with(DELETED_PREFIX) {
                markers.push(path);
            } else if let Some(id) = name.strip_suffix(REGISTRY_SUFFIX) {
                records.insert(id.to_owned(), read_record(&path, Some(id))?);
            }
        }
        for marker in markers {
            self.finish_deletion(marker, &records)?;
        }
        self.look_at_directories(&records)?;
        Ok(records)
    }

    /// A marker without a registry file means that the deletion had begun: its data goes. With
    /// one, the namespace was created anew, which is possible only after its old data had gone.
    fn finish_deletion(&self, marker: PathBuf, records: &Records) -> Result<()> {
        let id = read_record(&marker, None)?.entry.id;
        let created_anew = records.contains_key(id.as_str());
        let directory = (!created_anew).then(|| self.directory(&id));
        tracing::info!(namespace = %id, "removing the rest of a deleted namespace");
        Remains {
            directory,
            marker: Some(marker),
        }
        .erase()
    }

    /// Removes directories whose deletion was interrupted; leaves alone what it does not know.
    fn look_at_directories(&self, records: &Records) -> Result<()> {
        for name in names(&self.data)? {
            let path = self.data.join(&name);
            if name.starts_with(DELETED_PREFIX) {
                remove_directory(&path)?;
            } else if name != META && !records.contains_key(&name) {
                tracing::warn!(path = %path.display(), "is no namespace of the registry, left alone");
            }
        }
        Ok(())
    }

    /// Makes a namespace exist: its file appears under its name complete or not at all.
    pub(super) fn create(&self, record: &Record) -> Result<()> {
        let id = &record.entry.id;
        let path = self.registry_file(id);
        // Two ids may be one file name where case does not count.
        if path.exists() {
            return Err(Error::NamespaceExists(id.to_string()));
        }
        let directory = self.directory(id);
        if directory.exists() {
            return Err(Error::invalid(format!(
                "{} exists but is no namespace of the registry: move it away first",
                directory.display()
            )));
        }
        self.replace(record)
    }

    /// Writes what is known of a namespace: the old text stands or the new one, never a mixture.
    pub(super) fn replace(&self, record: &Record) -> Result<()> {
        let id = &record.entry.id;
        let path = self.registry_file(id);
        let text = record.encode().map_err(|what| damaged(&path, &what))?;
        let temporary = self.meta.join(unique(NEW_PREFIX, id)?);
        files::write_unfinished(&RealDisk, &temporary, &text)?;
        // If its removal fails too, the next start removes it.
        files::finish(&RealDisk, &temporary, &path)
    }

    /// Makes a namespace exist no more, by renaming its registry file to a name that is no id.
    pub(super) fn begin_deletion(&self, id: &NamespaceId) -> Result<Remains> {
        let path = self.registry_file(id);
        let marker = self.meta.join(unique(DELETED_PREFIX, id)?);
        fs::rename(&path, &marker).map_err(|error| failed("delete", &path, &error))?;
        Ok(Remains {
            directory: None,
            marker: Some(marker),
        })
    }

    /// Makes a begun deletion durable and frees the name of the namespace's directory.
    pub(super) fn move_away(&self, id: &NamespaceId, mut remains: Remains) -> Result<Remains> {
        files::sync_dir(&RealDisk, &self.meta)?;
        let directory = self.directory(id);
        if directory.exists() {
            let away = self.data.join(unique(DELETED_PREFIX, id)?);
            fs::rename(&directory, &away).map_err(|error| failed("delete", &directory, &error))?;
            files::sync_dir(&RealDisk, &self.data)?;
            remains.directory = Some(away);
        }
        Ok(remains)
    }
}

fn read_record(path: &Path, expected_id: Option<&str>) -> Result<Record> {
    let text = fs::read(path).map_err(|error| failed("read", path, &error))?;
    let record = Record::decode(&text).map_err(|what| damaged(path, &what))?;
    match expected_id {
        Some(expected) if record.entry.id.as_str() != expected => {
            let what = format!("it holds namespace '{}'", record.entry.id);
            Err(damaged(path, &what))
        }
        _ => Ok(record),
    }
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::Damaged(Box::new(Damage {
        file: path.to_owned(),
        offset: 0,
        position: 0,
        what: format!("namespace entry ({what})"),
        help: "restore this file from a backup, or move it away to do without the namespace".into(),
    }))
}

/// A name that is no id and that nobody else uses.
fn unique(prefix: &str, id: &NamespaceId) -> Result<String> {
    let mut random = [0; 8];
    fill_random(&mut random)?;
    Ok(format!("{prefix}{id}-{}", hex::encode(random)))
}

/// Names that are not UTF-8 are none of ours.
fn names(directory: &Path) -> Result<Vec<String>> {
    let read = |error: &std::io::Error| failed("list", directory, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| read(&error))? {
        let entry = entry.map_err(|error| read(&error))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

/// Directories from before were open to others, and stay so until somebody changes that.
fn warn_if_open(data: &Path) {
    if private::is_open_to_others(data) {
        let data = data.display();
        tracing::warn!(
            "other users can read the data directory; to prevent that, run: chmod -R go-rwx {data}"
        );
    }
}

fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("remove", path, &error))
        }
        _ => Ok(()),
    }
}

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("{verb} {}", path.display()), error)
}
