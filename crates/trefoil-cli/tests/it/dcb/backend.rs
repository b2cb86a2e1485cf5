//! A database that runs, in this process or as a server, and how to connect to it.

use std::sync::Barrier;
use std::thread;

use tempfile::TempDir;
use trefoil::{Database, Options};

use super::grpc::Grpc;
use super::library::Library;
use super::rpc::Rpc;
use super::store::Store;
use crate::harness::{SMALL_PARTS, Server};

/// The ways to the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Library,
    Http,
    Grpc,
}

/// Runs a test once over every protocol.
macro_rules! over_every_protocol {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                use crate::dcb::backend::{Backend, Protocol};

                #[test]
                fn over_the_library() {
                    super::$name(&mut Backend::start(Protocol::Library));
                }

                #[test]
                fn over_http() {
                    super::$name(&mut Backend::start(Protocol::Http));
                }

                #[test]
                fn over_grpc() {
                    super::$name(&mut Backend::start(Protocol::Grpc));
                }
            }
        )+
    };
}
pub(super) use over_every_protocol;

enum Running {
    Nothing,
    Database(Database),
    Server { server: Server, token: String },
}

/// A database over one of the protocols. Its parts are small, so that it checkpoints, merges and
/// begins segments all the time.
pub(super) struct Backend {
    pub(super) protocol: Protocol,
    data: TempDir,
    /// How many databases there were before this one.
    number: usize,
    running: Running,
}

impl Backend {
    pub(super) fn start(protocol: Protocol) -> Self {
        let mut backend = Self {
            protocol,
            data: TempDir::new().unwrap(),
            number: 0,
            running: Running::Nothing,
        };
        backend.run();
        backend.renew();
        backend
    }

    fn run(&mut self) {
        self.running = match self.protocol {
            Protocol::Library => Running::Database(self.open()),
            Protocol::Http | Protocol::Grpc => Running::Server {
                server: Server::on(self.data.path(), &SMALL_PARTS),
                token: String::new(),
            },
        };
    }

    fn open(&self) -> Database {
        let directory = self.data.path().join(self.number.to_string());
        let options = Options::default()
            .with_tail_events_max(64)
            .with_segment_bytes_max(32 * 1024)
            .with_plain_segments(1);
        Database::open(directory, &options).unwrap()
    }

    /// Goes on with an empty database.
    pub(super) fn renew(&mut self) {
        self.number += 1;
        match &mut self.running {
            Running::Server { server, token } => {
                *token = server
                    .client()
                    .create_namespace(&format!("n{}", self.number));
            }
            _ => self.run(),
        }
    }

    /// Ends what runs as one should, and starts it again with the same events.
    pub(super) fn restart(&mut self) {
        match std::mem::replace(&mut self.running, Running::Nothing) {
            Running::Database(database) => {
                database.checkpoint().unwrap();
                database.close().unwrap();
                self.run();
            }
            Running::Server { server, token: had } => {
                assert!(server.terminate().success());
                self.run();
                if let Running::Server { token, .. } = &mut self.running {
                    *token = had;
                }
            }
            Running::Nothing => {}
        }
    }

    pub(super) fn connect(&self) -> Box<dyn Store> {
        match &self.running {
            Running::Database(database) => Box::new(Library(database.clone())),
            Running::Server { server, token } if self.protocol == Protocol::Http => {
                Box::new(Rpc(server.client_with(token)))
            }
            Running::Server { server, token } => Box::new(Grpc::connect(server.grpc_port, token)),
            Running::Nothing => panic!("nothing runs"),
        }
    }

    /// Lets this many clients do something at the same time and returns what each came to.
    pub(super) fn together<T: Send>(
        &self,
        clients: usize,
        act: impl Fn(usize, &mut dyn Store) -> T + Sync,
    ) -> Vec<T> {
        let (barrier, act) = (Barrier::new(clients), &act);
        thread::scope(|scope| {
            let spawn = |number| {
                let (mut store, barrier) = (self.connect(), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    act(number, store.as_mut())
                })
            };
            let threads: Vec<_> = (0..clients).map(spawn).collect();
            let answers = threads.into_iter().map(|thread| thread.join().unwrap());
            answers.collect()
        })
    }
}
