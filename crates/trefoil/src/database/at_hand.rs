//! Reads of events on threads that serve others: at once if everything is in memory, and otherwise on a
//! thread that waits for the disk.

use std::sync::Arc;

use trefoil_core::Result;

use super::Database;
use crate::background::ReadOwner;
use crate::read::ReadShortage;

impl Database {
    /// Reads events through a handle that does not wait for the disk. Returns `None` if that would have
    /// to be done, and if the index had to be waited for lately: see [`Self::from_disk`].
    pub fn at_hand<T>(&self, read: impl FnOnce(&Self) -> Result<T>) -> Result<Option<T>> {
        let engine = self.engine()?;
        if self.may_wait() || engine.index_slowness.is_expected(engine.clock()) {
            return Ok(None);
        }
        let shortage = Arc::new(ReadShortage::default());
        let quick = Self {
            shortage: Some(Arc::clone(&shortage)),
            ..self.clone()
        };
        match read(&quick) {
            Err(_) if shortage.is_there() => Ok(None),
            done => done.map(Some),
        }
    }

    /// Has events read on a thread of the library that waits for the disk. The databases share these
    /// threads, and none has all of them.
    pub async fn from_disk<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let background = &self.inner.background;
        background.expect_waiting()?;
        let reader = ReadOwner {
            may_wait: true,
            ..self.engine()?.reader()
        };
        let read = self.noting_wait(read);
        background.read(reader, read).await
    }

    /// Reads events: on this thread if they are in memory, and otherwise as [`Self::from_disk`] does.
    pub async fn soon<T: Send + 'static>(
        &self,
        read: impl Fn(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self.at_hand(&read)? {
            Some(done) => Ok(done),
            None => self.from_disk(read).await,
        }
    }

    pub(crate) fn shortage(&self) -> Option<&ReadShortage> {
        self.shortage.as_deref()
    }
}
