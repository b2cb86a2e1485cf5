//! What is said about requests that failed because of the server, or that were slow.
//!
//! A fault of the server and a request that it refuses for lack of room are each worth a line of the
//! log, see [`Severity`]. A client's own mistake or a conflict is part of normal work: that is for
//! those who look closely. No line has anything that a client sent but the name of its method, and
//! that is one of ours. Lines that repeat themselves are left out and counted, see [`lines`]. Slow
//! requests are also kept for their namespace, see [`slow`].

mod lines;
mod slow;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trefoil::{NamespaceId, Trace};

use crate::connections::Protocol;
use crate::service::Shared;
use lines::{LineKey, LineLimits};
pub(crate) use slow::{SLOW_REQUESTS_MAX, SlowRequest, SlowRequests};

/// Whose fault it is that a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// It did not fail.
    None,
    /// The client's, or nobody's: a rule was broken, a condition did not hold.
    Client,
    /// The server had no room or was closing: later the same request may work.
    Refused,
    /// The server's or the disk's.
    Fault,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedRequest<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) method: &'static str,
    pub(crate) namespace: Option<&'a NamespaceId>,
    /// How it failed.
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    /// When it began, by the steady clock.
    pub(crate) began: Duration,
    pub(crate) elapsed: Duration,
    /// Whether it is the client's choice how long it takes.
    pub(crate) is_stream: bool,
    pub(crate) trace: &'a Trace,
}

/// What is remembered about requests.
#[derive(Debug)]
pub(crate) struct RequestLog {
    /// Requests that take this long are slow; `None`: none is.
    slow_after: Option<Duration>,
    lines: Arc<LineLimits>,
    pub(crate) slow: SlowRequests,
}

impl RequestLog {
    pub(crate) fn new(slow_after: Option<Duration>) -> Self {
        Self {
            slow_after,
            lines: Arc::default(),
            slow: SlowRequests::default(),
        }
    }

    /// Returns whether a request that took this long was slow.
    pub(crate) fn is_slow(&self, elapsed: Duration) -> bool {
        self.slow_after.is_some_and(|limit| elapsed >= limit)
    }

    /// Says what is to be said about a request that has ended, and keeps it if it was slow. Of what the
    /// client sent, only the name of the method is kept.
    pub(crate) fn note(&self, shared: &Shared, request: EndedRequest<'_>) {
        self.log(shared, request);
        if let Some(namespace) = request.namespace
            && self.is_slow(request.elapsed)
            && !request.is_stream
        {
            let slow = SlowRequest {
                id: 0,
                time: shared.clock().now(),
                elapsed: request.elapsed,
                words: vec![Bytes::from_static(request.method.as_bytes())],
                address: String::new(),
                client: request.protocol.name().to_owned(),
            };
            self.slow.add(namespace, slow);
        }
    }

    /// Says what is to be said about a request that has ended.
    pub(crate) fn log(&self, shared: &Shared, request: EndedRequest<'_>) {
        let is_slow = !request.is_stream && self.is_slow(request.elapsed);
        match request.severity {
            Severity::None if !is_slow => {}
            Severity::Client if !is_slow => {
                let EndedRequest { method, code, .. } = request;
                let protocol = request.protocol.name();
                tracing::debug!(protocol, method, code, "request was refused");
            }
            _ => self.tell(shared, request),
        }
    }

    fn tell(&self, shared: &Shared, request: EndedRequest<'_>) {
        let EndedRequest {
            protocol,
            method,
            namespace,
            code,
            severity,
            began,
            elapsed,
            trace,
            ..
        } = request;
        let (failed, slow) = ("request failed", "request was slow");
        let what = match severity {
            Severity::Refused | Severity::Fault => failed,
            Severity::None | Severity::Client => slow,
        };
        let key = LineKey {
            what,
            protocol,
            method,
            code,
        };
        let Some(left_out) = self.lines.admit(key, shared.clock()) else {
            return;
        };
        if let Some(database) = namespace.and_then(|id| shared.namespaces.opened(id)) {
            database.trace_writer(trace, began, began + elapsed);
        }
        let (stage, stage_time) = trace.longest(elapsed);
        let (stage, protocol) = (stage.name(), protocol.name());
        let namespace = namespace.map_or("", NamespaceId::as_str);
        let (duration_us, stage_us) = (micros(elapsed), micros(stage_time));
        macro_rules! say {
            ($say:ident, $text:literal) => {
                tracing::$say!(
                    protocol,
                    method,
                    namespace,
                    code,
                    duration_us,
                    stage,
                    stage_us,
                    left_out,
                    $text
                )
            };
        }
        match severity {
            Severity::Fault => say!(error, "request failed"),
            Severity::Refused => say!(warn, "request failed"),
            Severity::None | Severity::Client => say!(warn, "request was slow"),
        }
    }
}

/// Returns a duration in microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
