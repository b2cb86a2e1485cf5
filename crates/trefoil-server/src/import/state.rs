//! Lines of an import that hold state.

use trefoil::StateLine;

use super::{ImportCounts, ImportStop, RunningImport, stop_at};
use crate::error::{Failure, Result};
use crate::query::QueryString;
use crate::service::blocking;

/// Whether lines may hold state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateMode {
    Refused,
    /// If there is none yet.
    New,
    More,
}

impl StateMode {
    pub(super) fn of(query: QueryString<'_>) -> Result<Self> {
        match query.get("state").as_deref() {
            None => Ok(Self::Refused),
            Some("new") => Ok(Self::New),
            Some("more") => Ok(Self::More),
            Some(_) => Err(Failure::invalid("state must be new or more")),
        }
    }
}

impl RunningImport {
    /// Checks, before anything is taken, that there is no state yet if there is to be a new one.
    pub(super) async fn begin_state(&mut self) -> Result<(), ImportStop> {
        if self.state != StateMode::New {
            return Ok(());
        }
        let database = self.target.clone();
        let has_keys = blocking(move || database.has_keys()).await;
        let has_keys = has_keys.map_err(|failure| self.stop("IMPORT_FAILED", failure.message))?;
        let has_keys = has_keys.map_err(|error| self.stop("IMPORT_FAILED", error.to_string()))?;
        if has_keys {
            let what =
                "state is imported into a namespace without keys only, and this one has some";
            return Err(self.stop("STATE_EXISTS", what.to_owned()));
        }
        self.state = StateMode::More;
        Ok(())
    }

    /// Refuses a line of state that was not asked for.
    pub(super) fn check_state_wanted(&self) -> Result<(), ImportStop> {
        let what = if self.state == StateMode::Refused {
            "the line holds state, which is imported only if asked for (state=new, --with-state)"
        } else if self.replacement.is_some() {
            "force replaces events and leaves the state as it is, so no line can hold state"
        } else {
            return Ok(());
        };
        Err(self.stop("INVALID_RECORD", what.to_owned()))
    }

    /// Writes the lines of state that are waiting. Returns where the log ends.
    pub(super) async fn write_state(&mut self) -> Result<u64, ImportStop> {
        let batch = std::mem::take(&mut self.state_batch);
        self.batch_bytes = 0;
        let (numbers, lines): (Vec<u64>, Vec<StateLine>) = batch.into_iter().unzip();
        let (database, count) = (self.target.clone(), lines.len() as u64);
        let written = blocking(move || {
            let imported = database.import_state(lines).and_then(|()| database.head());
            imported.map_err(|error| stop_at(error, &numbers))
        });
        let written = written.await;
        let position = written.map_err(|failure| self.stop("IMPORT_FAILED", failure.message))??;
        self.reservation.shrink_to(0);
        self.state_lines += count;
        Ok(position)
    }

    pub(super) fn counts(&self) -> ImportCounts {
        (self.imported, self.state_lines)
    }
}
