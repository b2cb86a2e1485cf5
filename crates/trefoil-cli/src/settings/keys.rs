//! The settings by name. One table makes the flags, the variables, the keys of the file and the
//! help.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use trefoil::{NamespacesOptions, Options};
use trefoil_server::{GrpcConfig, RespConfig};

/// By default caches take at most this part of the memory that the process may use, and at least as much
/// as they need to be of use.
const CACHE_FRACTION: u64 = 8;
const CACHE_BYTES_MIN: u64 = 16 << 20;

/// One setting: `--data-dir`, `TREFOIL_DATA_DIR` and `data-dir = "…"` are the same one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    value_name: &'static str,
    help: &'static str,
    pub(crate) default: fn() -> String,
    /// Whether EventoDB has it too: then its variable counts where ours is missing.
    pub(crate) eventodb: bool,
    /// Whether its value is never shown.
    pub(crate) secret: bool,
    /// Whether it is for servers in production only.
    production: bool,
}

const fn key(
    name: &'static str,
    value_name: &'static str,
    default: fn() -> String,
    help: &'static str,
) -> Key {
    Key {
        name,
        value_name,
        help,
        default,
        eventodb: false,
        secret: false,
        production: false,
    }
}

const fn eventodb(key: Key) -> Key {
    Key {
        eventodb: true,
        ..key
    }
}

const fn secret(key: Key) -> Key {
    Key {
        secret: true,
        ..key
    }
}

const fn production(key: Key) -> Key {
    Key {
        production: true,
        ..key
    }
}

