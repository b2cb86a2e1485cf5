//! Cleaning up now and then: what is left of namespaces that were deleted, and of nodes that died long ago.

use std::time::Duration;

use trefoil::home::Incarnation;
use trefoil_core::{Error, NamespaceId, Result};

use super::objects::{failed, list_all};
use super::ownership::Acquired;
use super::{HomeShared, disk, due, elsewhere, facts, names, small};

/// How often is looked for what can be removed.
const CLEAN_UP_EVERY: Duration = Duration::from_secs(600);

/// For how many milliseconds it is kept that a node is dead. A node that wakes up after a much shorter time
/// takes itself for dead. Whoever finds that a namespace belongs to a node of which nothing is left
/// declares it dead once more.
const DEAD_KEPT: u64 = 24 * 3600 * 1000;

impl HomeShared {
    pub(super) fn clean_up_now_and_then(&self) {
        let mut is_closed = self.is_closed.lock();
        while !*is_closed {
            drop(is_closed);
            self.clean_up();
            is_closed = self.is_closed.lock();
            if !*is_closed {
                self.closing.wait_for(&mut is_closed, CLEAN_UP_EVERY);
            }
        }
    }

    pub(super) fn clean_up(&self) {
        self.erase_leftovers();
        if let Err(error) = self.remove_old_nodes() {
            tracing::warn!(%error, "cannot remove what is left of dead nodes yet");
        }
        if let Err(error) = self.trim_cache(disk::CACHE_BYTES_MAX) {
            tracing::warn!(%error, "cannot remove files of indexes that are not in use");
        }
    }

    /// Removes what says that nodes are dead that died long ago, by the clock of the store.
    fn remove_old_nodes(&self) -> Result<()> {
        let failed = || failed("removing dead nodes");
        let objects = self.objects();
        let now = objects.written(&names::node(self.node().id));
        let Some(now) = now.map_err(failed())? else {
            return Ok(());
        };
        for name in list_all(objects, names::NODES)? {
            let Some(node) = name.strip_suffix(names::DEAD) else {
                continue;
            };
            let died = objects.written(&name).map_err(failed())?;
            if died.is_some_and(|died| died.millis() + DEAD_KEPT < now.millis()) {
                // In this order: a node is never alive again.
                objects.delete(node).map_err(failed())?;
                objects.delete(&name).map_err(failed())?;
            }
        }
        Ok(())
    }

    /// Erases what is left of namespaces that were deleted when a node died, as far as that is possible
    /// at once.
    fn erase_leftovers(&self) {
        let listed = list_all(self.objects(), names::ERASE);
        let erase = |name: &String| match names::last_number(name) {
            Some(number) => self.erase_if_deleted(Incarnation(number), name),
            None => Ok(()),
        };
        let erased = listed.and_then(|listed| listed.iter().try_for_each(erase));
        if let Err(error) = erased {
            tracing::warn!(%error, "cannot erase what is left of a deleted namespace yet");
        }
    }

    fn erase_if_deleted(&self, incarnation: Incarnation, note: &str) -> Result<()> {
        let found = self.objects().get(note).map_err(failed("reading a note"))?;
        let Some((bytes, _)) = found else {
            return Ok(());
        };
        let (namespace, _): (String, _) = small::decode(note, &bytes)?;
        let id = NamespaceId::new(&namespace)?;
        match self.entries().check(&id, incarnation) {
            Err(Error::NamespaceNotFound(_)) => self.erase(&id, incarnation),
            // It was not deleted after all, or is being deleted now.
            checked => checked,
        }
    }

    /// Removes everything of a namespace that was deleted, unless another node has it.
    pub(super) fn erase(&self, id: &NamespaceId, incarnation: Incarnation) -> Result<()> {
        self.releaser.releases.settle(incarnation);
        let node = self.node();
        match self.owners(incarnation, node.id).acquire(&self.peers)? {
            Acquired::Owned(..) => {}
            Acquired::Elsewhere(owner) => return Err(elsewhere(id, owner)),
            Acquired::Later(_) => return Err(elsewhere(id, None)),
        }
        self.forget_due(incarnation)?;
        let erased = self.engine.erase(&names::store(incarnation));
        erased.map_err(failed("erasing a namespace"))?;
        let cached = self.cache_dir(incarnation);
        match std::fs::remove_dir_all(&cached) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let context = format!("removing {}", cached.display());
                return Err(Error::io(context, &error));
            }
            _ => {}
        }
        for name in list_all(self.objects(), &names::namespace(incarnation))? {
            let deleted = self.objects().delete(&name);
            deleted.map_err(failed("erasing a namespace"))?;
        }
        let deleted = self.objects().delete(&names::erase(incarnation));
        deleted.map_err(failed("erasing a namespace"))
    }

    pub(super) fn forget_due(&self, incarnation: Incarnation) -> Result<()> {
        let known = facts::read(self.objects(), incarnation)?;
        match known.and_then(|known| known.due) {
            Some(at) => due::forget(self.objects(), incarnation, at),
            None => Ok(()),
        }
    }
}
