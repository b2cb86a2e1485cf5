//! `POST /import?force=true&newIds=true&state=new`: events in NDJSON, with the positions and times they bring
//! along.
//!
//! The body is read line by line and written in batches, each all or nothing; nothing holds it as
//! a whole. The answer tells the progress as it goes. With `force` the events replace all that there
//! are: they are written beside them, and take their place when the last one is there. With `state=new`, lines
//! may hold state as well, if there is none yet; with `state=more` they go on with that.

mod lines;
mod state;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use hyper::StatusCode;
use hyper::http::request::Parts;
use trefoil::{Database, Error, ImportedEvent, OpenDatabase, Replacement, StateLine};

use crate::auth::Access;
use crate::body::BodyReader;
use crate::budget::{Reservation, Share};
use crate::error::{Failure, Result};
use crate::json::{put_display, put_number, put_string};
use crate::limits::{IMPORT_BATCH_BYTES, IMPORT_BATCH_EVENTS};
use crate::query::QueryString;
use crate::record::{ImportLine, ImportedIds, Refusal, parse_line};
use crate::response::{HttpAnswer, HttpBody};
use crate::rpc::{AuditedCall, NotedCall};
use crate::service::{Shared, blocking};
use crate::sse::event_stream;
use lines::BodyLines;
use state::StateMode;

/// For how long an import waits at a time because its namespace may append no events, before it tells the
/// client that it still does.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Answers `/import`. The head of the answer goes out when the first batch is done: a client that
/// waits to be told to send its body is told so by then.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    access: &Access,
    database: OpenDatabase,
    share: &Share,
    parts: &Parts,
    reader: BodyReader,
) -> Result<HttpAnswer> {
    let query = QueryString::of(&parts.uri);
    let state = StateMode::of(query)?;
    let (replacement, noted) = match query.get("force").as_deref() {
        Some("true") => {
            let noted = note(shared, access).await?;
            match replace(database.clone()).await {
                Ok(replacement) => (Some(replacement), Some(noted)),
                Err(failure) => {
                    let text = failure.message.clone();
                    blocking(move || noted.failed(&text)).await?;
                    return Err(failure);
                }
            }
        }
        _ => (None, None),
    };
    let mut import = RunningImport {
        shared: Arc::clone(shared),
        target: match &replacement {
            Some(replacement) => replacement.database().clone(),
            None => Database::clone(&database),
        },
        replacement,
        noted,
        _database: database.staying(),
        lines: BodyLines::new(reader),
        ids: match query.get("newIds").as_deref() {
            Some("true") => ImportedIds::NewIfNeeded,
            _ => ImportedIds::Kept,
        },
        batch: Vec::new(),
        state_batch: Vec::new(),
        state,
        batch_bytes: 0,
        reservation: share.for_request(),
        imported: 0,
        position: 0,
        state_lines: 0,
        began: shared.clock().steady(),
        is_over: false,
    };
    let first = import.step().await;
    let first = stream::iter(first.map(Ok));
    let rest = stream::unfold(import, |mut import| async move {
        let frame = import.step().await?;
        Some((Ok(frame), import))
    });
    Ok(event_stream(
        parts.version,
        HttpBody::Stream(first.chain(rest).boxed()),
    ))
}

/// Notes in the audit log that all events are about to be replaced.
async fn note(shared: &Arc<Shared>, access: &Access) -> Result<NotedCall> {
    let namespace = access.namespace.as_str();
    let call = AuditedCall::of(access, "import", namespace)
        .with_details(|object| object.flag("force", true));
    Ok(call.note(shared.namespaces.clone()).await?)
}

async fn replace(database: OpenDatabase) -> Result<Replacement> {
    blocking(move || database.replace())
        .await?
        .map_err(|error| {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Failure::new(status, "CLEAR_FAILED", cannot_clear(&error))
        })
}

fn cannot_clear(error: &Error) -> String {
    format!("Failed to clear namespace: {error}")
}

/// An import under way.
struct RunningImport {
    shared: Arc<Shared>,
    /// Keeps the namespace open, and on this node.
    _database: OpenDatabase,
    /// Where the events go.
    target: Database,
    /// What they replace, if they do.
    replacement: Option<Replacement>,
    /// What the audit log says of that.
    noted: Option<NotedCall>,
    lines: BodyLines,
    ids: ImportedIds,
    /// Events that are not written yet, with the numbers of their lines.
    batch: Vec<(u64, ImportedEvent)>,
    /// Lines of state that are not written yet. There are none while there are events.
    state_batch: Vec<(u64, StateLine)>,
    state: StateMode,
    batch_bytes: usize,
    /// The memory that the batch takes.
    reservation: Reservation,
    imported: u64,
    /// The position of the last event that was written.
    position: u64,
    state_lines: u64,
    /// When it began, by the steady clock.
    began: Duration,
    is_over: bool,
}