const LISTEN: Key = production(key(
    "listen",
    "ADDRESSES",
    || "127.0.0.1,::1".into(),
    "Addresses to listen on, separated by commas; 0.0.0.0,:: for every interface",
));
const PORT: Key = eventodb(key(
    "port",
    "PORT",
    || "8080".into(),
    "Port to listen on; 0 takes a free one",
));
const GRPC_PORT: Key = key(
    "grpc-port",
    "PORT",
    || "50051".into(),
    "Port for gRPC; 0 takes a free one, off serves none",
);
const GRPC_LISTEN: Key = production(key(
    "grpc-listen",
    "ADDRESSES",
    String::new,
    "Addresses for gRPC, separated by commas [default: those of --listen]",
));
const GRPC_THREADS: Key = key(
    "grpc-threads",
    "COUNT",
    || GrpcConfig::default().threads.to_string(),
    "Number of threads for gRPC; each connection stays on one",
);
const RESP: Key = key(
    "resp",
    "ADDRESSES",
    String::new,
    "Addresses or port for RESP, or off: --resp-listen and --resp-port in one",
);
const RESP_PORT: Key = key(
    "resp-port",
    "PORT",
    || "6666".into(),
    "Port for RESP, Redis' protocol; 0 takes a free one, off serves none",
);
const RESP_LISTEN: Key = production(key(
    "resp-listen",
    "ADDRESSES",
    String::new,
    "Addresses for RESP, separated by commas [default: those of --listen]",
));
const RESP_THREADS: Key = key(
    "resp-threads",
    "COUNT",
    || RespConfig::default().threads.to_string(),
    "Number of threads for RESP; each connection stays on one",
);
const PEER_LISTEN: Key = production(key(
    "peer-listen",
    "ADDRESSES",
    || "127.0.0.1".into(),
    "Addresses for the other nodes that share --storage, separated by commas",
));
const PEER_PORT: Key = key(
    "peer-port",
    "PORT",
    || "0".into(),
    "Port for other nodes; 0 takes a free one, off lets none in and sends no request on",
);
const PEER_ADDRESS: Key = production(key(
    "peer-address",
    "ADDRESS",
    String::new,
    "What other nodes are told to reach this one, a name or an IP address, with a port or without \
     [default: the first of --peer-listen]",
));
const TLS_CERT: Key = key(
    "tls-cert",
    "FILE",
    String::new,
    "Certificate chain in PEM: HTTP, gRPC and RESP are encrypted, and the file is read again when it changes [default: no TLS]",
);
const TLS_KEY: Key = key(
    "tls-key",
    "FILE",
    String::new,
    "Private key of the certificate in PEM",
);
const ALLOW_HOST: Key = key(
    "allow-host",
    "NAMES",
    String::new,
    "Names, separated by commas, by which requests may address the server besides this machine's \
     own; * for any",
);
const ALLOW_ORIGIN: Key = key(
    "allow-origin",
    "ORIGINS",
    String::new,
    "Origins, separated by commas, whose web pages may use the server, like https://app.example; \
     * for any",
);
const DATA_DIR: Key = eventodb(key(
    "data-dir",
    "DIR",
    || "./data".into(),
    "Directory that holds all namespaces",
));
const STORAGE: Key = key(
    "storage",
    "URL",
    String::new,
    "Object storage that holds all namespaces, instead of --data-dir: s3:, gs: or \
     az://bucket/prefix, file:///path or memory:",
);
const CACHE_DIR: Key = key(
    "cache-dir",
    "DIR",
    || "./cache".into(),
    "Directory for what is fetched from --storage; it can be deleted while no server runs",
);
const STORAGE_SPACING_MS: Key = key(
    "storage-spacing-ms",
    "MILLISECONDS",
    || "0".into(),
    "How long after a write of a namespace to --storage the next one may begin: what comes \
     meanwhile is written together, with fewer requests",
);
const ARCHIVE: Key = key(
    "archive",
    "REPOSITORY",
    String::new,
    "Directory or URL of an object storage to which all that is committed is shipped, seconds later",
);
const ARCHIVE_KEY_FILE: Key = key(
    "archive-key-file",
    "FILE",
    String::new,
    "File with the key that --archive is encrypted with: 64 hexadecimal digits",
);
const TOKEN: Key = production(secret(eventodb(key(
    "token",
    "TOKEN",
    String::new,
    "Token of the default namespace, or any text of 16 bytes [default: a random one, printed once]",
))));
const ADMIN_TOKEN: Key = production(secret(key(
    "admin-token",
    "TOKEN",
    String::new,
    "Token that administers the server, or any text of 16 bytes [default: a random one, printed once with that of the default namespace]",
)));
const TEST_MODE: Key = production(eventodb(key(
    "test-mode",
    "BOOL",
    || "false".into(),
    "Keep everything in memory and do not check tokens",
)));
const LOG_LEVEL: Key = eventodb(key(
    "log-level",
    "LEVEL",
    || "info".into(),
    "error, warn, info, debug or trace",
));
const LOG_FORMAT: Key = eventodb(key(
    "log-format",
    "FORMAT",
    || "console".into(),
    "console or json",
));
const EVENT_DATA_MAX: Key = key(
    "event-data-max",
    "BYTES",
    || size(Options::default().event_data_bytes_max as u64),
    "Largest data of one event, at most 16MiB",
);
const SLOW_REQUEST_MS: Key = key(
    "slow-request-ms",
    "MILLISECONDS",
    || "250".into(),
    "Log requests that take this long, and keep them for SLOWLOG; 0 logs none",
);
const OPEN_NAMESPACES_MAX: Key = key(
    "open-namespaces-max",
    "COUNT",
    || NamespacesOptions::default().open_max.to_string(),
    "How many namespaces may be open at once",
);
const CACHE_SIZE: Key = key(
    "cache-size",
    "BYTES",
    || size(cache_bytes_default(trefoil_server::memory_limit())),
    "Memory for caches of all open namespaces together",
);
const TAIL_EVENTS_MAX: Key = key(
    "tail-events-max",
    "COUNT",
    || Options::default().tail_events_max.to_string(),
    "Events a namespace indexes in memory before it moves the index to disk",
);
const SEGMENT_SIZE_MAX: Key = key(
    "segment-size-max",
    "BYTES",
    || size(Options::default().segment_bytes_max),
    "Size of a full file of a log",
);
const PLAIN_SEGMENTS: Key = key(
    "plain-segments",
    "COUNT",
    || Options::default().plain_segments.to_string(),
    "How many of the newest full files of a log stay uncompressed",
);
const COMMIT_ID_RETENTION: Key = key(
    "commit-id-retention",
    "DURATION",
    || "24h".into(),
    "How long the id of a transaction is kept, like 90s, 30m, 24h or 7d",
);
const CONNECTIONS_MAX: Key = key(
    "connections-max",
    "COUNT",
    || {
        trefoil_server::Config::default()
            .connections_max
            .to_string()
    },
    "How many connections may be open at once",
);
const CLIENT_MEMORY_MAX: Key = key(
    "client-memory-max",
    "BYTES",
    String::new,
    "Memory for requests and replies of all clients, at least 64MiB [default: a quarter of what \
     the process may use]",
);
const DB_URL: Key = production(eventodb(key(
    "db-url",
    "URL",
    String::new,
    "EventoDB's name for the data directory: pebble:///dir",
)));
const DB_TYPE: Key = production(eventodb(key(
    "db-type",
    "TYPE",
    String::new,
    "Accepted for compatibility with EventoDB",
)));

