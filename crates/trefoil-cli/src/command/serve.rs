//! `trefoil serve`: the server.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;
use trefoil::{DEFAULT_NAMESPACE, Namespaces, Token};
use trefoil_server::{Config, Server};

use crate::logging;
use crate::output::{Column, Output};
use crate::settings::{Flags, Layers, SERVE_KEYS, ServeSettings, Settings, Shown, Storage};

const EXAMPLES: &str =
    "Each setting can also come from the environment (TREFOIL_DATA_DIR) or from the \
file (data-dir = \"…\"). A flag overrides the environment, the environment overrides the file, and \
the file overrides the default. EventoDB's flags and variables (EVENTODB_PORT) work too.

Examples:
  trefoil serve --data-dir /var/lib/trefoil --listen 0.0.0.0,::
  trefoil serve --config trefoil.toml --print-config
  trefoil --test-mode --port=6789                As EventoDB's tests start it";

/// Starts the server and runs it until SIGINT or SIGTERM.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags<ServeSettings>,

    /// TOML file with settings
    #[arg(long, value_name = "FILE", env = "TREFOIL_CONFIG")]
    config: Option<PathBuf>,

    /// Show every setting and where it came from, and stop
    #[arg(long)]
    print_config: bool,
}

const COLUMNS: &[Column<Shown>] = &[
    ("SETTING", |shown| shown.name.to_owned()),
    ("VALUE", |shown| shown.value.clone()),
    ("SOURCE", |shown| shown.source.clone()),
];

impl Arguments {
    pub(crate) fn run(self, output: &mut Output) -> anyhow::Result<()> {
        let variable = |name: &str| std::env::var(name).ok();
        let config = self.config.as_deref();
        let layers = Layers::new(SERVE_KEYS, &self.flags.given, config, variable)?;
        let settings = Settings::new(&layers)?;
        if self.print_config {
            return Ok(output.table(&layers.shown(), COLUMNS)?);
        }
        logging::start(settings.log_level, settings.log_format)?;
        if settings.test_mode && layers.is_given("data-dir") {
            tracing::warn!("test mode keeps everything in memory: data-dir is not used");
        }
        run(settings, |bound, token| announce(output, bound, token))
    }
}

/// Where the server listens.
pub(super) struct Bound {
    pub(super) http: Vec<SocketAddr>,
    pub(super) grpc: Vec<SocketAddr>,
    pub(super) resp: Vec<SocketAddr>,
    grpc_scheme: &'static str,
}

impl Bound {
    /// Where it listens, for programs, with a token if it is to be told.
    pub(super) fn to_json(&self, token: Option<&str>) -> serde_json::Value {
        json!({"listening": self.http, "grpc": self.grpc, "resp": self.resp, "token": token})
    }

    /// The addresses of RESP as clients are given them.
    pub(super) fn resp_urls(&self) -> impl Iterator<Item = String> {
        let addresses = self.resp.iter();
        addresses.map(|address| format!("redis://{address}"))
    }

    /// The addresses of gRPC as clients are given them.
    pub(super) fn grpc_urls(&self) -> impl Iterator<Item = String> {
        let scheme = self.grpc_scheme;
        self.grpc
            .iter()
            .map(move |address| format!("{scheme}://{address}"))
    }
}

/// Opens the namespaces, listens, makes the default namespace if it is missing, tells `ready` where
/// the server listens and with which new token, and serves until a signal comes.
pub(super) fn run(
    settings: Settings,
    ready: impl FnOnce(&Bound, Option<&Token>) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let namespaces = match &settings.storage {
        Storage::Memory => Namespaces::in_memory(settings.namespaces)?,
        Storage::Directory(directory) => Namespaces::open(directory, settings.namespaces)?,
    };
    let has_tls = settings
        .grpc
        .as_ref()
        .is_some_and(|grpc| grpc.tls.is_some());
    let grpc_scheme = if has_tls { "https" } else { "http" };
    let defaults = Config::default();
    let config = Config {
        client_memory_max: settings
            .client_memory_max
            .unwrap_or(defaults.client_memory_max),
        listen: settings.listen,
        test_mode: settings.test_mode,
        connections_max: settings.connections_max,
        grpc: settings.grpc,
        resp: settings.resp,
        ..defaults
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
            let created = namespaces.ensure_default(settings.token.as_ref())?;
            // Who gave the token knows it.
            let new_token = created.filter(|_| settings.token.is_none());
            let bound = Bound {
                http: server.local_addresses(),
                grpc: server.grpc_addresses(),
                resp: server.resp_addresses(),
                grpc_scheme,
            };
            if let Err(error) = ready(&bound, new_token.as_ref()) {
                // Nobody has seen the token: the next start makes another one.
                if new_token.is_some() {
                    namespaces.delete(DEFAULT_NAMESPACE)?;
                }
                return Err(error.into());
            }
            server.run(stop).await?;
            anyhow::Ok(())
        });
    tracing::info!("closing");
    let closed = namespaces.close();
    served?;
    Ok(closed?)
}

/// A future that resolves at SIGINT or SIGTERM; they are caught from now on.
#[cfg(unix)]
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
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
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(async {
        // Without a way to be told to stop, the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// Tells where the server listens, and the token it made. This is the only time it is shown.
fn announce(output: &mut Output, bound: &Bound, token: Option<&Token>) -> std::io::Result<()> {
    if output.json {
        let token = token.map(Token::reveal);
        output.value(&bound.to_json(token))?;
        return output.flush();
    }
    if let Some(token) = token {
        let rule = "─".repeat(80);
        let token = token.reveal();
        output.line(format_args!(
            "{rule}\nDEFAULT NAMESPACE TOKEN:\n{token}\n{rule}"
        ))?;
        output.line("It is shown this once: only its hash is stored.")?;
    }
    for address in &bound.http {
        output.line(format_args!("Listening on http://{address}"))?;
    }
    for url in bound.grpc_urls() {
        output.line(format_args!("Listening on {url} (gRPC)"))?;
    }
    for url in bound.resp_urls() {
        output.line(format_args!("Listening on {url} (RESP)"))?;
    }
    output.flush()
}
