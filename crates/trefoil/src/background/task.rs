//! Work that blocks, done for callers that must not block: the future resolves when a thread has
//! done it. It is done to its end even if the future is dropped once it has begun.

use trefoil_core::{Error, Result};

use super::{Background, ReadOwner};
use crate::database::engine::{abandoned, unanswered};

impl Background {
    /// Has a read done on the threads for long reads. It is not begun if nobody waits for it any
    /// more.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        reader: ReadOwner,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, done) = oneshot::async_channel();
        self.look(reader, move || {
            if !reply.is_closed() {
                // The caller may have gone meanwhile.
                let _ = reply.send(work());
            }
        })?;
        done.await.unwrap_or_else(|_| Err(abandoned()))
    }
}

/// Has something rare that may take long, such as opening a database, done on a thread of its own.
pub(crate) async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, done) = oneshot::async_channel();
    std::thread::Builder::new()
        .name("trefoil-task".to_owned())
        .spawn(move || {
            // The caller may have gone meanwhile.
            let _ = reply.send(work());
        })
        .map_err(|error| Error::io("starting a thread", &error))?;
    done.await.unwrap_or_else(|_| Err(unanswered()))
}
