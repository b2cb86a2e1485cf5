//! The engine: a runtime of its own, a connection, a cache that all stores share.
//!
//! The calls of the contract wait; the libraries below are asynchronous. So a call runs its work to
//! the end on the thread that it came on, and what goes on in the background has threads of its own.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use slatedb::db_cache::DbCache;
use tokio::runtime::{Builder, Handle, Runtime};
use trefoil_kv::contract::{Kv, KvEngine, KvError, KvObjects, KvResult, RequestCounts};

use crate::connect::{ConnectError, Connection, StoreUrl, connect};
use crate::error::{of_get, of_put};
use crate::objects::{StoreObjects, path_of};
use crate::options::StoreOptions;
use crate::store;

/// Directories of a store.
const OBJECTS: &str = "objects";
const EPOCHS: &str = "epochs";
const STORES: &str = "stores";

/// How long the test of a service may take: many requests, of a service that may just have started.
const CONNECT_DEADLINE: Duration = Duration::from_secs(60);
/// How many threads work in the background at most.
const MAX_THREADS: usize = 4;
/// How many objects one step of an erasure removes.
const ERASED_AT_ONCE: usize = 1000;

/// What everything of an engine uses.
pub(crate) struct EngineShared {
    runtime: Option<Runtime>,
    handle: Handle,
    pub(crate) connection: Connection,
    pub(crate) options: StoreOptions,
    pub(crate) cache: Arc<dyn DbCache>,
    /// Keeps others from the directory of the cache.
    cache_lock: Option<File>,
}

impl std::fmt::Debug for EngineShared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EngineShared")
            .field("connection", &self.connection)
            .field("options", &self.options)
            .field("has_cache_on_disk", &self.cache_lock.is_some())
            .finish_non_exhaustive()
    }
}

impl EngineShared {
    /// Returns the runtime.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Calls what needs a runtime around it.
    pub(crate) fn entered<T>(&self, call: impl FnOnce() -> T) -> T {
        let _entered = self.handle.enter();
        call()
    }

    /// Waits until `work` is done, or returns `None` after the deadline. Any thread may call it.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        deadline: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let limited = async move { tokio::time::timeout(deadline, work).await.ok() };
        if Handle::try_current().is_err() {
            return self.handle.block_on(limited);
        }
        // A thread of a runtime must not run another one.
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = sender.send(limited.await);
        });
        receiver.recv().ok().flatten()
    }
}

impl Drop for EngineShared {
    fn drop(&mut self) {
        // Waiting here could be waiting for the thread that drops this.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Stores and objects in an object store.
#[derive(Debug)]
pub struct SlateEngine {
    pub(crate) shared: Arc<EngineShared>,
    objects: StoreObjects,
    epochs: StoreObjects,
}

impl SlateEngine {
    /// Connects to a store and tests whether it can be used.
    pub fn connect(url: &StoreUrl, options: StoreOptions) -> Result<Self, ConnectError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.clamp(2, MAX_THREADS))
            .thread_name("trefoil-store")
            .enable_all()
            .build()
            .map_err(|error| ConnectError(format!("cannot start threads: {error}")))?;
        let handle = runtime.handle().clone();
        let late = || ConnectError(format!("{url} does not answer within {CONNECT_DEADLINE:?}"));
        let connecting = async {
            let connecting = connect(url, &options.variables);
            tokio::time::timeout(CONNECT_DEADLINE, connecting).await
        };
        let connection = wait_anywhere(&handle, connecting).map_err(|_| late())??;
        let building = store::cache::build(&options);
        let (cache, cache_lock) = wait_anywhere(&handle, building)?;
        let shared = Arc::new(EngineShared {
            runtime: Some(runtime),
            handle,
            connection,
            options,
            cache,
            cache_lock,
        });
        Ok(Self {
            objects: StoreObjects::new(Arc::clone(&shared), OBJECTS),
            epochs: StoreObjects::new(Arc::clone(&shared), EPOCHS),
            shared,
        })
    }

    /// Removes some of the objects below a path. Returns whether there were any.
    fn erase_some(&self, below: Path) -> KvResult<bool> {
        let object_store = Arc::clone(&self.shared.connection.store);
        let erase = async move {
            let found = object_store.list(Some(&below)).take(ERASED_AT_ONCE);
            let found: Vec<Path> = found
                .map_ok(|object| object.location)
                .try_collect()
                .await
                .map_err(|error| of_get(&error))?;
            let some = !found.is_empty();
            let found = futures_util::stream::iter(found.into_iter().map(Ok)).boxed();
            let mut deleted = object_store.delete_stream(found);
            while let Some(result) = deleted.next().await {
                match result {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(of_put(&error)),
                }
            }
            Ok(some)
        };
        let late = || KvError::Unknown("erasing took too long".to_owned());
        let waited = self.shared.wait(self.shared.options.read_deadline, erase);
        waited.unwrap_or_else(|| Err(late()))
    }
}

