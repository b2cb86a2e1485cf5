//! What every [`KvEngine`] must do, as a function to be called from its tests.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod fencing;
mod objects;
mod stores;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;

use crate::contract::{Kv, KvBatch, KvEngine, KvResult};

/// How long a call may take in a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks the contract. `connect` returns an engine as another node sees it, or the same one again if
/// there can be only one; what is there stays.
pub fn check(connect: &dyn Fn() -> Arc<dyn KvEngine>) {
    let engine = connect();
    stores::check(&*engine);
    fencing::check(&*engine, &*connect());
    objects::check(engine.objects(), connect().objects());
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Returns a batch; a change without a value removes its key.
fn batch(changes: &[(&str, Option<&str>)]) -> KvBatch {
    let change = |(key, value): &(&str, Option<&str>)| (bytes(key), value.map(bytes));
    KvBatch {
        changes: changes.iter().map(change).collect(),
    }
}

/// Commits and waits for the result.
fn commit(kv: &dyn Kv, batch: KvBatch) -> KvResult<()> {
    let (sender, receiver) = channel();
    let done = move |result| sender.send(result).unwrap();
    kv.commit(batch, Box::new(done));
    receiver.recv_timeout(PATIENCE).unwrap()
}

/// Sets keys and waits until they are durable.
fn put(kv: &dyn Kv, entries: &[(&str, &str)]) {
    let changes: Vec<(&str, Option<&str>)> = entries
        .iter()
        .map(|(key, value)| (*key, Some(*value)))
        .collect();
    commit(kv, batch(&changes)).unwrap();
}

fn get(kv: &dyn Kv, key: &str) -> Option<Bytes> {
    kv.get(&[key.as_bytes()]).unwrap().remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryEngine;

    #[test]
    fn the_engine_in_memory_does_what_every_engine_does() {
        let engine: Arc<dyn KvEngine> = Arc::new(MemoryEngine::default());
        check(&|| Arc::clone(&engine));
    }
}
