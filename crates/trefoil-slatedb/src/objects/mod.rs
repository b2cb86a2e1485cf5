//! Whole pieces of data under names, written on a condition.

mod files;
mod list;

use std::borrow::Cow;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, GetOptions, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMode, PutOptions,
};
use trefoil_core::Timestamp;
use trefoil_kv::contract::{KvError, KvObjects, KvResult, ObjectVersion};

use crate::connect::{Abilities, Connection};
use crate::engine::EngineShared;
use crate::error::{of_get, of_put};

/// Metadata that says which call wrote an object. After an answer that was lost, the client repeats a
/// request and is told that its condition does not hold: because of what it wrote itself.
const CALL: &str = "trefoilcall";

/// How long the first attempt to read a small object, or to list some, may take. The next one may take
/// twice as long, because there may be much to list.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Returns a text that no other call returns.
pub(crate) fn unique() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
}

/// Returns the path of a name, below a directory of the store.
pub(crate) fn path_of(prefix: &Path, directory: &str, name: &str) -> KvResult<Path> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte);
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_plain);
    let full = format!("{prefix}/{directory}/{name}");
    match name.split('/').all(is_part) {
        true => Path::parse(full.trim_start_matches('/')).ok(),
        false => None,
    }
    .ok_or_else(|| KvError::Unavailable(format!("'{name}' cannot be the name of an object")))
}

/// The objects below one directory of a store.
#[derive(Debug, Clone)]
pub(crate) struct StoreObjects {
    shared: Arc<EngineShared>,
    directory: &'static str,
}

impl StoreObjects {
    /// Returns the objects below `directory`.
    pub(crate) fn new(shared: Arc<EngineShared>, directory: &'static str) -> Self {
        Self { shared, directory }
    }

    fn path(&self, name: &str) -> KvResult<Path> {
        path_of(&self.shared.connection.prefix, self.directory, name)
    }

    /// Writes an object on a condition. Returns `None` if it does not hold.
    fn put(&self, name: &str, bytes: Bytes, mode: PutMode) -> KvResult<Option<ObjectVersion>> {
        let path = self.path(name)?;
        let call = unique().map_err(|error| KvError::Unavailable(error.to_string()))?;
        let Connection {
            store, abilities, ..
        } = &self.shared.connection;
        let (store, abilities) = (Arc::clone(store), *abilities);
        let deadline = self.shared.options.read_deadline;
        let put = async move {
            let key = Attribute::Metadata(Cow::Borrowed(CALL));
            let options = PutOptions {
                attributes: Attributes::from_iter([(
                    key.clone(),
                    AttributeValue::from(call.clone()),
                )]),
                ..PutOptions::from(mode)
            };
            let failed = match store.put_opts(&path, bytes.into(), options).await {
                Ok(put) => return version(abilities, put.e_tag, put.version).map(Some),
                Err(error) => error,
            };
            use object_store::Error::{AlreadyExists, NotFound, Precondition};
            match failed {
                AlreadyExists { .. } | Precondition { .. } | NotFound { .. } => {}
                error => return Err(of_put(&error)),
            }
            let head = GetOptions::new().with_head(true);
            match store.get_opts(&path, head).await {
                Ok(found) => match found.attributes.get(&key) {
                    Some(found_call) if found_call.as_ref() == call => {
                        let ObjectMeta {
                            e_tag,
                            version: generation,
                            ..
                        } = found.meta;
                        version(abilities, e_tag, generation).map(Some)
                    }
                    _ => Ok(None),
                },
                Err(NotFound { .. }) => Ok(None),
                Err(error) => Err(KvError::Unknown(crate::error::explained(&error))),
            }
        };
        let late = || KvError::Unknown(format!("writing '{name}' took too long"));
        self.shared
            .wait(deadline, put)
            .unwrap_or_else(|| Err(late()))
    }

