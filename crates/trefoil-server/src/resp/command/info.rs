//! `INFO [section …]`: the state of the server, in Redis' words where they fit.

use std::fmt::Write as _;

use bytes::Bytes;
use trefoil::{OpenDatabase, Reply, Survey};

use super::super::session::Session;
use super::super::words::is;
use super::access::REDIS_VERSION;
use crate::metrics::cpu_seconds;
use crate::{VERSION, memory as process_memory};

/// What is told about: the namespace of the client, if it has one, and its keys.
pub(in super::super) struct InfoSubject {
    database: Option<OpenDatabase>,
    survey: Option<Survey>,
}

impl InfoSubject {
    /// Counts the keys; not on this thread if that may have to be waited for.
    pub(in super::super) async fn of(database: Option<OpenDatabase>) -> Self {
        let surveyed = match &database {
            Some(database) if database.state_may_wait() => database.survey_async().await.ok(),
            Some(database) => database.survey().ok(),
            None => None,
        };
        Self {
            survey: surveyed.filter(|survey| survey.keys > 0),
            database,
        }
    }
}

/// A section: its name, and what writes it.
type InfoSection = (&'static str, fn(&mut String, &Session, &InfoSubject));

const SECTIONS: &[InfoSection] = &[
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
    ("Commandstats", command_statistics),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

/// Words that stand for all sections.
const ALL: [&str; 2] = ["all", "everything"];

/// What is told only if it is asked for.
const ASKED_FOR: &str = "Commandstats";

/// The sections that the words name; if they name none, all but one.
pub(in super::super) fn info(session: &Session, subject: &InfoSubject, words: &[Bytes]) -> Reply {
    let names = &words[1..];
    let has = |wanted: &str| names.iter().any(|name| is(name, wanted));
    let wants_all = ALL.into_iter().any(has);
    let wants_usual = wants_all || names.is_empty() || has("default");
    let mut out = String::new();
    for (name, write) in SECTIONS {
        let is_usual = wants_usual && *name != ASKED_FOR;
        if wants_all || is_usual || has(name) {
            if !out.is_empty() {
                out.push_str("\r\n");
            }
            put(&mut out, format_args!("# {name}"));
            write(&mut out, session, subject);
        }
    }
    Reply::Text(out)
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = write!(out, "{line}\r\n");
}

fn server(out: &mut String, session: &Session, _: &InfoSubject) {
    let uptime = session.shared().resp.uptime().as_secs();
    put(out, format_args!("redis_version:{REDIS_VERSION}"));
    put(out, format_args!("trefoil_version:{VERSION}"));
    put(out, format_args!("redis_mode:standalone"));
    put(out, format_args!("os:{}", std::env::consts::OS));
    put(out, format_args!("arch_bits:{}", usize::BITS));
    put(out, format_args!("process_id:{}", std::process::id()));
    put(
        out,
        format_args!("tcp_port:{}", session.client.local.port()),
    );
    put(out, format_args!("uptime_in_seconds:{uptime}"));
    put(out, format_args!("uptime_in_days:{}", uptime / 86_400));
}

fn clients(out: &mut String, session: &Session, _: &InfoSubject) {
    let shared = session.shared();
    put(
        out,
        format_args!("connected_clients:{}", shared.resp.count()),
    );
    put(
        out,
        format_args!("maxclients:{}", shared.config.connections_max),
    );
    put(out, format_args!("blocked_clients:0"));
}

fn memory(out: &mut String, _: &Session, _: &InfoSubject) {
    // Only what the operating system says is known for certain.
    if let Some(bytes) = process_memory::resident() {
        put(out, format_args!("used_memory:{bytes}"));
        put(out, format_args!("used_memory_rss:{bytes}"));
    }
    put(out, format_args!("maxmemory:0"));
    put(out, format_args!("maxmemory_policy:noeviction"));
}

fn persistence(out: &mut String, _: &Session, subject: &InfoSubject) {
    put(out, format_args!("loading:0"));
    put(out, format_args!("async_loading:0"));
    put(out, format_args!("rdb_bgsave_in_progress:0"));
    put(out, format_args!("aof_enabled:1"));
    put(out, format_args!("aof_rewrite_in_progress:0"));
    // A database that was closed meanwhile has neither.
    let ends = subject.database.as_ref();
    let ends =
        ends.and_then(|database| Some((database.last_commit().ok()?, database.head().ok()?)));
    if let Some((commit, position)) = ends {
        put(out, format_args!("trefoil_last_commit:{commit}"));
        put(out, format_args!("trefoil_last_position:{position}"));
    }
}

fn stats(out: &mut String, session: &Session, _: &InfoSubject) {
    let shared = session.shared();
    let counted = shared.resp.statistics(&shared.metrics.resp);
    for (name, count) in [
        ("total_connections_received", counted.accepted),
        ("total_commands_processed", counted.requests),
        ("rejected_connections", counted.refused),
        ("total_net_input_bytes", counted.received),
        ("total_net_output_bytes", counted.sent),
        ("total_error_replies", counted.errors),
    ] {
        put(out, format_args!("{name}:{count}"));
    }
}

fn replication(out: &mut String, _: &Session, _: &InfoSubject) {
    put(out, format_args!("role:master"));
    put(out, format_args!("connected_slaves:0"));
}

fn cpu(out: &mut String, _: &Session, _: &InfoSubject) {
    let Some(times) = cpu_seconds() else {
        return;
    };
    let names = ["user", "sys", "user_children", "sys_children"];
    for (name, seconds) in names.into_iter().zip(times) {
        put(out, format_args!("used_cpu_{name}:{seconds:.6}"));
    }
}

fn command_statistics(out: &mut String, session: &Session, _: &InfoSubject) {
    for (name, counts) in session.shared().resp.usage.told() {
        let (calls, micros) = (counts.calls.get(), counts.nanos.get() / 1_000);
        let each = micros as f64 / calls.max(1) as f64;
        let (rejected, failed) = (counts.rejected.get(), counts.failed.get());
        put(
            out,
            format_args!(
                "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},\
                 rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

fn cluster(out: &mut String, _: &Session, _: &InfoSubject) {
    put(out, format_args!("cluster_enabled:0"));
}

fn keyspace(out: &mut String, _: &Session, subject: &InfoSubject) {
    let Some(survey) = &subject.survey else {
        return;
    };
    let (keys, expiring, ttl) = (survey.keys, survey.expiring, survey.mean_ttl);
    put(
        out,
        format_args!("db0:keys={keys},expires={expiring},avg_ttl={ttl}"),
    );
}
