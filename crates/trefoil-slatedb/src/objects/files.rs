//! Objects that are too large for memory go through files.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path as FilePath;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _};
use tokio::task::JoinSet;
use trefoil_kv::contract::{KvError, KvResult};

use crate::engine::EngineShared;
use crate::error::{of_get, of_put};

/// How large a part of an object is that is sent in parts. A smaller object is sent at once.
const PART: u64 = 8 << 20;
/// How many parts are on their way at the same time.
const PARTS_AT_ONCE: usize = 4;
/// How often a download begins again after a connection broke.
const ATTEMPTS: usize = 3;

fn of_file(file: &FilePath, error: &std::io::Error) -> KvError {
    KvError::Unavailable(format!("'{}': {error}", file.display()))
}

/// Stores a file as an object.
pub(super) fn upload(shared: &Arc<EngineShared>, path: &Path, file: &FilePath) -> KvResult<()> {
    let mut source = File::open(file).map_err(|error| of_file(file, &error))?;
    let size = source.metadata().map_err(|error| of_file(file, &error))?;
    if size.len() > PART {
        return upload_in_parts(shared, path, file, source);
    }
    let mut bytes = Vec::new();
    let read = source.read_to_end(&mut bytes);
    read.map_err(|error| of_file(file, &error))?;
    let store = Arc::clone(&shared.connection.store);
    let path = path.clone();
    let put = async move { store.put(&path, bytes.into()).await.map(|_| ()) };
    waited(shared, put)
}

/// Waits for a step of an upload.
fn waited<T: Send + 'static>(
    shared: &EngineShared,
    step: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> KvResult<T> {
    match shared.wait(shared.options.read_deadline, step) {
        Some(result) => result.map_err(|error| of_put(&error)),
        None => Err(KvError::Unknown("an upload took too long".to_owned())),
    }
}

fn upload_in_parts(
    shared: &Arc<EngineShared>,
    path: &Path,
    file: &FilePath,
    mut source: File,
) -> KvResult<()> {
    let store = Arc::clone(&shared.connection.store);
    let object = path.clone();
    let mut upload = waited(shared, async move { store.put_multipart(&object).await })?;
    let sent = send_parts(shared, upload.as_mut(), file, &mut source);
    let ended = waited(shared, async move {
        match sent {
            Ok(()) => upload.complete().await.map(|_| Ok(())),
            // Parts that nobody ends cost as much as objects.
            Err(error) => upload.abort().await.map(|()| Err(error)),
        }
    });
    ended?
}

fn send_parts(
    shared: &Arc<EngineShared>,
    upload: &mut dyn MultipartUpload,
    file: &FilePath,
    source: &mut File,
) -> KvResult<()> {
    let mut parts: JoinSet<object_store::Result<()>> = JoinSet::new();
    loop {
        let mut bytes = Vec::new();
        let read = source.take(PART).read_to_end(&mut bytes);
        read.map_err(|error| of_file(file, &error))?;
        let is_last = bytes.is_empty();
        if !is_last {
            parts.spawn_on(upload.put_part(bytes.into()), shared.handle());
        }
        let room = if is_last { 0 } else { PARTS_AT_ONCE - 1 };
        while parts.len() > room {
            parts = sent_one(shared, parts)?;
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Waits for one of the parts.
fn sent_one(
    shared: &EngineShared,
    mut parts: JoinSet<object_store::Result<()>>,
) -> KvResult<JoinSet<object_store::Result<()>>> {
    waited(shared, async move {
        if let Some(sent) = parts.join_next().await {
            sent.map_err(object_store::Error::from)??;
        }
        Ok(parts)
    })
}

/// Fetches an object into a file, which is whole when it has its name.
pub(super) fn download(shared: &Arc<EngineShared>, path: &Path, file: &FilePath) -> KvResult<bool> {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    let part = std::path::PathBuf::from(name);
    let mut attempt = 1;
    loop {
        match fetch(shared, path, &part) {
            Ok(false) => return Ok(false),
            Ok(true) => break,
            Err(KvError::Unavailable(_)) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => {
                let _ = std::fs::remove_file(&part);
                return Err(error);
            }
        }
    }
    let renamed = std::fs::rename(&part, file);
    renamed.map_err(|error| of_file(file, &error))?;
    Ok(true)
}

/// Fetches an object into a file that is not yet whole.
fn fetch(shared: &Arc<EngineShared>, path: &Path, part: &FilePath) -> KvResult<bool> {
    let deadline = shared.options.read_deadline;
    let late = || KvError::Unavailable("a download took too long".to_owned());
    let store = Arc::clone(&shared.connection.store);
    let object = path.clone();
    let found = shared.wait(deadline, async move { store.get(&object).await });
    let found = match found.ok_or_else(late)? {
        Ok(found) => found,
        Err(object_store::Error::NotFound { .. }) => return Ok(false),
        Err(error) => return Err(of_get(&error)),
    };
    let size = found.meta.size;
    let mut file = File::create(part).map_err(|error| of_file(part, &error))?;
    let mut written = 0;
    let mut stream = shared.entered(|| found.into_stream());
    loop {
        let next = shared.wait(deadline, async move {
            let next: Option<object_store::Result<Bytes>> = stream.next().await;
            (next, stream)
        });
        let (next, rest) = next.ok_or_else(late)?;
        stream = rest;
        let Some(bytes) = next else { break };
        let bytes = bytes.map_err(|error| of_get(&error))?;
        let wrote = file.write_all(&bytes);
        wrote.map_err(|error| of_file(part, &error))?;
        written += bytes.len() as u64;
    }
    if written != size {
        return Err(KvError::Unavailable(format!(
            "a download ended after {written} of {size} bytes"
        )));
    }
    file.sync_all().map_err(|error| of_file(part, &error))?;
    Ok(true)
}
