//! What a node knows of its cluster, and what it asks of the store that the nodes share. All of it is 0 on
//! a server that is alone.

use trefoil::Namespaces;
use trefoil::home::{ClusterStats, MemberState};

use super::exposition::{Buckets, Exposition, MetricKind};

/// Adds what is known of the cluster.
pub(super) fn put(out: &mut Exposition, namespaces: &Namespaces) {
    let cluster = namespaces.cluster();
    let members = cluster.as_ref().map(|cluster| cluster.members());
    let members = members.unwrap_or_default();
    let help = "Nodes of the cluster that are not known to be dead, this one included";
    let mut by_state = out.family(MetricKind::Gauge, "cluster_members", help);
    for (name, state) in [
        ("alive", MemberState::Alive),
        ("leaving", MemberState::Leaving),
        ("silent", MemberState::Silent),
    ] {
        let number = members.iter().filter(|member| member.state == state);
        by_state.put(&[("state", name)], number.count());
    }
    let help = "Namespaces that this node has";
    let own = members.iter().find(|member| member.is_this);
    out.gauge("cluster_owned", help, own.map_or(0, |own| own.n_owned));
    let stats = cluster.map(|cluster| cluster.stats()).unwrap_or_default();
    put_moves(out, &stats);
    put_requests(out, &stats);
}

fn put_moves(out: &mut Exposition, stats: &ClusterStats) {
    let help = "For how long this node may answer without hearing from the store";
    let lease = stats.lease_left.as_secs_f64();
    out.gauge("cluster_lease_seconds", help, lease);
    let help = "How far the clock of this node is ahead of that of the store, at least";
    let ahead = stats.clock_ahead_millis as f64 / 1000.0;
    out.gauge("cluster_clock_ahead_seconds", help, ahead);
    let help = "Namespaces that this node handed to others, or took over from dead ones";
    let mut moves = out.family(MetricKind::Counter, "cluster_moves", help);
    for (reason, number) in [
        ("stop", stats.moved_for_stop),
        ("share", stats.moved_for_share),
        ("death", stats.taken_over),
    ] {
        moves.put(&[("reason", reason)], number);
    }
    let help = "Time from when the death of a node was known until a namespace of it was open here";
    out.histogram(
        "cluster_recovery_seconds",
        help,
        &stats.recoveries,
        Buckets::LONG_SECONDS,
    );
}

fn put_requests(out: &mut Exposition, stats: &ClusterStats) {
    let requests = &stats.requests;
    let help = "Requests to the store";
    let mut kinds = out.family(MetricKind::Counter, "store_requests", help);
    for (kind, number) in [
        ("put", requests.puts),
        ("get", requests.gets),
        ("list", requests.lists),
        ("delete", requests.deletes),
    ] {
        kinds.put(&[("kind", kind)], number);
    }
    let help = "Requests to the store that failed";
    out.counter("store_failures", help, requests.failures);
    let help = "Bytes that were sent to the store";
    out.counter("store_sent_bytes", help, requests.bytes_written);
    let help = "Bytes that were asked of the store";
    out.counter("store_received_bytes", help, requests.bytes_read);
}