impl Drop for RunningImport {
    /// Giving up a replacement closes files and removes them, which takes a while.
    fn drop(&mut self) {
        let (replacement, noted) = (self.replacement.take(), self.noted.take());
        if let Some(replacement) = replacement {
            tokio::task::spawn_blocking(move || {
                drop(replacement);
                if let Some(noted) = noted {
                    noted.failed("the client left before the import was finished");
                }
            });
        }
    }
}

/// Why an import ends early.
struct ImportStop {
    code: &'static str,
    message: String,
    line: u64,
}

impl RunningImport {
    /// The next frame of the answer; `None` when the last one has been sent.
    async fn step(&mut self) -> Option<Bytes> {
        if self.is_over {
            self.lines.discard().await;
            return None;
        }
        let frame = match self.next_batch().await {
            Ok(Some(position)) => progress_frame(self.counts(), position),
            Ok(None) => {
                self.is_over = true;
                match self.finish().await {
                    Ok(()) => done_frame(self.counts(), self.shared.clock().since(self.began)),
                    Err(stop) => {
                        self.give_up(&stop).await;
                        error_frame(&stop)
                    }
                }
            }
            Err(stop) => {
                self.is_over = true;
                self.give_up(&stop).await;
                error_frame(&stop)
            }
        };
        Some(frame.into())
    }

    /// Gives up a replacement before the client is told, so that the next one finds nothing of it.
    async fn give_up(&mut self, stop: &ImportStop) {
        let (replacement, noted) = (self.replacement.take(), self.noted.take());
        if replacement.is_some() || noted.is_some() {
            let message = stop.message.clone();
            let given_up = blocking(move || {
                drop(replacement);
                if let Some(noted) = noted {
                    noted.failed(&message);
                }
            });
            if let Err(failure) = given_up.await {
                tracing::warn!(failure.message, "cannot give up a replacement");
            }
        }
    }

    /// Lets the events take their place, if they replace others.
    async fn finish(&mut self) -> Result<(), ImportStop> {
        let Some(replacement) = self.replacement.take() else {
            return Ok(());
        };
        blocking(move || replacement.finish())
            .await
            .map_err(|failure| self.stop("CLEAR_FAILED", failure.message))?
            .map_err(|error| self.stop("CLEAR_FAILED", cannot_clear(&error)))
    }

    /// Reads and writes one batch. Returns the position of its last event, or `None` if it was the
    /// last batch.
    async fn next_batch(&mut self) -> Result<Option<u64>, ImportStop> {
        self.begin_state().await?;
        if self.waits().await {
            return Ok(Some(self.position));
        }
        while self.batch.len() + self.state_batch.len() < IMPORT_BATCH_EVENTS
            && self.batch_bytes < IMPORT_BATCH_BYTES
        {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return self.write().await.map(|_| None),
                Err(failure) => return Err(self.stop("READ_ERROR", failure.message)),
            };
            self.make_room(line.len()).await?;
            let number = self.lines.number();
            let parsed = parse_line(&line, self.ids).map_err(|refusal| match refusal {
                Refusal::Json(text) => self.stop(
                    "INVALID_JSON",
                    format!("malformed JSON at line {number}: {text}"),
                ),
                Refusal::Record(text) => self.stop(
                    "INVALID_RECORD",
                    format!("invalid record at line {number}: {text}"),
                ),
            })?;
            let has_other = match &parsed {
                ImportLine::Event(_) => !self.state_batch.is_empty(),
                ImportLine::State(_) => !self.batch.is_empty(),
            };
            if has_other {
                self.write().await?;
                self.make_room(line.len()).await?;
            }
            self.batch_bytes += line.len();
            match parsed {
                ImportLine::Event(event) => self.batch.push((number, *event)),
                ImportLine::State(line) => {
                    self.check_state_wanted()?;
                    self.state_batch.push((number, line));
                }
            }
        }
        self.write().await
    }

    /// Waits for a while if the namespace may append no events at present. Returns whether it did: then the
    /// client is told how far it is, which also shows whether it is still there.
    async fn waits(&self) -> bool {
        let pause = self.target.import_pause();
        if !pause.is_zero() {
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
        }
        !pause.is_zero()
    }

    /// Takes memory for one more line. If there is none, what is there is written first.
    async fn make_room(&mut self, line_bytes: usize) -> Result<(), ImportStop> {
        let needed = |import: &Self| import.memory() + line_bytes + size_of::<ImportedEvent>();
        if !self.reservation.try_grow_to(needed(self)) {
            self.write().await?;
        }
        let taken = self.reservation.grow_to(needed(self));
        taken.map_err(|failure| self.stop(failure.code, failure.message))
    }

    /// Returns about how many bytes the batch takes.
    fn memory(&self) -> usize {
        let count = self.batch.len() + self.state_batch.len();
        self.batch_bytes + count * size_of::<ImportedEvent>()
    }

    fn stop(&self, code: &'static str, message: String) -> ImportStop {
        ImportStop {
            code,
            message,
            line: self.lines.number(),
        }
    }

    /// Writes what is waiting. Returns the position of the last event of it, or of the log if there is none;
    /// `None` if nothing is waiting.
    async fn write(&mut self) -> Result<Option<u64>, ImportStop> {
        if !self.state_batch.is_empty() {
            return self.write_state().await.map(Some);
        }
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let Some((_, last)) = batch.last() else {
            return Ok(None);
        };
        let (position, count) = (last.position, batch.len() as u64);
        let (database, ids) = (self.target.clone(), self.ids);
        blocking(move || write_batch(&database, batch, ids))
            .await
            .map_err(|failure| self.stop("IMPORT_FAILED", failure.message))??;
        self.reservation.shrink_to(0);
        self.imported += count;
        self.position = position;
        self.shared.metrics.events_imported.add(count);
        Ok(Some(position))
    }
}

