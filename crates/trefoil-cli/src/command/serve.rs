//! `trefoil serve`: the server.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::json;
use trefoil::{DEFAULT_NAMESPACE, Error, NamespaceId, Namespaces, Token};
use trefoil_server::{ArchiveProgress, Config, Server};

use super::configured::Configured;
use crate::archive::Archiver;
use crate::backups::{Repository, Use};
use crate::eventodb;
use crate::logging;
use crate::output::CommandOutput;
use crate::places::HomePlace;
use crate::settings::{ArchiveSetting, ServeSettings, ServerSettings, StorageSetting};
use crate::supervisor;

const EXAMPLES: &str =
    "Each setting can also come from the environment (TREFOIL_DATA_DIR) or from the \
file (data-dir = \"…\"). A flag overrides the environment, the environment overrides the file, and \
the file overrides the default. EventoDB's flags and variables (EVENTODB_PORT) work too.

Examples:
  trefoil serve --data-dir /var/lib/trefoil --listen 0.0.0.0,::
  trefoil serve --storage s3://bucket/prefix --cache-dir /var/cache/trefoil
  trefoil serve --data-dir /var/lib/trefoil --archive s3://bucket/archive
  trefoil serve --config trefoil.toml --print-config
  trefoil --test-mode --port=6789                As EventoDB's tests start it";

/// Starts the server and runs it until SIGINT or SIGTERM.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    configured: Configured<ServeSettings>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let Some(settings) = self.configured.settings(output)? else {
            return Ok(());
        };
        logging::start(settings.log_level, settings.log_format)?;
        if settings.ignores_data_dir {
            tracing::warn!("test mode keeps everything in memory: data-dir is not used");
        }
        run(settings, |bound, tokens| announce(output, bound, tokens))
    }
}

/// Where the server listens.
pub(super) struct Bound {
    pub(super) http: Vec<SocketAddr>,
    pub(super) grpc: Vec<SocketAddr>,
    pub(super) resp: Vec<SocketAddr>,
    /// For other nodes.
    pub(super) peers: Vec<SocketAddr>,
    is_encrypted: bool,
}

impl Bound {
    /// Where it listens, for programs, with tokens if they are to be told.
    pub(super) fn to_json(
        &self,
        token: Option<&str>,
        admin_token: Option<&str>,
    ) -> serde_json::Value {
        json!({
            "listening": self.http,
            "grpc": self.grpc,
            "resp": self.resp,
            "peers": self.peers,
            "token": token,
            "adminToken": admin_token,
        })
    }

    /// The addresses of HTTP as clients are given them.
    pub(super) fn http_urls(&self) -> impl Iterator<Item = String> {
        self.urls(&self.http, ["http", "https"])
    }

    /// The addresses of RESP as clients are given them.
    pub(super) fn resp_urls(&self) -> impl Iterator<Item = String> {
        self.urls(&self.resp, ["redis", "rediss"])
    }

    /// The addresses of gRPC as clients are given them.
    pub(super) fn grpc_urls(&self) -> impl Iterator<Item = String> {
        self.urls(&self.grpc, ["http", "https"])
    }