/// Waits for what borrows, on any thread.
fn wait_anywhere<T: Send>(handle: &Handle, work: impl Future<Output = T> + Send) -> T {
    match Handle::try_current() {
        Err(_) => handle.block_on(work),
        Ok(_) => std::thread::scope(|scope| {
            let waiting = scope.spawn(|| handle.block_on(work));
            match waiting.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }),
    }
}

impl KvEngine for SlateEngine {
    fn request_counts(&self) -> RequestCounts {
        self.shared.connection.counters.counts()
    }

    fn objects(&self) -> &dyn KvObjects {
        &self.objects
    }

    fn open(&self, name: &str, epoch: u64) -> KvResult<Arc<dyn Kv>> {
        let path = path_of(&self.shared.connection.prefix, STORES, name)?;
        let opened = store::open::open(&self.shared, &self.epochs, name, &path, epoch)?;
        Ok(Arc::new(opened))
    }

    fn erase(&self, name: &str) -> KvResult<()> {
        let path = path_of(&self.shared.connection.prefix, STORES, name)?;
        while self.erase_some(path.clone())? {}
        self.epochs.delete(name)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::mpsc::channel;

    use bytes::Bytes;
    use chrono::{DateTime, TimeDelta, Utc};
    use slatedb::Db;
    use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};
    use trefoil_kv::contract::KvBatch;

    use super::*;

    /// A clock of another machine.
    #[derive(Debug)]
    struct OtherClock {
        system: DefaultSystemClock,
        ahead: TimeDelta,
    }

    impl SystemClock for OtherClock {
        fn now(&self) -> DateTime<Utc> {
            self.system.now() + self.ahead
        }

        fn sleep<'a>(&'a self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
            self.system.sleep(time)
        }

        fn ticker<'a>(&'a self, time: Duration) -> SystemClockTicker<'a> {
            SystemClockTicker::new(self, time)
        }
    }

    /// Returns an engine with a store that a machine wrote to whose clock was ahead.
    fn written_ahead(ahead: TimeDelta) -> SlateEngine {
        let engine = SlateEngine::connect(&StoreUrl::Memory, StoreOptions::default()).unwrap();
        let store = Arc::clone(&engine.shared.connection.store);
        let wrote = engine.shared.wait(Duration::from_secs(20), async move {
            let clock = OtherClock {
                system: DefaultSystemClock::new(),
                ahead,
            };
            let db = Db::builder("stores/x", store)
                .with_segment_extractor(Arc::new(crate::store::FirstByte))
                .with_system_clock(Arc::new(clock))
                .build()
                .await
                .unwrap();
            db.put(b"a", b"ahead").await.unwrap();
            db.flush().await.unwrap();
        });
        assert!(wrote.is_some());
        engine
    }

    #[test]
    fn a_writer_whose_clock_is_behind_does_not_wait() {
        let engine = written_ahead(TimeDelta::seconds(20));
        let kv = engine.open("x", 1).unwrap();
        let (sender, receiver) = channel();
        let batch = KvBatch {
            changes: vec![(Bytes::from("b"), Some(Bytes::from("behind")))],
        };
        kv.commit(batch, Box::new(move |done| sender.send(done).unwrap()));
        // SlateDB would wait for ten seconds, and then fail.
        let done = receiver.recv_timeout(Duration::from_secs(5)).unwrap();
        assert_eq!(done, Ok(()));
        let found = kv.get(&[b"a", b"b"]).unwrap();
        assert!(found.iter().all(Option::is_some), "{found:?}");
        kv.close().unwrap();
    }

    #[test]
    fn a_clock_that_is_far_behind_is_named() {
        let engine = written_ahead(TimeDelta::seconds(600));
        let error = engine.open("x", 1).unwrap_err();
        let KvError::Unavailable(text) = &error else {
            panic!("{error:?}");
        };
        assert!(text.contains("the clock of this machine is"), "{text}");
    }

    #[test]
    fn a_cache_on_disk_is_for_one_engine() {
        let directory = tempfile::tempdir().unwrap();
        let options = StoreOptions {
            cache_directory: Some(directory.path().to_owned()),
            cache_disk: 64 << 20,
            ..StoreOptions::default()
        };
        let connect = || SlateEngine::connect(&StoreUrl::Memory, options.clone()).unwrap();
        let (first, second) = (connect(), connect());
        assert!(first.shared.cache_lock.is_some());
        assert!(second.shared.cache_lock.is_none());
        for engine in [&first, &second] {
            engine.open("x", 1).unwrap().close().unwrap();
        }
        drop(first);
        assert!(connect().shared.cache_lock.is_some());
    }

    #[tokio::test]
    async fn calls_from_a_thread_of_a_runtime_wait_too() {
        let engine = SlateEngine::connect(&StoreUrl::Memory, StoreOptions::default()).unwrap();
        let objects = engine.objects();
        assert!(objects.create("a", Bytes::from("x")).unwrap().is_some());
        assert!(objects.get("a").unwrap().is_some());
        engine.open("x", 1).unwrap().close().unwrap();
    }
}
