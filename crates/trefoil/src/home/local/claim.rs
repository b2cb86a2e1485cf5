//! A namespace in a directory of its own.
//!
//! ```text
//! <directory>/LOCK           held while a process has the namespace open
//! <directory>/generation     names the generation that counts
//! <directory>/<number>/      a generation: its log and its maps
//! <directory>/due            when something of the namespace is due
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use trefoil_core::{Error, Result};
use trefoil_storage::local::{DirectoryLock, Progress, private};
use trefoil_storage::{BlockCache, LocalOptions, LocalStorage, ReadReach};

use super::{due, failed, generations};
use crate::home::{Claim, Facts, OpenedGeneration, VerifiedLog};

/// The lock on the directory of a namespace.
#[derive(Debug)]
pub(super) struct LocalClaim {
    directory: PathBuf,
    options: LocalOptions,
    /// Whether the namespace has been used: if nothing is there, it is lost.
    must_exist: AtomicBool,
    /// `None` once it is released.
    lock: Mutex<Option<DirectoryLock>>,
}

impl LocalClaim {
    pub(super) fn take(
        directory: PathBuf,
        options: LocalOptions,
        must_exist: bool,
    ) -> Result<Arc<dyn Claim>> {
        match must_exist {
            true => generations::require(&directory)?,
            false if directory.is_dir() => {}
            false => private::create_dir(&directory)
                .map_err(|error| failed("creating", &directory, &error))?,
        }
        let lock = DirectoryLock::take(&directory)?;
        Ok(Arc::new(Self {
            directory,
            options,
            must_exist: AtomicBool::new(must_exist),
            lock: Mutex::new(Some(lock)),
        }))
    }

    fn check_held(&self) -> Result<()> {
        match *self.lock.lock() {
            Some(_) => Ok(()),
            None => Err(Error::Closed("the namespace was released".into())),
        }
    }

    /// Returns the generation that counts.
    fn generation(&self) -> Result<u64> {
        self.check_held()?;
        if self.must_exist.load(Ordering::SeqCst) {
            generations::require(&self.directory)?;
        }
        generations::current(&self.directory)
    }

    /// Returns the directory of the generation that counts.
    fn current(&self) -> Result<PathBuf> {
        let generation = self.generation()?;
        Ok(generations::path(&self.directory, generation))
    }
}

impl Claim for LocalClaim {
    fn facts(&self) -> Result<Facts> {
        Ok(Facts {
            generation: self.generation()?,
            due: due::read(&self.directory),
        })
    }

    fn open(
        &self,
        generation: u64,
        cache: &Arc<BlockCache>,
        reach: &ReadReach<'_>,
    ) -> Result<OpenedGeneration> {
        // If nothing is there yet, this writes down that the first generation counts.
        self.generation()?;
        let options = LocalOptions {
            cache: Arc::clone(cache),
            ..self.options.clone()
        };
        let place = generations::path(&self.directory, generation);
        let storage = LocalStorage::open_reaching(&place, options, reach)?;
        self.must_exist.store(true, Ordering::SeqCst);
        let cut_bytes = storage.recovery().cut.as_ref().map_or(0, |cut| cut.bytes);
        Ok(OpenedGeneration {
            storage: Arc::new(storage),
            cut_bytes,
            place,
        })
    }

    fn switch(&self, generation: u64) -> Result<()> {
        self.check_held()?;
        generations::replace_current(&self.directory, generation)
    }

    fn remove_others(&self) -> Result<()> {
        self.check_held()?;
        generations::remove_others(&self.directory)
    }

    fn set_due(&self, due: Option<u64>) -> Result<()> {
        self.check_held()?;
        due::write(&self.directory, due)
    }

    fn verify(&self, progress: &mut dyn FnMut(Progress)) -> Result<VerifiedLog> {
        Ok(VerifiedLog {
            log: LocalStorage::verify_log(self.current()?, progress)?,
            beside: due::verify(&self.directory).into_iter().collect(),
        })
    }

    fn remove_derived(&self, reach: &ReadReach<'_>) -> Result<()> {
        let generation = self.current()?;
        // Without the snapshot the maps are all there is of the state.
        LocalStorage::verify_snapshot(&generation)?;
        LocalStorage::remove_damaged_sidecars(&generation)?;
        LocalStorage::remove_maps(&generation, reach)
    }

    fn release(&self) {
        self.lock.lock().take();
    }
}
