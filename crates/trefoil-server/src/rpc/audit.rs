//! `["audit.read", {limit?, before?}]`
//!
//! Answers a page of the audit log of the server, the newest record first, of those with lower numbers than
//! `before`: `[{"number", "time", "action", "namespace", "by": {"namespace", "token", "address", "protocol"},
//! "details"?, "failed"?: {"record", "error"}}]`. Only for the administrator of the server. It goes beyond
//! EventoDB.

use std::sync::Arc;

use trefoil::{AuditActor, AuditRecord, AuditedAction, Error};

use super::Context;
use super::arguments::strict_limit;
use crate::connections::Protocol;
use crate::error::Result;
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

/// What is done to a namespace, as the audit log is told.
pub(super) struct AuditedCall {
    actor: AuditActor,
    action: AuditedAction,
}

impl AuditedCall {
    /// A call of this method about a namespace.
    pub(super) fn new(context: &Context<'_>, method: &str, namespace: &str) -> Self {
        let access = context.access;
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
    pub(super) fn with_details(mut self, put: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
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

    /// The same for what does not block, and makes room on a disk that may be full.
    pub(super) async fn run_async<T>(
        self,
        context: &Context<'_>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let (namespaces, call) = (context.shared.namespaces.clone(), Arc::new(self));
        let note = |call: &Arc<Self>| {
            let (namespaces, call) = (namespaces.clone(), Arc::clone(call));
            blocking(move || namespaces.note_action(&call.actor, &call.action))
        };
        let noted = match note(&call).await? {
            Err(Error::DiskFull(_)) => None,
            noted => Some(noted?),
        };
        let done = work.await;
        match (&done, noted) {
            (Ok(_), None) => {
                note(&call).await??;
            }
            (Err(failure), Some(number)) => {
                let text = failure.message.clone();
                let failed =
                    move || namespaces.note_failure(&call.actor, &call.action, number, &text);
                blocking(failed).await?;
            }
            _ => {}
        }
        done
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
