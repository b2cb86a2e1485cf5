//! Reading on other threads: what may take long, and what the writer will need of a storage that may
//! wait.

use std::sync::Arc;

use trefoil_core::Result;

use crate::background::ReadOwner;
use crate::database::engine::Engine;
use crate::write::WriteRequest;

impl Engine {
    /// Whose reads on other threads are its own.
    pub(crate) fn reader(&self) -> ReadOwner {
        ReadOwner {
            tenant: self.tenant(),
            may_wait: self.may_wait,
        }
    }

    /// Reads what staging a request will need, if the storage may wait. Blocks the thread.
    pub(crate) fn read_ahead(&self, request: &mut WriteRequest) {
        if self.may_wait {
            self.writer.rehearse(request);
        }
    }

    /// Has what staging a request will need read on a thread for that. Returns the request.
    pub(crate) async fn read_ahead_async(
        self: &Arc<Self>,
        mut request: WriteRequest,
    ) -> Result<WriteRequest> {
        let engine = Arc::clone(self);
        let read = move || {
            engine.read_ahead(&mut request);
            Ok(request)
        };
        self.background.read(self.reader(), read).await
    }
}
