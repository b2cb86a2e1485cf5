//! `GET /backup?namespace=name&origin=text&after=n&snapshot=n&edits=n`: a namespace as of its last commit, in the
//! frames of `trefoil::backup::frames`.
//!
//! Without `namespace` it is that of the token; the token of the default namespace may name any. The
//! other parameters say what the client has of an earlier backup.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use trefoil::backup::frames::{encode_end, encode_step};
use trefoil::backup::{BackupBase, BackupStep};
use trefoil::{Error, Namespaces, OpenDatabase, Scope, Trace};

use crate::auth::Access;
use crate::budget::Share;
use crate::error::{Failure, Result};
use crate::limits::{BACKUP_STEP_MEMORY, BACKUPS_MAX};
use crate::query::QueryString;
use crate::reading::cut;
use crate::response::{self, HttpAnswer, HttpBody};
use crate::service::{Shared, blocking};

/// The backups of this process: each has a thread, which mostly waits for its client.
static TURNS: Semaphore = Semaphore::const_new(BACKUPS_MAX);

/// Answers `/backup`.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    access: &Access,
    share: &Share,
    parts: &Parts,
) -> Result<HttpAnswer> {
    let (namespace, base) = parse(QueryString::of(&parts.uri))?;
    let namespace = namespace.unwrap_or_else(|| access.namespace.to_string());
    access.require_of(&namespace, Scope::Admin)?;
    let Ok(turn) = TURNS.try_acquire() else {
        let text = format!("overloaded: the server makes {BACKUPS_MAX} backups at once");
        return Err(Failure::overloaded(text));
    };
    let database = open(shared, access, &namespace).await?;
    let (sender, mut frames) = mpsc::channel(1);
    let running = RunningBackup {
        namespaces: shared.namespaces.clone(),
        namespace,
        base,
        share: share.clone(),
        sender,
        _database: database,
        _turn: turn,
    };
    tokio::task::spawn_blocking(move || running.run());
    // What fails at once is answered with an error.
    let first = frames.recv().await;
    let first = first.ok_or_else(|| Failure::internal("a task of the server ended early"))??;
    let first = stream::once(async { Ok(first) });
    let rest = stream::unfold(frames, |mut frames| async move {
        let frame: Result<Bytes> = frames.recv().await?;
        Some((frame.map_err(|failure| cut(&failure)), frames))
    });
    let content_type = HeaderValue::from_static("application/octet-stream");
    let body = HttpBody::Stream(first.chain(rest).boxed());
    Ok(response::answer(StatusCode::OK, content_type, body))
}

/// Opens a namespace, unless it was never used: then it stays so.
async fn open(
    shared: &Arc<Shared>,
    access: &Access,
    namespace: &str,
) -> Result<Option<OpenDatabase>> {
    let id = shared.namespaces.entry(namespace)?.id;
    let (namespaces, name) = (shared.namespaces.clone(), namespace.to_owned());
    if blocking(move || namespaces.is_unused(&name)).await?? {
        return Ok(None);
    }
    let trace = Trace::default();
    let database = shared.database(&id, &trace, access.is_from_peer);
    Ok(Some(database.await?))
}

fn parse(query: QueryString<'_>) -> Result<(Option<String>, BackupBase)> {
    let known = query.only(&["namespace", "origin", "after", "snapshot", "edits"]);
    known.map_err(Failure::invalid)?;
    let number = |name: &str| match query.get(name).map(|text| text.parse::<u64>()) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(Failure::invalid(format!("{name} must be a number"))),
    };
    let base = BackupBase {
        origin: query.get("origin").map(|origin| origin.into_owned()),
        after: number("after")?.unwrap_or(0),
        snapshot: number("snapshot")?,
        edits: number("edits")?.unwrap_or(0),
    };
    let namespace = query.get("namespace").map(|name| name.into_owned());
    Ok((namespace, base))
}

/// A backup that is being read, on a thread of its own.
struct RunningBackup {
    namespaces: Namespaces,
    namespace: String,
    base: BackupBase,
    share: Share,
    sender: mpsc::Sender<Result<Bytes>>,
    /// Keeps the namespace open.
    _database: Option<OpenDatabase>,
    _turn: SemaphorePermit<'static>,
}

impl RunningBackup {
    fn run(self) {
        let send = &mut |step| self.send(&step);
        let done = self.namespaces.backup(&self.namespace, &self.base, send);
        let end = done.and_then(|()| encode_end());
        // A client that is gone needs no end.
        let _ = self.sender.blocking_send(match end {
            Ok(end) => Ok(Bytes::from(end)),
            Err(error) => Err(error.into()),
        });
    }

    /// Waits for memory and for the client to take what came before.
    fn send(&self, step: &BackupStep) -> trefoil::Result<()> {
        let runtime = Handle::current();
        let mut reservation = runtime.block_on(self.share.reserve_in_turn(BACKUP_STEP_MEMORY));
        let frame = encode_step(step)?;
        reservation.shrink_to(frame.len());
        reservation.grow_anyway(frame.len());
        let sent = self.sender.blocking_send(Ok(reservation.hold(frame)));
        sent.map_err(|_| Error::Closed("the client is gone".to_owned()))
    }
}
