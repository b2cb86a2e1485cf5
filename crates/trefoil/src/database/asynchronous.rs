//! The async forms of what blocks. Each has the name of its blocking form with `_async` behind it,
//! takes the same and returns the same. They work in any runtime, and none of them blocks the thread
//! that polls them: what reads a disk runs on a thread of the library.

use std::path::Path;

use bytes::Bytes;
use trefoil_core::{
    Commit, Committed, Condition, Event, EventId, ImportedEvent, Result, Selection, Timestamp,
    Tracking, validate_conditions,
};
use trefoil_state::{Call, Reply, Survey};

use super::{Database, Replacement, decide};
use crate::background::task::on_own_thread;
use crate::read::explain::Explanation;
use crate::read::listing::{CategoryInfo, List, StreamInfo};
use crate::state::Watch;
use crate::stats::RequestStage;
use crate::write::Work;
use crate::write::transaction::{Executed, Transaction};
use crate::{Info, Options, Page, StoredCommit};

/// Opening, closing and upkeep.
impl Database {
    /// The async form of [`Self::open`].
    pub async fn open_async(directory: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let (directory, options) = (directory.as_ref().to_owned(), options.clone());
        on_own_thread(move || Self::open(directory, &options)).await
    }

    /// The async form of [`Self::in_memory`].
    pub async fn in_memory_async(options: &Options) -> Result<Self> {
        let options = options.clone();
        on_own_thread(move || Self::in_memory(&options)).await
    }

    /// The async form of [`Self::close`].
    pub async fn close_async(&self) -> Result<()> {
        self.on_own_thread(Self::close).await
    }

    /// The async form of [`Self::reopen`].
    pub async fn reopen_async(&self) -> Result<()> {
        self.on_own_thread(Self::reopen).await
    }

    /// The async form of [`Self::clear`].
    pub async fn clear_async(&self) -> Result<()> {
        self.on_own_thread(Self::clear).await
    }

    /// The async form of [`Self::replace`].
    pub async fn replace_async(&self) -> Result<Replacement> {
        self.on_own_thread(Self::replace).await
    }

    /// The async form of [`Self::checkpoint`].
    pub async fn checkpoint_async(&self) -> Result<()> {
        self.on_own_thread(Self::checkpoint).await
    }

    /// The async form of [`Self::compact`].
    pub async fn compact_async(&self) -> Result<()> {
        self.on_own_thread(Self::compact).await
    }

    async fn on_own_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let database = self.clone();
        on_own_thread(move || work(&database)).await
    }
}

/// Writing.
impl Database {
    /// The async form of [`Self::commit`].
    pub async fn commit_async(&self, commit: Commit) -> Result<Committed> {
        let commit = self.accept_commit(commit)?;
        let written = self.engine()?.commit_async(commit, self.trace()).await;
        self.confirm(written)
    }

    /// The async form of [`Self::import`].
    pub async fn import_async(&self, events: Vec<ImportedEvent>) -> Result<()> {
        self.import_events_async(events, false).await
    }

    /// The async form of [`Self::import_with_new_ids`].
    pub async fn import_with_new_ids_async(&self, events: Vec<ImportedEvent>) -> Result<()> {
        self.import_events_async(events, true).await
    }

    async fn import_events_async(&self, events: Vec<ImportedEvent>, new_ids: bool) -> Result<()> {
        self.take_import(&events, false)?;
        match Self::accept_import(events, new_ids)? {
            Some(import) => {
                let written = self.engine()?.write_async(Work::Import(import)).await;
                self.confirm(written.map(drop))
            }
            None => Ok(()),
        }
    }

    /// The async form of [`Self::transact`].
    pub async fn transact_async(&self, transaction: Transaction) -> Result<Executed> {
        let executed = self.transact_all_async(vec![transaction]).await?;
        super::only(executed)
    }

    /// The async form of [`Self::transact_all`].
    pub async fn transact_all_async(
        &self,
        transactions: Vec<Transaction>,
    ) -> Result<Vec<Result<Executed>>> {
        let accepted = self.accept_all(transactions);
        let executed = self.engine()?.execute_async(accepted, self.trace()).await?;
        Ok(self.confirm_all(executed))
    }
}

/// Reading events.
impl Database {
    /// The async form of [`Self::read`].
    pub async fn read_async(&self, selection: &Selection) -> Result<Vec<Event>> {
        let selection = selection.clone();
        self.elsewhere(move |database| database.read(&selection))
            .await
    }

    /// The async form of [`Self::read_with_head`].
    pub async fn read_with_head_async(&self, selection: &Selection) -> Result<(Vec<Event>, u64)> {
        let selection = selection.clone();
        self.elsewhere(move |database| database.read_with_head(&selection))
            .await
    }

    /// The async form of [`Self::read_page`].
    pub async fn read_page_async(&self, selection: &Selection, bytes_max: usize) -> Result<Page> {
        let selection = selection.clone();
        self.elsewhere(move |database| database.read_page(&selection, bytes_max))
            .await
    }

    /// The async form of [`Self::explain`].
    pub async fn explain_async(&self, selection: &Selection) -> Result<Explanation> {
        let selection = selection.clone();
        self.elsewhere(move |database| database.explain(&selection))
            .await
    }

