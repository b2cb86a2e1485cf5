//! A directory as an object store, for one process at a time.
//!
//! The file system has no conditional replacement, so there is one process, which a lock sees to, and
//! in it one replacement at a time.

use std::fs::{File, TryLockError};
use std::path::Path as FilePath;

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Mutex;

use super::ConnectError;

/// The name of the lock. It is beside the directories that are listed, so it is no object.
const LOCK: &str = "lock";

/// See the module.
#[derive(Debug)]
pub(super) struct FileStore {
    files: LocalFileSystem,
    /// Held while an object is compared and replaced.
    replacing: Mutex<()>,
    /// Held as long as the store is used; the system releases it with the process.
    _lock: File,
}

impl FileStore {
    /// Opens a directory, which is made if it is not there.
    pub(super) fn open(directory: &FilePath) -> std::result::Result<Self, ConnectError> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            ConnectError(format!("{what} '{}': {error}", directory.display()))
        };
        std::fs::create_dir_all(directory).map_err(|error| cannot("cannot make", &error))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join(LOCK))
            .map_err(|error| cannot("cannot write to", &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ConnectError(format!(
                    "'{}' is in use by another process; a store in a directory is for one",
                    directory.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("cannot lock", &error)),
        }
        let files = LocalFileSystem::new_with_prefix(directory)
            .map_err(|error| cannot("cannot use", &error))?;
        Ok(Self {
            files: files.with_fsync(true),
            replacing: Mutex::new(()),
            _lock: lock,
        })
    }

    /// Replaces an object that is in the state that is asked for.
    async fn replace(
        &self,
        location: &Path,
        payload: PutPayload,
        old: Option<String>,
    ) -> Result<PutResult> {
        let _one_at_a_time = self.replacing.lock().await;
        let found = match self.files.head(location).await {
            Ok(found) => found.e_tag,
            Err(object_store::Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        if found.is_none() || found != old {
            return Err(object_store::Error::Precondition {
                path: location.to_string(),
                source: "the object is in another state".into(),
            });
        }
        let options = PutOptions::from(PutMode::Overwrite);
        self.files.put_opts(location, payload, options).await
    }
}

impl std::fmt::Display for FileStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.files.fmt(formatter)
    }
}

#[async_trait]
impl ObjectStore for FileStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        match options.mode {
            PutMode::Update(old) => self.replace(location, payload, old.e_tag).await,
            // Files have no attributes. They say whose an object is when an answer was lost, which
            // does not happen here.
            mode => {
                self.files
                    .put_opts(location, payload, PutOptions::from(mode))
                    .await
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let options = PutMultipartOptions::default();
        self.files.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}
