//! Reading on other threads: what may take long, and what the writer will need of a storage that may
//! wait, or of a disk that is slow.

use std::sync::Arc;

use trefoil_core::Result;

use crate::background::ReadOwner;
use crate::database::engine::Engine;
use crate::write::WriteRequest;

/// It is not looked whether everything is in memory for a request of more bytes: that would take long
/// itself.
const LOOKED_BYTES_MAX: usize = 16 * 1024;

impl Engine {
    /// Whose reads on other threads are its own.
    pub(crate) fn reader(&self) -> ReadOwner {
        ReadOwner {
            tenant: self.tenant(),
            may_wait: self.may_wait,
        }
    }

    /// Returns whether what staging a request reads may have to be waited for.
    fn may_wait_for(&self, request: &WriteRequest) -> bool {
        self.may_wait || request.reads_state() && self.store.is_slow_to_read()
    }

    /// Reads what staging a request will need, if that may have to be waited for. Blocks the thread.
    pub(crate) fn read_ahead(&self, request: &mut WriteRequest) {
        if self.may_wait_for(request) {
            self.writer.rehearse(request);
        }
    }

    /// Returns whether a thread that serves connections must have something read ahead for a request.
    pub(crate) fn must_read_ahead(&self, request: &mut WriteRequest) -> bool {
        self.may_wait_for(request) && !self.has_at_hand(request)
    }

    /// Has what staging a request will need read on a thread for that. Returns the request.
    pub(crate) async fn read_ahead_async(
        self: &Arc<Self>,
        mut request: WriteRequest,
    ) -> Result<WriteRequest> {
        let engine = Arc::clone(self);
        let read = move || {
            engine.writer.rehearse(&mut request);
            Ok(request)
        };
        self.background.read(self.reader(), read).await
    }

    /// Returns whether what staging a request reads is known to be in memory. Of a storage that may wait,
    /// the index may have to be waited for, too.
    fn has_at_hand(&self, request: &mut WriteRequest) -> bool {
        !self.may_wait && request.size() <= LOOKED_BYTES_MAX && self.writer.has_at_hand(request)
    }
}
