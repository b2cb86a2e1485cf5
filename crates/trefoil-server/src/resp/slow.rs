//! What is said about requests of a client that failed or were slow.

use std::time::Duration;

use trefoil::Reply;

use super::session::Session;
use crate::connections::Protocol;
use crate::requests::{EndedRequest, Severity, SlowRequest};

impl Session {
    /// Says that requests that arrived together took this long, if that is slow.
    pub(super) fn note_turn(&self, n_requests: usize, elapsed: Duration) {
        let requests = &self.shared.requests;
        if !requests.is_slow(elapsed) {
            return;
        }
        let command = self.first_request.command;
        let ended = self.ended(command, "", Severity::None, elapsed);
        requests.log(&self.shared, ended);
        let Some(namespace) = &self.namespace else {
            return;
        };
        let slow = SlowRequest {
            id: 0,
            time: self.shared.clock().now(),
            elapsed,
            words: self.first_request.shown(n_requests),
            address: self.client.address.to_string(),
            client: self.client.known.lock().name.clone(),
        };
        requests.slow.add(namespace, slow);
    }

    /// Says that a request was answered with an error, if the error is worth it.
    pub(super) fn note_error(&self, command: &'static str, reply: &Reply) {
        let Reply::Error(text) = reply else {
            return;
        };
        self.shared.resp.usage.fail(command);
        let (code, severity) = severity_of(text);
        let elapsed = match severity {
            Severity::Client => Duration::ZERO,
            _ => self.shared.clock().since(self.began),
        };
        let ended = self.ended(command, code, severity, elapsed);
        self.shared.requests.log(&self.shared, ended);
    }

    fn ended(
        &self,
        method: &'static str,
        code: &'static str,
        severity: Severity,
        elapsed: Duration,
    ) -> EndedRequest<'_> {
        EndedRequest {
            protocol: Protocol::Resp,
            method,
            namespace: self.namespace.as_ref(),
            code,
            severity,
            began: self.began,
            elapsed,
            is_stream: false,
            trace: &self.trace,
        }
    }
}

/// Returns the code of an error and whose fault it is. Faults that have no code of their own are told
/// by their texts, which are the same over all protocols.
fn severity_of(text: &str) -> (&'static str, Severity) {
    const CODES: [(&str, Severity); 9] = [
        ("BUSY", Severity::Refused),
        ("QUOTA", Severity::Client),
        ("WRONGNODE", Severity::Client),
        ("READONLY", Severity::Fault),
        ("UNKNOWN", Severity::Fault),
        ("ERR internal error", Severity::Fault),
        ("ERR damaged", Severity::Fault),
        ("ERR no space left", Severity::Refused),
        ("CONFLICT", Severity::Client),
    ];
    let known = CODES.into_iter().find(|(start, _)| text.starts_with(start));
    match known {
        Some((start, severity)) => {
            let code = start.split_once(' ').map_or(start, |(code, _)| code);
            (code, severity)
        }
        None => ("ERR", Severity::Client),
    }
}

#[cfg(test)]
mod tests {
    use trefoil::Error;

    use super::super::failure::of_error;
    use super::*;

    #[test]
    fn every_fault_of_the_server_is_told_from_a_clients_mistake() {
        let severity = |error: &Error| match of_error(error) {
            Reply::Error(text) => severity_of(&text).1,
            other => panic!("{other:?}"),
        };
        let elsewhere = Error::NotOwner {
            namespace: "x".into(),
            owner: None,
        };
        for error in [
            Error::Internal("x".into()),
            Error::Poisoned("x".into()),
            Error::result_lost("x"),
        ] {
            assert_eq!(severity(&error), Severity::Fault, "{error}");
        }
        for error in [Error::Overloaded("x".into()), Error::DiskFull("x".into())] {
            assert_eq!(severity(&error), Severity::Refused, "{error}");
        }
        assert_eq!(severity(&Error::invalid("x")), Severity::Client);
        assert_eq!(severity(&elsewhere), Severity::Client);
        assert_eq!(severity_of("WRONGTYPE x"), ("ERR", Severity::Client));
    }
}