    /// The async form of [`Self::check`]. What takes long is given up when nobody waits for it any
    /// more.
    pub async fn check_async(&self, conditions: &[Condition]) -> Result<()> {
        validate_conditions(conditions)?;
        let engine = self.engine()?;
        let (conditions, checked) = engine
            .check_async(conditions.to_vec(), self.trace())
            .await?;
        if !engine.may_wait {
            return self.ask(|_| decide(&engine, &conditions, &checked));
        }
        self.elsewhere(move |database| database.ask(|_| decide(&engine, &conditions, &checked)))
            .await
    }

    /// The async form of [`Self::last`].
    pub async fn last_async(
        &self,
        stream: &str,
        event_type: Option<&str>,
    ) -> Result<Option<Event>> {
        let (stream, event_type) = (stream.to_owned(), event_type.map(str::to_owned));
        self.elsewhere(move |database| database.last(&stream, event_type.as_deref()))
            .await
    }

    /// The async form of [`Self::version`].
    pub async fn version_async(&self, stream: &str) -> Result<Option<u64>> {
        let stream = stream.to_owned();
        self.elsewhere(move |database| database.version(&stream))
            .await
    }

    /// The async form of [`Self::position_at`].
    pub async fn position_at_async(&self, time: Timestamp) -> Result<Option<u64>> {
        self.elsewhere(move |database| database.position_at(time))
            .await
    }

    /// The async form of [`Self::tracking`].
    pub async fn tracking_async(&self, source: &str) -> Result<Option<u64>> {
        let source = source.to_owned();
        self.elsewhere(move |database| database.tracking(&source))
            .await
    }

    /// The async form of [`Self::trackings`].
    pub async fn trackings_async(&self, list: &List) -> Result<Vec<Tracking>> {
        let list = list.clone();
        self.elsewhere(move |database| database.trackings(&list))
            .await
    }

    /// The async form of [`Self::event_at`].
    pub async fn event_at_async(&self, position: u64) -> Result<Option<Event>> {
        self.elsewhere(move |database| database.event_at(position))
            .await
    }

    /// The async form of [`Self::event_with_id`].
    pub async fn event_with_id_async(&self, id: &EventId) -> Result<Option<Event>> {
        let id = *id;
        self.elsewhere(move |database| database.event_with_id(&id))
            .await
    }

    /// The async form of [`Self::stored_commit`].
    pub async fn stored_commit_async(
        &self,
        commit: u64,
        from: u64,
        limit: usize,
    ) -> Result<Option<StoredCommit>> {
        self.elsewhere(move |database| database.stored_commit(commit, from, limit))
            .await
    }

    /// The async form of [`Self::info`].
    pub async fn info_async(&self) -> Result<Info> {
        self.elsewhere(Self::info).await
    }

    /// The async form of [`Self::streams`].
    pub async fn streams_async(&self, list: &List) -> Result<Vec<StreamInfo>> {
        let list = list.clone();
        self.elsewhere(move |database| database.streams(&list))
            .await
    }

    /// The async form of [`Self::categories`].
    pub async fn categories_async(&self, list: &List) -> Result<Vec<CategoryInfo>> {
        let list = list.clone();
        self.elsewhere(move |database| database.categories(&list))
            .await
    }

    /// Has a read done on a thread of the library. The databases take turns there, so that one whose
    /// storage waits does not keep the others waiting.
    pub async fn elsewhere<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let reader = self.engine()?.reader();
        let work = self.noting_wait(work);
        self.inner.background.read(reader, work).await
    }

    /// Adds to the trace how long it takes until some work begins on another thread.
    pub(super) fn noting_wait<T, F: FnOnce(&Self) -> Result<T>>(
        &self,
        work: F,
    ) -> impl FnOnce() -> Result<T> + use<T, F> {
        let database = self.clone();
        let asked = self.inner.background.clock.steady();
        move || {
            if let Some(trace) = database.trace() {
                let waited = database.inner.background.clock.since(asked);
                trace.add(RequestStage::Wait, waited);
            }
            work(&database)
        }
    }
}

/// Reading the state.
impl Database {
    /// The async form of [`Self::look`].
    pub async fn look_async(&self, calls: &[Call]) -> Result<Vec<Reply>> {
        let calls = calls.to_vec();
        self.elsewhere(move |database| database.look(&calls)).await
    }

    /// The async form of [`Self::survey`].
    pub async fn survey_async(&self) -> Result<Survey> {
        self.elsewhere(Self::survey).await
    }

    /// The async form of [`Self::watch`].
    pub async fn watch_async(&self, keys: &[Bytes]) -> Result<Watch> {
        let keys = keys.to_vec();
        self.elsewhere(move |database| database.watch(&keys)).await
    }

    /// The async form of [`Self::watch_more`]. If the future is dropped before it resolves, the keys
    /// count as changed.
    pub async fn watch_more_async(&self, watch: &mut Watch, keys: &[Bytes]) -> Result<()> {
        let keys = keys.to_vec();
        let mut taken = watch.take();
        let watched = self.elsewhere(move |database| {
            database.watch_more(&mut taken, &keys)?;
            Ok(taken)
        });
        *watch = watched.await?;
        Ok(())
    }
}

impl Replacement {
    /// The async form of [`Self::finish`].
    pub async fn finish_async(self) -> Result<()> {
        on_own_thread(move || self.finish()).await
    }
}
