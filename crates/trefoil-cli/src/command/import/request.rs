//! Lines on their way to the server, in requests of a few megabytes: neither side has to hold much,
//! and a mistake is answered soon.

use anyhow::{Context as _, anyhow};
use indicatif::ProgressBar;
use serde::Deserialize;

use crate::client::{HttpClient, ServerError, SseFrames};

/// A request is sent when it holds this many bytes.
pub(in crate::command) const REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// What the server says while it imports, and last.
#[derive(Debug, Deserialize)]
struct ImportProgress {
    #[serde(default)]
    imported: u64,
    #[serde(default)]
    state: u64,
    #[serde(default)]
    done: bool,
    error: Option<String>,
    message: Option<String>,
    line: Option<u64>,
}

/// An import into a server. What was imported before a mistake stays imported.
pub(in crate::command) struct ImportRequests {
    pub(in crate::command) client: HttpClient,
    /// Whether the next request deletes first: only the first one does.
    pub(in crate::command) force: bool,
    /// Whether events whose ids cannot be kept get new ones.
    pub(in crate::command) new_ids: bool,
    /// Whether lines may hold state.
    pub(in crate::command) with_state: bool,
    pub(in crate::command) imported: u64,
    /// How many lines of state were imported.
    pub(in crate::command) state: u64,
    pub(in crate::command) bar: ProgressBar,
}

/// Why a request did not succeed.
pub(in crate::command) enum ImportFailure {
    /// The server took no more at a line of it, counted from 1.
    Stopped { line: u64, error: ServerError },
    /// Something else.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for ImportFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl ImportRequests {
    /// Sends a request. `tell` is called with the number of events imported so far.
    pub(in crate::command) fn send(
        &mut self,
        body: &[u8],
        tell: impl Fn(&ProgressBar, u64),
    ) -> Result<(), ImportFailure> {
        let force = std::mem::take(&mut self.force);
        let options = [("force", force), ("newIds", self.new_ids)];
        let given = options.iter().filter(|(_, is_given)| *is_given);
        let mut query: Vec<_> = given.map(|(name, _)| (*name, "true")).collect();
        // Once there is some, there is more to come.
        let mode = if self.state == 0 { "new" } else { "more" };
        query.extend(self.with_state.then_some(("state", mode)));
        let answer = self.client.post("/import", &query, body)?;
        let (mut imported, mut state, mut done) = (0, 0, false);
        for frame in SseFrames::new(answer.into_reader()) {
            let data = frame.context("the answer of the server broke off")?.data;
            let progress: ImportProgress = serde_json::from_str(&data)
                .context("the server's answer is not what was expected")?;
            if let Some(code) = progress.error {
                self.imported += imported;
                self.state += state;
                let status = match code.as_str() {
                    "POSITION_EXISTS" | "STATE_EXISTS" => 409,
                    "OUTCOME_UNKNOWN" => 500,
                    "WRONG_NODE" => 421,
                    "QUOTA_EXCEEDED" => 429,
                    _ => 400,
                };
                let error = ServerError {
                    status,
                    code,
                    message: progress.message.unwrap_or_default(),
                    details: None,
                };
                let line = progress.line.unwrap_or(0);
                return Err(ImportFailure::Stopped { line, error });
            }
            (imported, state, done) = (progress.imported, progress.state, progress.done);
            tell(&self.bar, self.imported + imported);
        }
        if !done {
            return Err(anyhow!("the server did not finish the import").into());
        }
        self.imported += imported;
        self.state += state;
        Ok(())
    }
}
