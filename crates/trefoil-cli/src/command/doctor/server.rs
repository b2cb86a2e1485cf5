//! Checks of what the server says.

use std::time::Duration;

use trefoil::Clock;

use super::{Check, Verdict};
use crate::client::{HttpClient, MetricsReading, ServerError};
use crate::output::{duration, short, size};

/// With less room than this on the disk somebody should look.
pub(super) const ROOM_WARN: f64 = (1u64 << 30) as f64;

/// A server with less room than this is not ready.
pub(super) const ROOM_FAIL: f64 = (8u64 << 20) as f64;

/// What every hundredth sync may take; a disk that is made for databases takes far less.
pub(super) const SYNC_WARN: f64 = 0.05;

/// Of a limit more than this should not be in use.
const SHARE_WARN: f64 = 0.8;

/// How far the clocks of the server and of this machine may be apart. The server's time comes
/// without fractions of a second.
const CLOCK_WARN: Duration = Duration::from_secs(3);

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that can be checked; only the first if the server cannot be reached.
pub(super) fn checks(client: &HttpClient) -> Vec<Check> {
    let version = match client.version() {
        Ok(version) => version,
        Err(error) => {
            let advice = "start the server, or name another one with --url or --context";
            let found = format!("{error:#}");
            return vec![Check::new("server", Verdict::Fail, found, advice)];
        }
    };
    let mut checks = vec![Check::ok("server", format!("answers at {}", client.url()))];
    checks.push(ready(client));
    checks.push(versions(&version));
    checks.extend(token(client));
    match client.metrics(Duration::ZERO) {
        Ok(reading) => checks.extend(of_metrics(&reading)),
        Err(error) => {
            let advice = "check what stands between this machine and the server";
            let found = format!("cannot be read: {error:#}");
            checks.push(Check::new("metrics", Verdict::Warn, found, advice));
        }
    }
    checks.extend(clock(client));
    checks
}

fn ready(client: &HttpClient) -> Check {
    let reason = match client.not_ready() {
        Ok(None) => return Check::ok("ready", "yes"),
        Ok(Some(reason)) => reason,
        Err(error) => {
            let advice = "look into the server's log";
            return Check::new("ready", Verdict::Fail, format!("{error:#}"), advice);
        }
    };
    let advice = match reason.as_str() {
        "stopping" => "wait until it has stopped, and start it again",
        "storage" => "check the disk, then run `trefoil ns reopen default`",
        "disk" => "make room on the disk of the data directory",
        _ => "look into the server's log",
    };
    Check::new("ready", Verdict::Fail, format!("no: {reason}"), advice)
}

fn versions(server: &str) -> Check {
    match server == VERSION {
        true => Check::ok("versions", format!("server and command are {VERSION}")),
        false => {
            let found = format!("the server is {server}, this command is {VERSION}");
            let advice = "use the command of the server's version";
            Check::new("versions", Verdict::Warn, found, advice)
        }
    }
}

/// Whether the token is let in, what it may do, and whether its namespaces take writes.
fn token(client: &HttpClient) -> Vec<Check> {
    let refusing = match client.refusing_writes() {
        Ok(refusing) => refusing,
        Err(error) => {
            let is_refused = error
                .downcast_ref::<ServerError>()
                .is_some_and(|error| matches!(error.status, 401 | 403));
            let advice = match is_refused {
                true => "see with `trefoil context show` where the token comes from",
                false => "look into the server's log",
            };
            let found = format!("{error:#}");
            return vec![Check::new("token", Verdict::Fail, found, advice)];
        }
    };
    let may = match client.current().ok().flatten() {
        Some(current) if current.is_admin => "may administer all namespaces".to_owned(),
        Some(current) => format!("may use the namespace '{}'", current.namespace),
        None => "is let in".to_owned(),
    };
    let writes = match refusing.first() {
        None => Check::ok("writes", "no namespace refuses them"),
        Some(first) => {
            let found = format!("refused by {}", refusing.join(", "));
            let advice = format!("check the disk, then run `trefoil ns reopen {first}`");
            Check::new("writes", Verdict::Fail, found, advice)
        }
    };
    vec![Check::ok("token", may), writes]
}