/// The settings of `serve`, in the order in which they are shown.
pub(crate) const SERVE_KEYS: &[Key] = &[
    LISTEN,
    PORT,
    GRPC_LISTEN,
    GRPC_PORT,
    GRPC_THREADS,
    RESP,
    RESP_LISTEN,
    RESP_PORT,
    RESP_THREADS,
    TLS_CERT,
    TLS_KEY,
    ALLOW_HOST,
    ALLOW_ORIGIN,
    DATA_DIR,
    STORAGE,
    CACHE_DIR,
    STORAGE_SPACING_MS,
    PEER_LISTEN,
    PEER_PORT,
    PEER_ADDRESS,
    ARCHIVE,
    ARCHIVE_KEY_FILE,
    TOKEN,
    ADMIN_TOKEN,
    TEST_MODE,
    LOG_LEVEL,
    LOG_FORMAT,
    SLOW_REQUEST_MS,
    EVENT_DATA_MAX,
    OPEN_NAMESPACES_MAX,
    CACHE_SIZE,
    TAIL_EVENTS_MAX,
    SEGMENT_SIZE_MAX,
    PLAIN_SEGMENTS,
    COMMIT_ID_RETENTION,
    CONNECTIONS_MAX,
    CLIENT_MEMORY_MAX,
    DB_URL,
    DB_TYPE,
];

/// Which settings a command has.
pub(crate) trait KeySet: Send + Sync + 'static {
    fn has(key: &Key) -> bool;
}

/// All settings.
#[derive(Debug, Clone)]
pub(crate) struct ServeSettings;

impl KeySet for ServeSettings {
    fn has(_: &Key) -> bool {
        true
    }
}

/// The settings of `dev`. The others have their defaults there: it listens on this machine, its
/// token is the well-known one and its data is kept, whatever is set for production.
#[derive(Debug, Clone)]
pub(crate) struct DevSettings;

impl KeySet for DevSettings {
    fn has(key: &Key) -> bool {
        !key.production
    }
}

/// The settings of a set.
fn keys<Set: KeySet>() -> impl Iterator<Item = &'static Key> {
    SERVE_KEYS.iter().filter(|key| Set::has(key))
}

/// Settings by name.
pub(crate) type Given = BTreeMap<&'static str, String>;

/// The settings that were given as flags.
#[derive(Debug, Clone)]
pub(crate) struct Flags<Set> {
    pub(crate) given: Given,
    set: PhantomData<Set>,
}

impl<Set: KeySet> FromArgMatches for Flags<Set> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |key: &Key| Some((key.name, matches.get_one::<String>(key.name)?.clone()));
        Ok(Self {
            given: keys::<Set>().filter_map(given).collect(),
            set: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<Set: KeySet> Args for Flags<Set> {
    fn augment_args(command: Command) -> Command {
        command.args(keys::<Set>().map(Key::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl Key {
    fn argument(&self) -> Arg {
        let default = (self.default)();
        let help = match default.as_str() {
            "" | "false" => self.help.to_owned(),
            default => format!("{} [default: {default}]", self.help),
        };
        let argument = Arg::new(self.name)
            .long(self.name)
            .value_name(self.value_name)
            .help(help);
        match self.value_name {
            // As in Go: `--test-mode` or `--test-mode=true`, but not `--test-mode true`.
            "BOOL" => argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            _ => argument,
        }
    }

    /// The variables that set it, the stronger one first.
    pub(crate) fn variables(&self) -> Vec<String> {
        let suffix = self.name.replace('-', "_").to_uppercase();
        let eventodb = self.eventodb.then(|| format!("EVENTODB_{suffix}"));
        std::iter::once(format!("TREFOIL_{suffix}"))
            .chain(eventodb)
            .collect()
    }
}

/// The memory for caches where a process may use this much: a small container would otherwise end for
/// the sake of its caches.
fn cache_bytes_default(memory_limit: u64) -> u64 {
    // In whole mebibytes, to be shown.
    let share = (memory_limit / CACHE_FRACTION) & !((1 << 20) - 1);
    NamespacesOptions::default()
        .cache_bytes
        .min(share.max(CACHE_BYTES_MIN))
}

/// A number of bytes in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units
        .iter()
        .find(|(shift, _)| bytes != 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(
        || bytes.to_string(),
        |(shift, name)| format!("{}{name}", bytes >> shift),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_take_a_part_of_a_small_machine() {
        assert_eq!(size(cache_bytes_default(24 << 30)), "512MiB");
        assert_eq!(size(cache_bytes_default((512 << 20) + 1)), "64MiB");
        assert_eq!(size(cache_bytes_default(1 << 20)), "16MiB");
    }
}