fn write_batch(
    database: &Database,
    batch: Vec<(u64, ImportedEvent)>,
    ids: ImportedIds,
) -> Result<(), ImportStop> {
    let (lines, events): (Vec<u64>, Vec<ImportedEvent>) = batch.into_iter().unzip();
    let imported = database.import_paced(events, ids == ImportedIds::NewIfNeeded);
    imported.map_err(|error| stop_at(error, &lines))
}

/// Why an import ends, from an error of the library that has the index of a line.
fn stop_at(error: Error, lines: &[u64]) -> ImportStop {
    let (index, error) = match error {
        Error::ImportStopped { index, error } => (index, *error),
        error => (0, error),
    };
    let code = match error {
        Error::PositionExists(_) => "POSITION_EXISTS",
        Error::Unknown { .. } => "OUTCOME_UNKNOWN",
        Error::NotOwner { .. } => "WRONG_NODE",
        Error::QuotaExceeded { .. } => "QUOTA_EXCEEDED",
        _ => "IMPORT_FAILED",
    };
    let message = match error {
        Error::DuplicateId { .. } => format!("{error}; newIds=true gives such events new ids"),
        _ => error.to_string(),
    };
    let line = lines.get(index).copied().unwrap_or(0);
    ImportStop {
        code,
        message,
        line,
    }
}

/// How many events and how many lines of state were imported.
type ImportCounts = (u64, u64);

fn put_counts(out: &mut Vec<u8>, (events, state): ImportCounts) {
    out.extend_from_slice(b"\"imported\":");
    put_number(out, events);
    if state > 0 {
        out.extend_from_slice(b",\"state\":");
        put_number(out, state);
    }
}

fn progress_frame(counts: ImportCounts, position: u64) -> Vec<u8> {
    let mut out = b"data: {".to_vec();
    put_counts(&mut out, counts);
    out.extend_from_slice(b",\"gpos\":");
    put_number(&mut out, position);
    out.extend_from_slice(b"}\n\n");
    out
}

fn done_frame(counts: ImportCounts, elapsed: Duration) -> Vec<u8> {
    let mut out = b"data: {\"done\":true,".to_vec();
    put_counts(&mut out, counts);
    out.extend_from_slice(b",\"elapsed\":");
    put_display(&mut out, format_args!("{:.1}s", elapsed.as_secs_f64()));
    out.extend_from_slice(b"}\n\n");
    out
}

fn error_frame(stop: &ImportStop) -> Vec<u8> {
    let mut out = b"data: {\"error\":".to_vec();
    put_string(&mut out, stop.code);
    out.extend_from_slice(b",\"message\":");
    put_string(&mut out, &stop.message);
    out.extend_from_slice(b",\"line\":");
    put_number(&mut out, stop.line);
    out.extend_from_slice(b"}\n\n");
    out
}
