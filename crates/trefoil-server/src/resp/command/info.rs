//! `INFO [section …]`: the state of the server, in Redis' words where they fit.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use trefoil::{Call, OpenDatabase, Reply};

use super::super::session::Session;
use super::super::words::is;
use super::access::REDIS_VERSION;
use crate::VERSION;

/// A section: its name, and what writes it.
type Section = (
    &'static str,
    fn(&mut String, &Session, Option<&OpenDatabase>),
);

const SECTIONS: &[Section] = &[
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

/// Words that stand for all sections.
const ALL: [&str; 3] = ["default", "all", "everything"];

/// The sections that the words name; all of them if they name none.
pub(in super::super) fn info(
    session: &Session,
    database: Option<&OpenDatabase>,
    words: &[Bytes],
) -> Reply {
    let names = &words[1..];
    let wants_all =
        names.is_empty() || names.iter().any(|name| ALL.iter().any(|all| is(name, all)));
    let mut out = String::new();
    for (name, write) in SECTIONS {
        if wants_all || names.iter().any(|wanted| is(wanted, name)) {
            if !out.is_empty() {
                out.push_str("\r\n");
            }
            put(&mut out, format_args!("# {name}"));
            write(&mut out, session, database);
        }
    }
    Reply::Text(out)
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = write!(out, "{line}\r\n");
}

fn server(out: &mut String, session: &Session, _: Option<&OpenDatabase>) {
    let uptime = session.shared().resp.began.elapsed().as_secs();
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

fn clients(out: &mut String, session: &Session, _: Option<&OpenDatabase>) {
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

fn memory(out: &mut String, _: &Session, _: Option<&OpenDatabase>) {
    // Only what the operating system says is known for certain.
    if let Some(bytes) = resident_bytes() {
        put(out, format_args!("used_memory:{bytes}"));
        put(out, format_args!("used_memory_rss:{bytes}"));
    }
    put(out, format_args!("maxmemory:0"));
    put(out, format_args!("maxmemory_policy:noeviction"));
}

/// How much memory the process has, where Linux tells it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn persistence(out: &mut String, _: &Session, database: Option<&OpenDatabase>) {
    put(out, format_args!("loading:0"));
    put(out, format_args!("async_loading:0"));
    put(out, format_args!("rdb_bgsave_in_progress:0"));
    put(out, format_args!("aof_enabled:1"));
    put(out, format_args!("aof_rewrite_in_progress:0"));
    if let Some(database) = database {
        put(
            out,
            format_args!("trefoil_last_commit:{}", database.last_commit()),
        );
        put(
            out,
            format_args!("trefoil_last_position:{}", database.head()),
        );
    }
}

fn stats(out: &mut String, session: &Session, _: Option<&OpenDatabase>) {
    let resp = &session.shared().resp;
    let accepted = resp.accepted.load(Ordering::Relaxed);
    put(out, format_args!("total_connections_received:{accepted}"));
    let requests = resp.requests.load(Ordering::Relaxed);
    put(out, format_args!("total_commands_processed:{requests}"));
    let refused = resp.refused.load(Ordering::Relaxed);
    put(out, format_args!("rejected_connections:{refused}"));
    let metrics = &session.shared().metrics;
    put(
        out,
        format_args!("total_net_input_bytes:{}", metrics.resp.received.get()),
    );
    put(
        out,
        format_args!("total_net_output_bytes:{}", metrics.resp.sent.get()),
    );
    put(
        out,
        format_args!("total_error_replies:{}", metrics.resp.errors.get()),
    );
}

fn replication(out: &mut String, _: &Session, _: Option<&OpenDatabase>) {
    put(out, format_args!("role:master"));
    put(out, format_args!("connected_slaves:0"));
}

fn cluster(out: &mut String, _: &Session, _: Option<&OpenDatabase>) {
    put(out, format_args!("cluster_enabled:0"));
}

fn keyspace(out: &mut String, _: &Session, database: Option<&OpenDatabase>) {
    let call = Call::new(vec![Bytes::from_static(b"dbsize")]);
    let (Some(database), Some(Ok(call))) = (database, call) else {
        return;
    };
    let replies = database.look(&[call]).unwrap_or_default();
    if let Some(Reply::Integer(keys @ 1..)) = replies.first() {
        put(out, format_args!("db0:keys={keys}"));
    }
}
