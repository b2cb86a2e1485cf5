//! How far the continuous archive is. Without one, all of it is zero.

use trefoil::Namespaces;

use super::exposition::{Exposition, MetricKind};
use crate::archive::ArchiveProgress;

pub(super) fn put(
    out: &mut Exposition,
    namespaces: &Namespaces,
    progress: Option<&ArchiveProgress>,
) {
    let none = ArchiveProgress::default();
    let progress = progress.unwrap_or(&none);
    let now = namespaces.clock().now().millis();
    let help = "Age of the oldest commit that is not archived; older ones are";
    let lag = progress.lag_millis(now) as f64 / 1000.0;
    out.gauge("archive_lag_seconds", help, lag);
    let help = "Namespaces that have something to be archived";
    out.gauge("archive_waiting_namespaces", help, progress.waiting());
    let help = "Last commits that are archived, of the namespaces that were archived last";
    let mut commits = out.family(MetricKind::Gauge, "archive_commit", help);
    for (namespace, commit) in progress.commits() {
        commits.put(&[("namespace", namespace.as_str())], commit);
    }
    let help = "Bytes that were written to the archive";
    out.counter("archive_written_bytes", help, progress.bytes());
    let help = "Attempts to archive something that failed";
    out.counter("archive_failures", help, progress.failures());
}
