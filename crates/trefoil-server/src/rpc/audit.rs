//! `["audit.read", {limit?, before?}]`
//!
//! Answers a page of the audit log of the server, the newest record first, of those with lower numbers than
//! `before`: `[{"number", "time", "action", "namespace", "by": {"namespace", "token", "address", "protocol"},
//! "details"?, "failed"?: {"record", "error"}}]`. Only for the administrator of the server. It goes beyond
//! EventoDB.

use trefoil::{AuditActor, AuditRecord, AuditedAction, Error, Namespaces};

use super::Context;
use super::arguments::strict_limit;
use crate::auth::Access;
use crate::connections::Protocol;
use crate::error::{Failure, Result};
use crate::json::{ObjectWriter, RpcCall, present, put_array, put_time};
use crate::response::{self, HttpAnswer};
use crate::service::blocking;
use crate::strict;

pub(super) async fn read(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let [limit, before] = match present(call.argument(0)) {
        None => [None; 2],
        Some(options) => strict::object(options, "options", ["limit", "before"])?.map(present),
    };
    let limit = strict_limit(limit)?;
    let before = strict::optional_position(before, "before")?.unwrap_or(u64::MAX);
    let namespaces = context.shared.namespaces.clone();
    let records = blocking(move || namespaces.read_audit(before, limit)).await??;
    let mut out = Vec::new();
    put_array(&mut out, &records, put_record);
    Ok(response::json(out))
}

fn put_record(out: &mut Vec<u8>, record: &AuditRecord) {
    let mut object = ObjectWriter::begin(out);
    object.number("number", record.number);
    put_time(object.field("time"), record.time);
    object.text("action", &record.action.action);
    object.text("namespace", &record.action.namespace);
    let AuditActor {
        namespace,
        token,
        address,
        protocol,
    } = &record.actor;
    let mut by = ObjectWriter::begin(object.field("by"));
    by.text("namespace", namespace);
    by.text("token", token);
    by.text("address", address);
    by.text("protocol", protocol);
    by.end();
    if let Some(details) = &record.action.details {
        object.json("details", details);
    }
    if let Some((number, error)) = &record.failed {
        let mut failed = ObjectWriter::begin(object.field("failed"));
        failed.number("record", *number);
        failed.text("error", error);
        failed.end();
    }
    object.end();
}

/// What comes first if the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotingOrder {
    /// The record: without it nothing is done.
    NoteFirst,
    /// The action, because it makes the room that the record needs.
    MakeRoomFirst,
}

/// Why something could not be noted.
pub(crate) enum NotNoted {
    DiskFull(String),
    Failed(Failure),
}

impl From<NotNoted> for Failure {
    fn from(refusal: NotNoted) -> Self {
        match refusal {
            NotNoted::DiskFull(text) => Error::DiskFull(text).into(),
            NotNoted::Failed(failure) => failure,
        }
    }
}

/// What was noted, and is about to be done.
pub(crate) struct NotedCall {
    namespaces: Namespaces,
    call: AuditedCall,
    number: u64,
}

impl NotedCall {
    /// Notes that it has failed. Blocks the thread.
    pub(crate) fn failed(self, error: &str) {
        let AuditedCall { actor, action } = &self.call;
        self.namespaces
            .note_failure(actor, action, self.number, error);
    }
}

/// What is done to a namespace, as the audit log is told.
#[derive(Clone)]
pub(crate) struct AuditedCall {
    actor: AuditActor,
    action: AuditedAction,
}

impl AuditedCall {
    /// A call of this method about a namespace.
    pub(super) fn new(context: &Context<'_>, method: &str, namespace: &str) -> Self {
        Self::of(context.access, method, namespace)
    }

    /// Something that a request with this access does to a namespace.
    pub(crate) fn of(access: &Access, method: &str, namespace: &str) -> Self {
        Self {
            actor: AuditActor {
                namespace: access.namespace.to_string(),
                token: access.grant.token().to_owned(),
                address: access
                    .address
                    .map_or_else(String::new, |address| address.to_string()),
                protocol: Protocol::Http.name().to_owned(),
            },
            action: AuditedAction {
                action: method.to_owned(),
                namespace: namespace.to_owned(),
                details: None,
            },
        }
    }

    /// More about it.
    pub(crate) fn with_details(mut self, put: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
        let mut out = Vec::new();
        let mut object = ObjectWriter::begin(&mut out);
        put(&mut object);
        object.end();
        self.action.details = String::from_utf8(out).ok();
        self
    }

    /// Does it, on a thread for what blocks.
    pub(super) async fn run<T: Send + 'static>(
        self,
        context: &Context<'_>,
        work: impl FnOnce(&trefoil::Namespaces) -> trefoil::Result<T> + Send + 'static,
    ) -> Result<T> {
        let namespaces = context.shared.namespaces.clone();
        let audited = move || namespaces.audited(&self.actor, &self.action, || work(&namespaces));
        Ok(blocking(audited).await??)
    }

    /// The same for what does not block. It is done on a task of its own: a client that leaves ends neither
    /// the action nor the noting.
    pub(super) async fn run_async<T: Send + 'static>(
        self,
        context: &Context<'_>,
        order: NotingOrder,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let namespaces = context.shared.namespaces.clone();
        let done = tokio::spawn(self.note_and_do(namespaces, order, work)).await;
        done.map_err(|error| Failure::internal(format!("an audited action ended early: {error}")))?
    }

    async fn note_and_do<T>(
        self,
        namespaces: Namespaces,
        order: NotingOrder,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let noted = match self.clone().note(namespaces.clone()).await {
            Ok(noted) => Some(noted),
            Err(NotNoted::DiskFull(_)) if order == NotingOrder::MakeRoomFirst => None,
            Err(refusal) => return Err(refusal.into()),
        };
        let done = work.await;
        let failure = done.as_ref().err().map(|failure| failure.message.clone());
        match (failure, noted) {
            (None, None) => {
                let action = self.action.action.clone();
                if let Err(refusal) = self.note(namespaces).await {
                    tracing::error!(action, "what was done on a full disk could not be noted");
                    return Err(refusal.into());
                }
            }
            (Some(failure), Some(noted)) => {
                blocking(move || noted.failed(&failure)).await?;
            }
            _ => {}
        }
        done
    }

    /// Notes that it is about to be done.
    pub(crate) async fn note(self, namespaces: Namespaces) -> Result<NotedCall, NotNoted> {
        let noting = blocking(move || {
            let number = namespaces.note_action(&self.actor, &self.action)?;
            Ok(NotedCall {
                namespaces,
                call: self,
                number,
            })
        });
        match noting.await {
            Ok(Err(Error::DiskFull(text))) => Err(NotNoted::DiskFull(text)),
            Ok(noted) => noted.map_err(|error| NotNoted::Failed(error.into())),
            Err(failure) => Err(NotNoted::Failed(failure)),
        }
    }

    /// The same for what makes room on a disk that may be full.
    pub(super) async fn run_freeing<T: Send + 'static>(
        self,
        context: &Context<'_>,
        work: impl FnOnce(&trefoil::Namespaces) -> trefoil::Result<T> + Send + 'static,
    ) -> Result<T> {
        let namespaces = context.shared.namespaces.clone();
        let audited =
            move || namespaces.audited_freeing(&self.actor, &self.action, || work(&namespaces));
        Ok(blocking(audited).await??)
    }
}
