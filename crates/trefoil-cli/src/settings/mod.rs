//! The server's settings: a flag wins over the environment, that over the file, that over the
//! default, and each value remembers where it came from.

mod archive;
mod grpc;
mod keys;
mod layers;
mod parse;
mod peers;
mod resp;
mod tls;

pub(crate) use archive::ArchiveSetting;
pub(crate) use keys::{DevSettings, Flags, KeySet, ServeSettings};
pub(crate) use layers::{SettingLayers, Shown};
pub(crate) use parse::{bytes as parse_bytes, duration as parse_duration};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tracing::Level;
use trefoil::{NamespacesOptions, Options, Token, limits};
use trefoil_server::{GrpcConfig, PeersConfig, RespConfig, ShownSetting, Tls, Web};

use crate::exit::UsageError;
use crate::logging::Format;
use crate::places::{StoragePlace, parse_url};

/// Every setting, understood and checked.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    pub(crate) listen: Vec<SocketAddr>,
    /// `None`: gRPC is not served.
    pub(crate) grpc: Option<GrpcConfig>,
    /// `None`: RESP is not served.
    pub(crate) resp: Option<RespConfig>,
    /// `None`: other nodes are not listened for.
    pub(crate) peers: Option<PeersConfig>,
    /// `None`: connections are not encrypted.
    pub(crate) tls: Option<Tls>,
    pub(crate) web: Web,
    pub(crate) connections_max: usize,
    /// `None`: as much as the server chooses.
    pub(crate) client_memory_max: Option<usize>,
    pub(crate) storage: StorageSetting,
    /// `None`: nothing is archived.
    pub(crate) archive: Option<ArchiveSetting>,
    pub(crate) token: Option<Token>,
    /// The token that administers the server.
    pub(crate) admin_token: Option<Token>,
    pub(crate) test_mode: bool,
    /// Whether a data directory was given to a server that keeps nothing.
    pub(crate) ignores_data_dir: bool,
    pub(crate) log_level: Level,
    pub(crate) log_format: Format,
    /// Requests that take this long are logged.
    pub(crate) slow_after: Option<Duration>,
    pub(crate) namespaces: NamespacesOptions,
    /// All of them as they are shown to the administrator.
    pub(crate) shown: Vec<ShownSetting>,
}

/// Where events are kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StorageSetting {
    Memory,
    Directory(PathBuf),
    Storage(StoragePlace),
}

impl StorageSetting {
    /// Returns whether other servers may have it at the same time.
    fn is_shared(&self) -> bool {
        matches!(self, Self::Storage(place) if place.is_shared())
    }
}

impl ServerSettings {
    /// Understands the values, or says which one is wrong, why, and where it stands.
    pub(crate) fn new(layers: &SettingLayers) -> anyhow::Result<Self> {
        let port = layers.parse("port", parse::port)?;
        let test_mode = layers.parse("test-mode", parse::boolean)?;
        let listen = layers.parse("listen", |text| parse::addresses(text, port))?;
        let storage = storage(layers, test_mode)?;
        Ok(Self {
            grpc: grpc::config(layers, &listen)?,
            resp: resp::config(layers, &listen)?,
            peers: peers::config(layers, storage.is_shared())?,
            tls: tls::config(layers)?,
            listen,
            web: Web {
                is_local: false,
                hosts: layers.parse("allow-host", parse::hosts)?,
                origins: layers.parse("allow-origin", parse::origins)?,
            },
            connections_max: layers.parse("connections-max", parse::count)?,
            client_memory_max: layers.parse("client-memory-max", parse::client_memory)?,
            archive: archive::setting(layers, test_mode)?,
            storage,
            token: layers.parse("token", parse::token)?,
            admin_token: layers.parse("admin-token", parse::token)?,
            test_mode,
            ignores_data_dir: test_mode && layers.is_given("data-dir"),
            log_level: layers.parse("log-level", parse::level)?,
            log_format: layers.log_format()?,
            slow_after: layers.parse("slow-request-ms", parse::millis_or_none)?,
            namespaces: namespaces(layers)?,
            shown: layers.told(),
        })
    }
}

