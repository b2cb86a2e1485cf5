//! What the databases count: the stages of commits and reads, the work behind them, and how much room
//! they take.

use trefoil::{StatsSnapshot, TotalStats, WorkStats};

use super::exposition::{Buckets, Exposition, MetricKind};

/// Adds what all databases count together.
pub(super) fn put(out: &mut Exposition, stats: &TotalStats) {
    put_groups(out, &stats.groups);
    put_reads(out, stats);
    put_work(out, stats);
    put_sizes(out, stats);
    let help = "Time to look into the query conditions of a commit before it is queued";
    let conditions = &stats.conditions;
    out.histogram(
        "commit_conditions_seconds",
        help,
        conditions,
        Buckets::SECONDS,
    );
}

fn put_groups(out: &mut Exposition, groups: &StatsSnapshot) {
    let help = "Commits that were written with one sync";
    let commits = &groups.group_commits;
    out.histogram("group_commits", help, commits, Buckets::NUMBERS);
    let help = "Bytes of events and of changes of state that were written with one sync";
    out.histogram("group_bytes", help, &groups.group_bytes, Buckets::BYTES);
    let stages = [
        (
            "group_queue_seconds",
            "Time that the first commit of a group waited",
            &groups.queue,
        ),
        (
            "group_staging_seconds",
            "Time to decide and encode a group, and to wait for room in the index",
            &groups.staging,
        ),
        (
            "group_write_seconds",
            "Time to hand a group to the operating system",
            &groups.write,
        ),
        (
            "group_sync_seconds",
            "Time to make a written group durable",
            &groups.sync,
        ),
        (
            "group_index_seconds",
            "Time to add a durable group to the index, a part of publishing",
            &groups.index,
        ),
        (
            "group_publishing_seconds",
            "Time to make a durable group visible",
            &groups.publishing,
        ),
        (
            "group_answer_seconds",
            "Time to answer all commits of a group",
            &groups.answer,
        ),
    ];
    for (name, help, histogram) in stages {
        out.histogram(name, help, histogram, Buckets::SECONDS);
    }
    let help = "Waiting subscriptions that were woken, because a commit had events for them";
    out.counter("subscription_wakes", help, groups.wakes);
}

fn put_reads(out: &mut Exposition, stats: &TotalStats) {
    let stages = [
        (
            "read_plan_seconds",
            "Time to decide how to find a page of events",
            &stats.read_plan,
        ),
        (
            "read_index_seconds",
            "Time to find the positions of a page of events in the index",
            &stats.read_index,
        ),
        (
            "read_log_seconds",
            "Time to read the events of a page from the log",
            &stats.read_log,
        ),
    ];
    for (name, help, histogram) in stages {
        out.histogram(name, help, histogram, Buckets::SECONDS);
    }
    out.counter("read_events", "Events read from the log", stats.read_events);
    let help = "Entries of the state on disk that were found in memory";
    out.counter("state_cache_hits", help, stats.cache_hits);
    let help = "Entries of the state on disk that were not found in memory";
    out.counter("state_cache_misses", help, stats.cache_misses);
}

fn put_work(out: &mut Exposition, stats: &TotalStats) {
    let help = "Time that work in the background took, with its rests while much is written";
    let mut seconds = out.family(MetricKind::Histogram, "background_seconds", help);
    for (kind, work) in &stats.work {
        let labels = [("work", kind.name())];
        seconds.put_histogram(&labels, &work.nanos, Buckets::LONG_SECONDS);
    }
    let help = "Bytes that work in the background wrote, or read to compress them";
    put_each(out, "background_bytes", help, stats, |work| work.bytes);
    let help = "Work in the background that failed and is tried again";
    put_each(out, "background_failures", help, stats, |work| {
        work.failures
    });
    let help = "Time to open a namespace, with reading the end of its log again";
    out.histogram(
        "recovery_seconds",
        help,
        &stats.recoveries,
        Buckets::SECONDS,
    );
    let help = "Events that were read again when namespaces were opened";
    out.counter("recovery_events", help, stats.replayed_events);
    let help = "Bytes of unfinished writes that were cut from the end of logs";
    out.counter("recovery_cut_bytes", help, stats.cut_bytes);
    let help = "Events removed by truncations, deletions and retention policies";
    out.counter("removed_events", help, stats.removed_events);
    let help = "Redacted events that are still in the log after it was tried to remove them";
    out.gauge("overdue_redactions", help, stats.overdue_redactions);
}

fn put_each(
    out: &mut Exposition,
    name: &'static str,
    help: &str,
    stats: &TotalStats,
    count: impl Fn(&WorkStats) -> u64,
) {
    let mut family = out.family(MetricKind::Counter, name, help);
    for (kind, work) in &stats.work {
        family.put(&[("work", kind.name())], count(work));
    }
}

fn put_sizes(out: &mut Exposition, stats: &TotalStats) {
    out.gauge("namespaces_open", "Namespaces that are open", stats.open);
    let help = "Namespaces that were closed because others had to be opened";
    out.counter("namespaces_closed", help, stats.closed_for_room);
    let sizes = [
        (
            "log_bytes",
            "Bytes of logs on disk, with room ahead and snapshots",
            stats.log_bytes,
        ),
        (
            "log_used_bytes",
            "Bytes of logs that hold events, changes and snapshots",
            stats.log_used_bytes,
        ),
        ("index_bytes", "Bytes of indexes on disk", stats.index_bytes),
        (
            "state_bytes",
            "Bytes of the state on disk, without snapshots",
            stats.state_bytes,
        ),
    ];
    for (name, help, bytes) in sizes {
        out.gauge(name, help, bytes);
    }
}
