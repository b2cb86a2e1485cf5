//! Counts what a store is asked for, which is what a service charges.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use trefoil_kv::contract::RequestCounts;

/// How many names a service returns for one request to list.
const NAMES_PER_LIST: u64 = 1000;

/// Counts requests as they are made.
#[derive(Debug, Default)]
pub(crate) struct RequestCounters {
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
    failures: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl RequestCounters {
    /// Returns the counts.
    pub(crate) fn counts(&self) -> RequestCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RequestCounts {
            puts: read(&self.puts),
            gets: read(&self.gets),
            lists: read(&self.lists),
            deletes: read(&self.deletes),
            bytes_written: read(&self.bytes_written),
            bytes_read: read(&self.bytes_read),
            failures: read(&self.failures),
        }
    }

    fn note<T>(&self, result: Result<T>) -> Result<T> {
        use object_store::Error::{AlreadyExists, NotFound, NotModified, Precondition};
        let is_answer = matches!(
            &result,
            Ok(_)
                | Err(AlreadyExists { .. }
                    | NotFound { .. }
                    | NotModified { .. }
                    | Precondition { .. })
        );
        if !is_answer {
            add(&self.failures, 1);
        }
        result
    }
}

/// A store whose requests are counted.
#[derive(Debug)]
pub(crate) struct CountedStore {
    inner: Arc<dyn ObjectStore>,
    counters: Arc<RequestCounters>,
}

impl CountedStore {
    /// Counts the requests to `inner`.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, counters: Arc<RequestCounters>) -> Self {
        Self { inner, counters }
    }

    fn counted_names(
        &self,
        names: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        add(&self.counters.lists, 1);
        let counters = Arc::clone(&self.counters);
        let mut seen = 0;
        let names = names.map(move |name| {
            seen += 1;
            if seen > NAMES_PER_LIST {
                seen = 1;
                add(&counters.lists, 1);
            }
            counters.note(name)
        });
        names.boxed()
    }
}

impl std::fmt::Display for CountedStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(formatter)
    }
}

#[async_trait]
impl ObjectStore for CountedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        add(&self.counters.puts, 1);
        add(
            &self.counters.bytes_written,
            payload.content_length() as u64,
        );
        let result = self.inner.put_opts(location, payload, options).await;
        self.counters.note(result)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        add(&self.counters.puts, 1);
        let result = self.inner.put_multipart_opts(location, options).await;
        let inner = self.counters.note(result)?;
        let counters = Arc::clone(&self.counters);
        Ok(Box::new(CountedUpload { inner, counters }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        add(&self.counters.gets, 1);
        let is_head = options.head;
        let result = self
            .counters
            .note(self.inner.get_opts(location, options).await)?;
        if !is_head {
            let range = &result.range;
            add(
                &self.counters.bytes_read,
                range.end.saturating_sub(range.start),
            );
        }
        Ok(result)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let counters = Arc::clone(&self.counters);
        let deleted = self.inner.delete_stream(locations).map(move |deleted| {
            add(&counters.deletes, 1);
            counters.note(deleted)
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counted_names(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counted_names(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        add(&self.counters.lists, 1);
        self.counters
            .note(self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        add(&self.counters.puts, 1);
        self.counters
            .note(self.inner.copy_opts(from, to, options).await)
    }
}

/// An upload in parts, each of which is a request.
#[derive(Debug)]
struct CountedUpload {
    inner: Box<dyn MultipartUpload>,
    counters: Arc<RequestCounters>,
}

#[async_trait]
impl MultipartUpload for CountedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        add(&self.counters.puts, 1);
        add(&self.counters.bytes_written, data.content_length() as u64);
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        add(&self.counters.puts, 1);
        let result = self.inner.complete().await;
        self.counters.note(result)
    }

    async fn abort(&mut self) -> Result<()> {
        add(&self.counters.deletes, 1);
        let result = self.inner.abort().await;
        self.counters.note(result)
    }
}