fn namespaces(layers: &SettingLayers) -> anyhow::Result<NamespacesOptions> {
    let data_bytes = |text: &str| parse::bytes_within(text, limits::EVENT_DATA_BYTES_MAX as u64);
    let data_bytes_max = layers.parse("event-data-max", data_bytes)?;
    let database = Options::default()
        .with_event_data_bytes_max(usize::try_from(data_bytes_max)?)
        .with_tail_events_max(layers.parse("tail-events-max", parse::count)?)
        .with_segment_bytes_max(layers.parse("segment-size-max", parse::bytes)?)
        .with_plain_segments(layers.parse("plain-segments", parse::count_or_none)?)
        .with_commit_id_retention(layers.parse("commit-id-retention", parse::duration)?);
    Ok(NamespacesOptions::default()
        .with_database(database)
        .with_open_max(layers.parse("open-namespaces-max", parse::count)?)
        .with_cache_bytes(layers.parse("cache-size", parse::bytes)?))
}

/// Returns the object storage, if there is to be one.
fn object_storage(layers: &SettingLayers) -> anyhow::Result<Option<StoragePlace>> {
    let parsed = |text: &str| match text {
        "" => Ok(None),
        text => parse_url(text).map(Some),
    };
    let Some(url) = layers.parse("storage", parsed)? else {
        return Ok(None);
    };
    for other in ["data-dir", "db-url"] {
        if layers.is_given(other) {
            return Err(UsageError(format!(
                "storage and {other} exclude each other: with --storage all data is there, and \
                 --cache-dir says where this machine keeps a copy of what it uses"
            ))
            .into());
        }
    }
    let spacing = layers.parse("storage-spacing-ms", parse::millis_or_none)?;
    Ok(Some(StoragePlace {
        url,
        cache: layers.parse("cache-dir", |text| Ok(PathBuf::from(text)))?,
        spacing: spacing.unwrap_or_default(),
        cache_bytes: layers.parse("cache-size", parse::bytes)?,
    }))
}