/// What is known of the server's disk, memory and clock. A metric that is missing is not checked.
fn of_metrics(reading: &MetricsReading) -> Vec<Check> {
    let start = MetricsReading::default();
    let room = reading.gauge("trefoil_disk_free_bytes");
    let room = room
        .filter(|free| *free > 0.0)
        .map(|free| disk("disk", free));
    let sync = reading.percentile(&start, "trefoil_group_sync_seconds", 0.99, |_| true);
    let sync =
        sync.map(|seconds| syncs("syncs", seconds, "99 of 100 since the start take at most"));
    let memory = reading.gauge("trefoil_memory_bytes");
    let memory =
        memory.map(|bytes| Check::ok("memory", format!("the server uses {}", size(bytes))));
    let behind = reading.gauge("trefoil_clock_behind_seconds").unwrap_or(0.0);
    let clock = (behind > 1.0).then(|| {
        let found = format!("is {} behind the last event", duration(behind));
        let advice = "synchronise the clock of the server with NTP";
        Check::new("server's clock", Verdict::Warn, found, advice)
    });
    let counted = |name: &str, check, what: &str, advice: &str| {
        let number = reading.total(name);
        let found = format!("{number} {what} since the start");
        (number > 0.0).then(|| Check::new(check, Verdict::Warn, found, advice))
    };
    let jumps = counted(
        "trefoil_clock_jumps_total",
        "server's clock",
        "jumps",
        "let NTP adjust it slowly",
    );
    let panics = counted(
        "trefoil_panics_total",
        "defects",
        "panics",
        "please report what the server's log says about them",
    );
    let files = share(reading, "trefoil_open_files", "trefoil_open_files_max");
    let files = files.map(|(used, limit)| {
        let found = format!("the server has {} of {} open", short(used), short(limit));
        let advice = "start it with more: `ulimit -n 65536`, or LimitNOFILE=65536 for systemd";
        judge_share("open files", used / limit, found, advice)
    });
    let clients = share(
        reading,
        "trefoil_client_memory_bytes",
        "trefoil_client_memory_max_bytes",
    );
    let clients = clients.map(|(used, limit)| {
        let found = format!("{} of {} in use", size(used), size(limit));
        let advice = "raise `client-memory-max`, or find the clients that do not read";
        judge_share("memory for clients", used / limit, found, advice)
    });
    [room, sync, memory, clients, files, clock, jumps, panics]
        .into_iter()
        .flatten()
        .collect()
}

/// A gauge and its limit, if the server knows both.
fn share(reading: &MetricsReading, used: &str, limit: &str) -> Option<(f64, f64)> {
    let limit = reading.gauge(limit).filter(|limit| *limit > 0.0)?;
    Some((reading.gauge(used)?, limit))
}

/// Judges how much of a limit is used up.
fn judge_share(check: &'static str, share: f64, found: String, advice: &str) -> Check {
    match share > SHARE_WARN {
        false => Check::ok(check, found),
        true => Check::new(check, Verdict::Warn, found, advice),
    }
}

/// Judges the free bytes of a disk.
pub(super) fn disk(check: &'static str, free: f64) -> Check {
    let verdict = match free {
        free if free < ROOM_FAIL => Verdict::Fail,
        free if free < ROOM_WARN => Verdict::Warn,
        _ => Verdict::Ok,
    };
    let advice = match verdict {
        Verdict::Ok => "",
        _ => "make room on the disk of the data directory: writes stop when it is full",
    };
    Check::new(check, verdict, format!("{} free", size(free)), advice)
}

/// Judges the time of syncs.
pub(super) fn syncs(check: &'static str, seconds: f64, what: &str) -> Check {
    let found = format!("{what} {}", duration(seconds));
    match seconds > SYNC_WARN {
        false => Check::ok(check, found),
        true => {
            let advice = "every write waits for a sync: use a disk whose syncs are faster";
            Check::new(check, Verdict::Warn, found, advice)
        }
    }
}

fn clock(client: &HttpClient) -> Option<Check> {
    let here = Clock::default().now();
    let there = client.time().ok().flatten()?;
    let apart = Duration::from_nanos(there.0.abs_diff(here.0));
    let found = format!(
        "{} apart from this machine's",
        duration(apart.as_secs_f64())
    );
    Some(match apart > CLOCK_WARN {
        false => Check::ok("clock", "agrees with this machine's"),
        true => Check::new("clock", Verdict::Warn, found, "synchronise both with NTP"),
    })
}
