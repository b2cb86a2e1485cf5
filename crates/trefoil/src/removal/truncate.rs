//! Truncating and deleting streams.

use trefoil_core::{Error, Result, Timestamp, validate_stream_name};

use super::resolve::{RemovalWork, resolve};
use crate::Database;
use crate::database::engine::Engine;
use crate::write::{Work, check_version};

/// What is removed of a stream: all its events before a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveBefore {
    /// This position in the stream.
    StreamPosition(u64),
    /// This global position.
    Position(u64),
    /// The end of the stream as it is now.
    End,
}

/// What became of a request to remove events of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncated {
    /// How many events were removed.
    pub removed: u64,
    /// The version of the stream, which stays; `None` if there was never such a stream.
    pub version: Option<u64>,
}

/// How often it is found out again what is to be removed, because something else was removed meanwhile.
const ATTEMPTS_MAX: usize = 100;

impl Database {
    /// Removes all events of a stream before a place, and returns when that is durable. The stream keeps
    /// its version. If `expected_version` is given, the stream must have it. Blocks the thread.
    pub fn truncate(
        &self,
        stream: &str,
        before: RemoveBefore,
        expected_version: Option<i64>,
    ) -> Result<Truncated> {
        validate_stream_name(stream)?;
        for _ in 0..ATTEMPTS_MAX {
            let engine = self.engine()?;
            let Some(work) = resolve(&engine, stream, before, expected_version)? else {
                return nothing_removed(&engine, stream, expected_version);
            };
            let truncated = truncated(&work);
            match self.confirm(engine.write(Work::Remove(work))) {
                Err(Error::WatchedKeyChanged) => {}
                written => return written.map(|_| counted(&engine, truncated)),
            }
        }
        Err(too_many())
    }

    /// Removes all events that a stream has now. The next event of it continues its version. Blocks the
    /// thread.
    pub fn delete_stream(&self, stream: &str, expected_version: Option<i64>) -> Result<Truncated> {
        self.truncate(stream, RemoveBefore::End, expected_version)
    }

    /// The async form of [`Self::truncate`].
    pub async fn truncate_async(
        &self,
        stream: &str,
        before: RemoveBefore,
        expected_version: Option<i64>,
    ) -> Result<Truncated> {
        validate_stream_name(stream)?;
        for _ in 0..ATTEMPTS_MAX {
            let engine = self.engine()?;
            let (finder, name) = (engine.clone(), stream.to_owned());
            let resolved = self.elsewhere(move |_| {
                let work = resolve(&finder, &name, before, expected_version)?;
                match work {
                    Some(work) => Ok(Err(work)),
                    None => nothing_removed(&finder, &name, expected_version).map(Ok),
                }
            });
            let work = match resolved.await? {
                Ok(truncated) => return Ok(truncated),
                Err(work) => work,
            };
            let truncated = truncated(&work);
            match self.confirm(engine.write_async(Work::Remove(work)).await) {
                Err(Error::WatchedKeyChanged) => {}
                written => return written.map(|_| counted(&engine, truncated)),
            }
        }
        Err(too_many())
    }

    /// Returns what is before a time: the events before the first one of the namespace that has this time
    /// or a later one.
    pub fn before_time(&self, time: Timestamp) -> Result<RemoveBefore> {
        let position = self.position_at(time)?;
        Ok(position.map_or(RemoveBefore::End, RemoveBefore::Position))
    }
}

fn truncated(work: &RemovalWork) -> Truncated {
    Truncated {
        removed: work.n_events(),
        version: Some(work.after.version),
    }
}

/// Counts what was removed.
fn counted(engine: &Engine, truncated: Truncated) -> Truncated {
    engine.background.stats.count_removed(truncated.removed);
    truncated
}

/// Returns that nothing was to be removed, if the stream has the version that it must have.
fn nothing_removed(engine: &Engine, stream: &str, expected: Option<i64>) -> Result<Truncated> {
    let version = engine.version(stream)?;
    if let Some(expected) = expected {
        check_version(0, stream, expected, version)?;
    }
    Ok(Truncated {
        removed: 0,
        version,
    })
}

fn too_many() -> Error {
    Error::Overloaded("the same stream is being truncated by many others".into())
}