/// Test mode keeps nothing. Otherwise a data directory that was given wins over EventoDB's URL.
fn storage(layers: &SettingLayers, test_mode: bool) -> anyhow::Result<StorageSetting> {
    let from_url = layers.parse("db-url", parse::database_url)?;
    layers.parse("db-type", parse::database_type)?;
    if test_mode {
        return Ok(StorageSetting::Memory);
    }
    if let Some(place) = object_storage(layers)? {
        return Ok(StorageSetting::Storage(place));
    }
    let given = layers.is_given("data-dir");
    let directory = layers.parse("data-dir", |text| Ok(PathBuf::from(text)))?;
    match from_url {
        parse::DatabaseUrl::Directory(directory) if !given => {
            Ok(StorageSetting::Directory(directory))
        }
        parse::DatabaseUrl::Sqlite if !given => Err(UsageError(
            "db-url names a SQLite file: Trefoil keeps its data in a directory, give one with \
             --data-dir"
                .to_owned(),
        )
        .into()),
        _ => Ok(StorageSetting::Directory(directory)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(flags: &[(&'static str, &str)]) -> anyhow::Result<ServerSettings> {
        let flags: keys::Given = flags
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        ServerSettings::new(&SettingLayers::new(|_| true, &flags, None, |_| None)?)
    }

    #[test]
    fn the_defaults_are_valid_and_the_librarys_own() {
        let settings = settings(&[]).unwrap();
        let expected = NamespacesOptions::default();
        assert_eq!(settings.listen.len(), 2);
        assert!(
            settings
                .listen
                .iter()
                .all(|address| address.ip().is_loopback())
        );
        assert_eq!(settings.storage, StorageSetting::Directory("./data".into()));
        assert_eq!(
            format!("{:?}", settings.namespaces),
            format!("{expected:?}")
        );
    }

    #[test]
    fn urls_of_eventodb_become_a_data_directory_or_a_clear_error() {
        let storage = |flags: &[(&'static str, &str)]| {
            settings(flags)
                .map(|settings| settings.storage)
                .map_err(|error| error.to_string())
        };
        let directory = |path: &str| Ok(StorageSetting::Directory(path.into()));
        assert_eq!(
            storage(&[("db-url", "pebble:///var/lib/x")]),
            directory("/var/lib/x")
        );
        assert_eq!(storage(&[("db-url", "pebble://x")]), directory("x"));
        assert_eq!(
            storage(&[("db-url", "pebble://memory"), ("test-mode", "true")]),
            Ok(StorageSetting::Memory)
        );
        assert_eq!(
            storage(&[("db-url", "sqlite://x.db"), ("data-dir", "/d")]),
            directory("/d")
        );
        assert!(
            storage(&[("db-url", "sqlite://x.db")])
                .unwrap_err()
                .contains("--data-dir")
        );
        let error = storage(&[("db-url", "postgres://localhost/x")]).unwrap_err();
        assert!(error.contains("PostgreSQL"), "{error}");
        assert!(
            storage(&[("db-type", "timescale")])
                .unwrap_err()
                .contains("timescale")
        );
    }

    #[test]
    fn resp_is_said_in_one_flag_or_in_two() {
        let listen = |flags: &[(&'static str, &str)]| {
            let resp = settings(flags).map_err(|error| error.to_string())?.resp;
            let shown = |address: &SocketAddr| address.to_string();
            Ok::<_, String>(resp.map(|resp| {
                let listen: Vec<String> = resp.listen.iter().map(shown).collect();
                (listen.join(" "), resp.required)
            }))
        };
        let of = |listen: &str, required| Ok(Some((listen.to_owned(), required)));
        assert_eq!(listen(&[]), of("127.0.0.1:6666 [::1]:6666", false));
        assert_eq!(listen(&[("listen", "::")]), of("[::]:6666", false));
        let cases = [
            ("resp-port", "7", of("127.0.0.1:7 [::1]:7", true)),
            ("resp-port", "off", Ok(None)),
            ("resp-listen", "0.0.0.0", of("0.0.0.0:6666", true)),
            ("resp", "7", of("127.0.0.1:7 [::1]:7", true)),
            ("resp", "off", Ok(None)),
            ("resp", "0.0.0.0:7,::", of("0.0.0.0:7 [::]:6666", true)),
        ];
        for (name, value, expected) in cases {
            assert_eq!(listen(&[(name, value)]), expected, "{name} {value}");
        }
        let error = listen(&[("resp", "localhost")]).unwrap_err();
        assert!(
            error.starts_with("resp (flag): \"localhost\" is"),
            "{error}"
        );
        let both = listen(&[("resp", "7"), ("resp-port", "8")]).unwrap_err();
        assert!(both.contains("resp"), "{both}");
    }

    #[test]
    fn other_nodes_are_listened_for_where_there_may_be_some() {
        assert!(settings(&[]).unwrap().peers.is_none());
        let refused = |flags: &[(&'static str, &str)]| settings(flags).unwrap_err().to_string();
        let error = refused(&[("peer-port", "7")]);
        assert!(error.starts_with("peer-port is for servers"), "{error}");
        for wrong in ["a b", "http://a", "a:99999", ":7", "[::1", "a,b"] {
            let error = refused(&[("peer-address", wrong)]);
            assert!(error.starts_with("peer-address (flag): "), "{error}");
        }
        let error = refused(&[("peer-listen", "localhost")]);
        assert!(error.starts_with("peer-listen (flag): "), "{error}");
    }

    #[cfg(feature = "object-storage")]
    #[test]
    fn a_server_on_a_shared_storage_listens_for_others() {
        let peers = |flags: &[(&'static str, &str)]| {
            let s3 = ("storage", "s3://bucket/prefix");
            let flags: Vec<_> = flags.iter().copied().chain([s3]).collect();
            settings(&flags).unwrap().peers.map(|peers| {
                let listen: Vec<String> = peers.listen.iter().map(ToString::to_string).collect();
                (listen.join(" "), peers.address)
            })
        };
        let of = |listen: &str, address: Option<&str>| {
            Some((listen.to_owned(), address.map(str::to_owned)))
        };
        assert_eq!(peers(&[]), of("127.0.0.1:0", None));
        assert_eq!(peers(&[("peer-port", "off")]), None);
        let given = [
            ("peer-listen", "0.0.0.0,::"),
            ("peer-port", "7000"),
            ("peer-address", "::1"),
        ];
        assert_eq!(peers(&given), of("0.0.0.0:7000 [::]:7000", Some("[::1]")));
        for address in ["node-1", "node-1:7", "10.0.0.1", "[::1]:7", "[::1]"] {
            let told = peers(&[("peer-address", address)]).unwrap().1;
            assert_eq!(told.as_deref(), Some(address));
        }
        let alone = settings(&[("storage", "memory:")]).unwrap().peers;
        assert!(alone.is_none());
    }

    #[test]
    fn a_wrong_value_is_named_with_its_source() {
        let error = settings(&[("port", "eighty")]).unwrap_err().to_string();
        assert_eq!(error, "port (flag): \"eighty\" is not a port, 0 to 65535");
        let error = settings(&[("event-data-max", "17MiB")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("the limit is 16777216"), "{error}");
        let secret = "ns_ZGVmYXVsdA_secret";
        let error = settings(&[("token", secret)]).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
