//! Trefoil itself, through its public interface.

use std::path::Path;

use anyhow::Result;
use trefoil::{Commit, Database, NewEvent, Options, Selection};

use crate::system::{System, Touched};

/// A database under measurement.
#[derive(Debug)]
pub(crate) struct Trefoil {
    pub(crate) database: Database,
}

impl Trefoil {
    pub(crate) fn open(directory: &Path, options: &Options) -> Result<Self> {
        Ok(Self {
            database: Database::open(directory, options)?,
        })
    }

    /// Waits for what is under way and closes.
    pub(crate) fn close(self) -> Result<()> {
        Ok(self.database.close()?)
    }

    /// Bytes on disk without room that is only reserved, and bytes of the index among them.
    pub(crate) fn bytes(&self) -> Result<(u64, Option<u64>)> {
        let info = self.database.info()?;
        Ok((
            info.log_used_bytes + info.index_bytes,
            Some(info.index_bytes),
        ))
    }

    fn read(&self, read: &Selection) -> Result<Touched> {
        let mut touched = Touched::default();
        for event in self.database.read(read)? {
            touched.touch(event.data());
        }
        Ok(touched)
    }
}

impl System for Trefoil {
    fn append(&mut self, events: &mut Vec<NewEvent>) -> Result<()> {
        self.database.commit(Commit::new(std::mem::take(events)))?;
        Ok(())
    }

    fn read_stream(&self, stream: &str, from: u64, limit: usize) -> Result<Touched> {
        self.read(
            &Selection::stream(stream)
                .from_stream_position(from)
                .limit(limit),
        )
    }

    fn read_category(&self, category: &str, from: u64, limit: usize) -> Result<Touched> {
        self.read(
            &Selection::category(category)
                .from_position(from)
                .limit(limit),
        )
    }
}