    /// Waits for a call that changes nothing. It is made again if it has no answer for a while: a service
    /// that was restarted may have forgotten it, and others wait for what it returns.
    fn ask<T: Send + 'static, C>(
        &self,
        what: &str,
        call: impl Fn() -> C + Send + 'static,
    ) -> KvResult<T>
    where
        C: Future<Output = KvResult<T>> + Send + 'static,
    {
        let deadline = self.shared.options.read_deadline;
        let late = || KvError::Unavailable(format!("{what} took too long"));
        let asked = async move {
            let mut attempt = ATTEMPT;
            loop {
                if let Ok(answer) = tokio::time::timeout(attempt, call()).await {
                    return answer;
                }
                attempt *= 2;
            }
        };
        self.shared
            .wait(deadline, asked)
            .unwrap_or_else(|| Err(late()))
    }
}

fn version(
    abilities: Abilities,
    e_tag: Option<String>,
    generation: Option<String>,
) -> KvResult<ObjectVersion> {
    let version = abilities.version(e_tag, generation).map(ObjectVersion);
    version.ok_or_else(|| KvError::Damaged("the store returned no ETag or generation".to_owned()))
}

async fn read(
    store: Arc<dyn ObjectStore>,
    abilities: Abilities,
    path: Path,
) -> KvResult<Option<(Bytes, ObjectVersion)>> {
    let found = match store.get(&path).await {
        Ok(found) => found,
        Err(object_store::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(of_get(&error)),
    };
    let ObjectMeta {
        e_tag,
        version: generation,
        ..
    } = found.meta.clone();
    let version = version(abilities, e_tag, generation)?;
    let bytes = found.bytes().await.map_err(|error| of_get(&error))?;
    Ok(Some((bytes, version)))
}

impl KvObjects for StoreObjects {
    fn get(&self, name: &str) -> KvResult<Option<(Bytes, ObjectVersion)>> {
        let path = self.path(name)?;
        let Connection {
            store, abilities, ..
        } = &self.shared.connection;
        let (store, abilities) = (Arc::clone(store), *abilities);
        self.ask(&format!("reading '{name}'"), move || {
            read(Arc::clone(&store), abilities, path.clone())
        })
    }

    fn create(&self, name: &str, bytes: Bytes) -> KvResult<Option<ObjectVersion>> {
        self.put(name, bytes, PutMode::Create)
    }

    fn replace(
        &self,
        name: &str,
        old: &ObjectVersion,
        bytes: Bytes,
    ) -> KvResult<Option<ObjectVersion>> {
        let old = self.shared.connection.abilities.unchanged(old.0.clone());
        self.put(name, bytes, PutMode::Update(old))
    }

    fn written(&self, name: &str) -> KvResult<Option<Timestamp>> {
        let path = self.path(name)?;
        let store = Arc::clone(&self.shared.connection.store);
        self.ask(&format!("looking at '{name}'"), move || {
            let (store, path) = (Arc::clone(&store), path.clone());
            async move {
                match store.head(&path).await {
                    Ok(found) => Ok(found.last_modified.timestamp_nanos_opt().map(Timestamp)),
                    Err(object_store::Error::NotFound { .. }) => Ok(None),
                    Err(error) => Err(of_get(&error)),
                }
            }
        })
    }

    fn delete(&self, name: &str) -> KvResult<()> {
        let path = self.path(name)?;
        let store = Arc::clone(&self.shared.connection.store);
        let deadline = self.shared.options.read_deadline;
        let delete = async move {
            match store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(of_put(&error)),
            }
        };
        let late = || KvError::Unknown(format!("deleting '{name}' took too long"));
        self.shared
            .wait(deadline, delete)
            .unwrap_or_else(|| Err(late()))
    }

    fn list(&self, prefix: &str, after: &str, max: usize) -> KvResult<Vec<String>> {
        let root = self.path("x")?;
        let request = list::ListRequest {
            root: root.as_ref().trim_end_matches('x').to_owned(),
            prefix: prefix.to_owned(),
            after: after.to_owned(),
            max,
            is_ordered: self.shared.connection.abilities.is_ordered,
        };
        let store = Arc::clone(&self.shared.connection.store);
        self.ask(&format!("listing '{prefix}'"), move || {
            request.clone().run(Arc::clone(&store))
        })
    }

    fn upload(&self, name: &str, file: &FilePath) -> KvResult<()> {
        files::upload(&self.shared, &self.path(name)?, file)
    }

    fn download(&self, name: &str, file: &FilePath) -> KvResult<bool> {
        files::download(&self.shared, &self.path(name)?, file)
    }
}
