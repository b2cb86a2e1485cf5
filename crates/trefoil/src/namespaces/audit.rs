//! The audit log of the server: who did what to namespaces and their tokens. It belongs to no namespace.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use trefoil_core::{Cause, Error, NamespaceId, Result, Timestamp};

use super::Namespaces;
use crate::home::Home;

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditActor {
    /// The namespace of the token.
    pub namespace: String,
    /// The name of the token; empty if none was needed.
    pub token: String,
    /// Where the request came from; empty if that is not known.
    pub address: String,
    /// How it came: `http`, or `command` for a command on the files of a stopped server.
    pub protocol: String,
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct AuditedAction {
    /// The method.
    pub action: String,
    /// The namespace that it was done to.
    pub namespace: String,
    /// More about it, a JSON object.
    pub details: Option<String>,
}

/// A record of the audit log.
#[derive(Debug, Clone)]
pub struct AuditRecord {
    /// Its number, one more than that of the record before.
    pub number: u64,
    /// When it was written, which is before it was done.
    pub time: Timestamp,
    /// Who did it.
    pub actor: AuditActor,
    /// What was done.
    pub action: AuditedAction,
    /// The record of the action that failed, and why, if this record says so.
    pub failed: Option<(u64, String)>,
}

/// A record in its form in the log.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredAudit {
    time: String,
    action: String,
    namespace: String,
    by: AuditActor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<StoredFailure>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFailure {
    record: u64,
    error: String,
}

impl Namespaces {
    /// Does something that the audit log is told of before it is begun, and again if it fails. If the log
    /// cannot be written, it is not done.
    pub fn audited<T>(
        &self,
        actor: &AuditActor,
        action: &AuditedAction,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let number = self.note_action(actor, action)?;
        let done = work();
        if let Err(error) = &done {
            self.note_failure(actor, action, number, &error.to_string());
        }
        done
    }

    /// Tells the audit log what is about to be done. Returns the number of the record.
    pub fn note_action(&self, actor: &AuditActor, action: &AuditedAction) -> Result<u64> {
        self.append(actor, action, None)
    }

    /// Tells the audit log that what a record says has failed.
    pub fn note_failure(
        &self,
        actor: &AuditActor,
        action: &AuditedAction,
        record: u64,
        error: &str,
    ) {
        let failure = StoredFailure {
            record,
            error: error.to_owned(),
        };
        if let Err(error) = self.append(actor, action, Some(failure)) {
            tracing::warn!(%error, "cannot note that what the audit log says has failed");
        }
    }

    /// The same for what makes room: if the disk is so full that the log cannot be written, that is done
    /// first.
    pub fn audited_freeing<T>(
        &self,
        actor: &AuditActor,
        action: &AuditedAction,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut work = Some(work);
        let done = self.audited(actor, action, || match work.take() {
            Some(work) => work(),
            None => Err(Error::Internal("it was done before".to_owned())),
        });
        match (done, work) {
            (Err(Error::DiskFull(_)), Some(work)) => {
                let done = work()?;
                self.audited(actor, action, || Ok(()))?;
                Ok(done)
            }
            (done, _) => done,
        }
    }

    fn append(
        &self,
        actor: &AuditActor,
        action: &AuditedAction,
        failed: Option<StoredFailure>,
    ) -> Result<u64> {
        let home = &*self.inner.registry.home;
        append(home, self.clock().now(), actor, action, failed)
    }

    /// Returns records of the audit log with lower numbers than `before`, the newest first.
    pub fn read_audit(&self, before: u64, limit: usize) -> Result<Vec<AuditRecord>> {
        let records = self.inner.registry.home.read_audit(before, limit)?;
        let records = records.into_iter();
        records
            .map(|(number, record)| parse(number, &record))
            .collect()
    }
}

/// How a record says that a command did it, on the files of a stopped server.
const COMMAND: &str = "command";

/// Tells the audit log of a home what a command is about to do.
pub(crate) fn note_command(
    home: &dyn Home,
    now: Timestamp,
    action: &str,
    id: &NamespaceId,
    details: Option<String>,
) -> Result<()> {
    let actor = AuditActor {
        protocol: COMMAND.to_owned(),
        ..AuditActor::default()
    };
    let action = AuditedAction {
        action: action.to_owned(),
        namespace: id.to_string(),
        details,
    };
    append(home, now, &actor, &action, None).map(drop)
}

fn append(
    home: &dyn Home,
    now: Timestamp,
    actor: &AuditActor,
    action: &AuditedAction,
    failed: Option<StoredFailure>,
) -> Result<u64> {
    let wrong = |error: serde_json::Error| Error::invalid(format!("audit record: {error}"));
    let details = action.details.clone().map(RawValue::from_string);
    let stored = StoredAudit {
        time: now.to_string(),
        action: action.action.clone(),
        namespace: action.namespace.clone(),
        by: actor.clone(),
        details: details.transpose().map_err(wrong)?,
        failed,
    };
    let record = serde_json::to_string(&stored).map_err(wrong)?;
    if record.contains('\n') {
        return Err(Error::invalid("audit record: details must be one line"));
    }
    home.append_audit(&record).map_err(|error| match error {
        // What is to be noted is not begun, so of that nothing is unknown.
        Error::Unknown { text, .. } => Error::failed("writing the audit log", Cause::new(text)),
        error => error,
    })
}

fn parse(number: u64, record: &str) -> Result<AuditRecord> {
    let wrong = |what: String| Error::invalid(format!("record {number} of the audit log: {what}"));
    let stored: StoredAudit =
        serde_json::from_str(record).map_err(|error| wrong(error.to_string()))?;
    let time = Timestamp::parse(&stored.time);
    Ok(AuditRecord {
        number,
        time: time.ok_or_else(|| wrong("it has no time".to_owned()))?,
        actor: stored.by,
        action: AuditedAction {
            action: stored.action,
            namespace: stored.namespace,
            details: stored.details.map(|details| details.get().to_owned()),
        },
        failed: stored.failed.map(|failed| (failed.record, failed.error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NamespacesOptions;

    #[test]
    fn what_is_done_is_noted_before_and_what_fails_again() {
        let namespaces = Namespaces::in_memory(NamespacesOptions::default()).unwrap();
        let actor = AuditActor {
            namespace: "default".to_owned(),
            token: "main".to_owned(),
            address: "127.0.0.1:1".to_owned(),
            protocol: "http".to_owned(),
        };
        let action = |action: &str, details: Option<&str>| AuditedAction {
            action: action.to_owned(),
            namespace: "shop".to_owned(),
            details: details.map(str::to_owned),
        };
        let done = namespaces.audited(&actor, &action("ns.create", Some("{\"a\": 1}")), || {
            assert_eq!(namespaces.read_audit(u64::MAX, 9)?.len(), 1);
            Ok(7)
        });
        assert_eq!(done.unwrap(), 7);
        let failed = namespaces.audited_freeing(&actor, &action("ns.delete", None), || {
            Err::<(), _>(Error::NamespaceNotFound("shop".into()))
        });
        assert!(failed.is_err());
        let records = namespaces.read_audit(u64::MAX, 9).unwrap();
        let shown: Vec<_> = records
            .iter()
            .map(|record| {
                (
                    record.number,
                    record.action.action.as_str(),
                    record.failed.clone(),
                )
            })
            .collect();
        let why = "Namespace 'shop' not found".to_owned();
        let expected = [
            (3, "ns.delete", Some((2, why))),
            (2, "ns.delete", None),
            (1, "ns.create", None),
        ];
        assert_eq!(shown, expected);
        assert_eq!(records[2].actor, actor);
        assert_eq!(records[2].action.details.as_deref(), Some("{\"a\": 1}"));
        assert_eq!(namespaces.read_audit(2, 9).unwrap().len(), 1);
        // What is not JSON is not noted, so nothing is done.
        let wrong = namespaces.audited(&actor, &action("x", Some("{")), || Ok(()));
        assert!(wrong.is_err());
    }
}
