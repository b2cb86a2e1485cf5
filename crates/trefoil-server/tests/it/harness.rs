//! A server of its own for every test.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use trefoil::{Namespaces, NamespacesOptions, Token};
use trefoil_server::{Config, Server};

/// A running server; it stops when this is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// Where it listens for gRPC.
    pub(crate) grpc: SocketAddr,
    /// Where it listens for RESP.
    pub(crate) resp: SocketAddr,
    /// Where it listens for other nodes, if it does.
    pub(crate) peers: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    done: Option<std::thread::JoinHandle<()>>,
}

impl TestServer {
    pub(crate) fn production() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn test_mode() -> Self {
        Self::with(Config {
            test_mode: true,
            ..Config::default()
        })
    }

    /// A server with this configuration, on free ports, in memory, with the development token.
    pub(crate) fn with(config: Config) -> Self {
        Self::with_options(config, NamespacesOptions::default())
    }

    pub(crate) fn with_options(config: Config, options: NamespacesOptions) -> Self {
        Self::on(config, Namespaces::in_memory(options).unwrap())
    }

    /// A server for these namespaces.
    pub(crate) fn on(mut config: Config, namespaces: Namespaces) -> Self {
        namespaces
            .ensure_default(Some(&Token::development()))
            .unwrap();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        if let Some(grpc) = &mut config.grpc {
            grpc.listen = config.listen.clone();
        }
        if let Some(resp) = &mut config.resp {
            resp.listen = config.listen.clone();
        }
        // What other nodes have sent is answered, however busy the machine is: they could not tell what
        // became of it otherwise.
        if config.peers.is_none() {
            config.drain_timeout = config.drain_timeout.min(Duration::from_secs(2));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, address) = std::sync::mpsc::channel();
        let done = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let server = Server::bind(config, namespaces).await.unwrap();
                let addresses = [
                    server.local_addresses()[0],
                    server.grpc_addresses()[0],
                    server.resp_addresses()[0],
                ];
                let peers = server.peer_addresses().first().copied();
                bound.send((addresses, peers)).unwrap();
                let stopped = async {
                    let _ = stopped.await;
                };
                server.run(stopped).await.unwrap();
            });
            // Tasks that a test left behind must not keep it from ending.
            runtime.shutdown_timeout(Duration::from_secs(1));
        });
        let ([address, grpc, resp], peers) = address.recv().unwrap();
        Self {
            address,
            grpc,
            resp,
            peers,
            stop: Some(stop),
            done: Some(done),
        }
    }

    /// Tells the server to stop, and goes on.
    pub(crate) fn begin_shutdown(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has stopped.
    pub(crate) fn wait(&mut self) {
        if let Some(done) = self.done.take() {
            done.join().unwrap();
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Hands each file of cases in `directory`, below the tests, to `run`, with its name and a server of
/// the mode that its first line says.
pub(crate) fn each_case_file(directory: &str, mut run: impl FnMut(&TestServer, &str, &str)) {
    let directory = format!("{}/tests/{directory}", env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let server = match text.lines().next() {
            Some("mode test") => TestServer::test_mode(),
            Some("mode production") => TestServer::production(),
            other => panic!("{}: no mode but {other:?}", path.display()),
        };
        let name = path.file_name().unwrap().to_string_lossy();
        run(&server, &name, &text);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.begin_shutdown();
        if !std::thread::panicking() {
            self.wait();
        }
    }
}