    /// Addresses with the scheme for plain connections, or the one for encrypted ones.
    fn urls(
        &self,
        addresses: &[SocketAddr],
        schemes: [&'static str; 2],
    ) -> impl Iterator<Item = String> {
        let scheme = schemes[usize::from(self.is_encrypted)];
        addresses
            .iter()
            .map(move |address| format!("{scheme}://{address}"))
    }
}

/// Opens the namespaces, listens, makes the default namespace if it is missing, tells `ready` where
/// the server listens and with which new token, and serves until a signal comes.
pub(super) fn run(
    settings: ServerSettings,
    ready: impl FnOnce(&Bound, &NewTokens) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let namespaces = open(&settings)?;
    let progress = settings.archive.as_ref().map(|_| Arc::default());
    let is_encrypted = settings.tls.is_some();
    let defaults = Config::default();
    let (is_local, is_test) = (settings.web.is_local, settings.test_mode);
    let config = Config {
        client_memory_max: settings
            .client_memory_max
            .unwrap_or(defaults.client_memory_max),
        listen: settings.listen,
        test_mode: settings.test_mode,
        web: settings.web,
        tls: settings.tls,
        connections_max: settings.connections_max,
        slow_after: settings.slow_after,
        grpc: settings.grpc,
        resp: settings.resp,
        peers: settings.peers,
        archive: progress.clone(),
        settings: settings.shown,
        ..defaults
    };
    let archiver = match (&settings.archive, &progress) {
        (Some(setting), Some(progress)) => Some(archive(&namespaces, setting, progress)?),
        _ => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let served = runtime
        .context("cannot start the runtime")?
        .block_on(async {
            let stop = stop_signal()?;
            let server = Server::bind(config, namespaces.clone()).await?;
            // A token is shown once, so it is made when nothing else can fail any more.
            let made = NewTokens {
                of_default: ensure_default(&namespaces, settings.token.as_ref(), is_local)?,
                of_server: None,
            };
            let may_make = !is_local && !is_test;
            let made = made.with_admin(&namespaces, settings.admin_token.as_ref(), may_make)?;
            let bound = Bound {
                http: server.local_addresses(),
                grpc: server.grpc_addresses(),
                resp: server.resp_addresses(),
                peers: server.peer_addresses(),
                is_encrypted,
            };
            if let Err(error) = ready(&bound, &made) {
                // Nobody has seen the tokens: the next start makes others.
                if made.of_default.is_some() {
                    namespaces.delete(DEFAULT_NAMESPACE)?;
                }
                return Err(error.into());
            }
            open_default(&namespaces);
            supervisor::is_ready();
            let stopping = async {
                stop.await;
                supervisor::is_stopping();
            };
            server.run(stopping).await?;
            anyhow::Ok(())
        });
    if let Some(archiver) = archiver {
        archiver.stop();
    }
    tracing::info!("closing");
    let closed = namespaces.close();
    served?;
    Ok(closed?)
}

/// Starts the continuous archive. What is wrong with a directory is said at once; a service may be out of
/// reach for now.
fn archive(
    namespaces: &Namespaces,
    setting: &ArchiveSetting,
    progress: &Arc<ArchiveProgress>,
) -> anyhow::Result<Archiver> {
    let ArchiveSetting { place, key_file } = setting.clone();
    let open = move || Repository::open(&place, Use::Archive, key_file.as_deref());
    if let HomePlace::Directory(directory) = &setting.place {
        open().with_context(|| format!("cannot archive to {}", directory.display()))?;
    }
    Archiver::start(namespaces, Box::new(open), progress)
}

/// Tokens that nobody knows yet.
#[derive(Debug, Default)]
pub(super) struct NewTokens {
    /// That of the default namespace.
    pub(super) of_default: Option<Token>,
    /// That of the server.
    of_server: Option<Token>,
}

impl NewTokens {
    /// Makes the token of the server: the given one, or a random one at the first start.
    fn with_admin(
        mut self,
        namespaces: &Namespaces,
        given: Option<&Token>,
        may_make: bool,
    ) -> anyhow::Result<Self> {
        if given.is_some() {
            namespaces.ensure_admin(given)?;
        } else if may_make && self.of_default.is_some() {
            self.of_server = namespaces.ensure_admin(None)?;
        }
        if may_make {
            tracing::info!("the token of the namespace 'default' administers the server, too");
        }
        Ok(self)
    }
}

fn open(settings: &ServerSettings) -> anyhow::Result<Namespaces> {
    let options = settings.namespaces.clone();
    let clock = options.database.clock.clone();
    let began = clock.steady();
    let (namespaces, data_dir) = match &settings.storage {
        StorageSetting::Memory => (Namespaces::in_memory(options)?, "(memory)".to_owned()),
        StorageSetting::Directory(directory) => {
            eventodb::refuse(directory)?;
            let namespaces = Namespaces::open(directory, options)?;
            (namespaces, directory.display().to_string())
        }
        StorageSetting::Storage(place) => {
            let home = place.open(&clock)?;
            (Namespaces::open_in(home, options)?, place.url.to_string())
        }
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir,
        namespaces = namespaces.list()?.len(),
        elapsed_ms = u64::try_from(clock.since(began).as_millis())?,
        "starting"
    );
    Ok(namespaces)
}

/// Makes the default namespace if it is missing. Returns its token if nobody knows it yet.
fn ensure_default(
    namespaces: &Namespaces,
    token: Option<&Token>,
    is_dev: bool,
) -> anyhow::Result<Option<Token>> {
    match namespaces.ensure_default(token) {
        // Who gave the token knows it.
        Ok(created) => Ok(created.filter(|_| token.is_none())),
        Err(Error::Invalid(_)) if is_dev => bail!(
            "the data directory was made by `trefoil serve`, with a token of its own, and `trefoil \
             dev` uses the development token: start it with `trefoil serve`, or give `trefoil dev` \
             another --data-dir"
        ),
        Err(error) => Err(error.into()),
    }
}

/// Opens the default namespace without making anybody wait for it: what is wrong with it is in the
/// log before somebody asks.
fn open_default(namespaces: &Namespaces) {
    let namespaces = namespaces.clone();
    tokio::task::spawn_blocking(move || {
        let opened = NamespaceId::new(DEFAULT_NAMESPACE).and_then(|id| namespaces.database(&id));
        match opened {
            // The server was stopped meanwhile, or another node has it.
            Ok(_) | Err(Error::Closed(_) | Error::NotOwner { .. }) => {}
            Err(error) => tracing::error!(%error, "cannot open the default namespace"),
        }
    });
}

/// A future that resolves at SIGINT or SIGTERM; they are caught from now on.
#[cfg(unix)]
pub(super) fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
pub(super) fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(async {
        // Without a way to be told to stop, the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// Tells where the server listens, and the token it made. This is the only time it is shown.
fn announce(output: &mut CommandOutput, bound: &Bound, tokens: &NewTokens) -> std::io::Result<()> {
    let of_default = tokens.of_default.as_ref().map(Token::reveal);
    let of_server = tokens.of_server.as_ref().map(Token::reveal);
    if !output.is_text() {
        output.value(&bound.to_json(of_default, of_server))?;
        return output.flush();
    }
    let rule = "─".repeat(80);
    if let Some(token) = of_default {
        output.line(format_args!(
            "{rule}\nDEFAULT NAMESPACE TOKEN:\n{token}\n{rule}"
        ))?;
    }
    if let Some(token) = of_server {
        output.line(format_args!("ADMIN TOKEN:\n{token}\n{rule}"))?;
    }
    if of_default.is_some() {
        output.line("Tokens are shown this once: only their hashes are stored.")?;
    }
    for url in bound.http_urls() {
        output.line(format_args!("Listening on {url}"))?;
    }
    for url in bound.grpc_urls() {
        output.line(format_args!("Listening on {url} (gRPC)"))?;
    }
    for url in bound.resp_urls() {
        output.line(format_args!("Listening on {url} (RESP)"))?;
    }
    for address in &bound.peers {
        output.line(format_args!("Listening on {address} (other nodes)"))?;
    }
    output.flush()
}
