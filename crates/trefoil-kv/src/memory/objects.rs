//! Objects in memory.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::Timestamp;

use crate::contract::{KvError, KvObjects, KvResult, ObjectVersion};

use super::{EngineCall, Link, MemoryData};

/// Objects, and a count of their changes, which their versions are made of.
#[derive(Debug, Default)]
pub(super) struct ObjectTable {
    objects: BTreeMap<String, (Bytes, u64)>,
    n_changes: u64,
    /// What time it is, if a test has said so.
    pub(super) time: Option<Timestamp>,
    /// When objects were written since then.
    written: BTreeMap<String, Timestamp>,
}

impl ObjectTable {
    fn put(&mut self, name: &str, bytes: Bytes) -> ObjectVersion {
        self.n_changes += 1;
        if let Some(time) = self.time {
            self.written.insert(name.to_owned(), time);
        }
        self.objects
            .insert(name.to_owned(), (bytes, self.n_changes));
        version(self.n_changes)
    }
}

fn version(number: u64) -> ObjectVersion {
    ObjectVersion(number.to_string())
}

/// The objects of a [`MemoryEngine`](super::MemoryEngine), as one connection sees them.
#[derive(Debug, Clone)]
pub struct MemoryObjects {
    data: Arc<MemoryData>,
    link: Arc<Link>,
}

impl MemoryObjects {
    pub(super) fn new(data: Arc<MemoryData>, link: Arc<Link>) -> Self {
        Self { data, link }
    }

    /// Changes objects, if `name` is one.
    fn change<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut ObjectTable) -> KvResult<T>,
    ) -> KvResult<T> {
        check_name(name)?;
        let call = EngineCall::ChangeObject;
        self.link
            .change(call, || change(&mut self.data.objects.lock()))
    }
}

/// Engines in memory take no name that another engine would not.
fn check_name(name: &str) -> KvResult<()> {
    let is_part = |part: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte);
        !matches!(part, "" | "." | "..") && part.bytes().all(is_allowed)
    };
    match name.split('/').all(is_part) {
        true => Ok(()),
        false => {
            let text = format!("{name:?} cannot be the name of an object");
            Err(KvError::Unavailable(text))
        }
    }
}

/// Says what is wrong with a file that is to be stored or fetched.
fn file_failed(file: &Path) -> impl FnOnce(std::io::Error) -> KvError {
    move |error| KvError::Unavailable(format!("{}: {error}", file.display()))
}

impl KvObjects for MemoryObjects {
    fn get(&self, name: &str) -> KvResult<Option<(Bytes, ObjectVersion)>> {
        check_name(name)?;
        self.link.read(EngineCall::ReadObject)?;
        let table = self.data.objects.lock();
        let found = table.objects.get(name);
        Ok(found.map(|(bytes, number)| (bytes.clone(), version(*number))))
    }

    fn create(&self, name: &str, bytes: Bytes) -> KvResult<Option<ObjectVersion>> {
        self.change(name, |table| {
            let is_new = !table.objects.contains_key(name);
            Ok(is_new.then(|| table.put(name, bytes)))
        })
    }

    fn replace(
        &self,
        name: &str,
        old: &ObjectVersion,
        bytes: Bytes,
    ) -> KvResult<Option<ObjectVersion>> {
        self.change(name, |table| {
            let found = table.objects.get(name);
            let is_same = found.is_some_and(|(_, number)| version(*number) == *old);
            Ok(is_same.then(|| table.put(name, bytes)))
        })
    }

    fn delete(&self, name: &str) -> KvResult<()> {
        self.change(name, |table| {
            table.objects.remove(name);
            table.written.remove(name);
            Ok(())
        })
    }

    fn written(&self, name: &str) -> KvResult<Option<Timestamp>> {
        check_name(name)?;
        self.link.read(EngineCall::ReadObject)?;
        Ok(self.data.objects.lock().written.get(name).copied())
    }

    fn list(&self, prefix: &str, after: &str, max: usize) -> KvResult<Vec<String>> {
        self.link.read(EngineCall::ReadObject)?;
        let table = self.data.objects.lock();
        let from = match after < prefix {
            true => Bound::Included(prefix),
            false => Bound::Excluded(after),
        };
        let names = table.objects.range::<str, _>((from, Bound::Unbounded));
        let names = names.map(|(name, _)| name);
        let names = names.take_while(|name| name.starts_with(prefix));
        Ok(names.take(max).cloned().collect())
    }

    fn upload(&self, name: &str, file: &Path) -> KvResult<()> {
        let bytes = fs::read(file).map_err(file_failed(file))?;
        self.change(name, |table| {
            table.put(name, bytes.into());
            Ok(())
        })
    }

    fn download(&self, name: &str, file: &Path) -> KvResult<bool> {
        match self.get(name)? {
            None => Ok(false),
            Some((bytes, _)) => {
                fs::write(file, bytes).map_err(file_failed(file))?;
                Ok(true)
            }
        }
    }
}
