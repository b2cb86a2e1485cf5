//! Two servers side by side, with two connections to each.

use std::path::Path;

use tempfile::TempDir;

use super::super::redis::Redis;
use crate::harness::{Resp, SMALL_PARTS, Server, Value, encode};

/// How many connections to each server.
pub(super) const CONNECTIONS: usize = 2;

/// A command with its arguments.
pub(super) type Words = Vec<Vec<u8>>;

/// A real Redis, and Trefoil on a directory.
pub(super) struct World {
    redis: Redis,
    /// There is none only while it is being restarted.
    trefoil: Option<Server>,
    data: TempDir,
    is_resp3: bool,
    connections: Vec<Pair>,
}

/// A connection to each.
struct Pair {
    redis: Resp,
    trefoil: Resp,
}

impl World {
    /// `None` if the machine has no Redis.
    pub(super) fn new() -> Option<Self> {
        let redis = Redis::start()?;
        let data = TempDir::new().unwrap();
        Some(Self {
            redis,
            trefoil: Some(start(data.path())),
            data,
            is_resp3: false,
            connections: Vec::new(),
        })
    }

    /// Nothing is stored, and the connections are new.
    pub(super) fn reset(&mut self, is_resp3: bool) {
        self.is_resp3 = is_resp3;
        self.connect();
        for value in self.both(0, &words("FLUSHALL")) {
            assert_eq!(value, Value::ok());
        }
    }

    /// Kills Trefoil and starts it again; all connections are new.
    pub(super) fn restart(&mut self) {
        self.connections.clear();
        self.trefoil.take().unwrap().kill();
        self.trefoil = Some(start(self.data.path()));
        self.connect();
    }

    /// Appends enough events that Trefoil moves its index to disk, and with it what changed in the
    /// state. State knows nothing of them.
    pub(super) fn checkpoint(&mut self) {
        const EVENTS: usize = 100;
        let mut client = self.trefoil.as_ref().unwrap().resp();
        let mut request = Vec::new();
        for _ in 0..EVENTS {
            encode(
                &["EVENT.APPEND", "checkpoint-1", "Happened", "{}"],
                &mut request,
            );
        }
        client.send(&request).unwrap();
        for _ in 0..EVENTS {
            let answer = client.receive().unwrap();
            assert!(matches!(answer, Value::Array(_)), "{answer:?}");
        }
    }

    fn connect(&mut self) {
        let trefoil = self.trefoil.as_ref().unwrap();
        let pair = |_| Pair {
            redis: hello(Resp::connect(self.redis.port).unwrap(), self.is_resp3),
            trefoil: hello(trefoil.resp(), self.is_resp3),
        };
        self.connections = (0..CONNECTIONS).map(pair).collect();
    }

    /// Sends a command to both and returns both replies, Redis' first.
    pub(super) fn both(&mut self, connection: usize, words: &Words) -> [Value; 2] {
        self.pipeline(connection, std::slice::from_ref(words))
            .remove(0)
    }

    /// Sends commands to both, all at once, and returns both replies to each.
    pub(super) fn pipeline(&mut self, connection: usize, commands: &[Words]) -> Vec<[Value; 2]> {
        let mut request = Vec::new();
        for words in commands {
            encode(words, &mut request);
        }
        let pair = &mut self.connections[connection];
        pair.redis.send(&request).unwrap();
        pair.trefoil.send(&request).unwrap();
        let replies = commands.iter().map(|words| {
            let of = |server: &str, connection: &mut Resp| {
                let reply = connection.receive();
                reply.unwrap_or_else(|error| panic!("{server} after {words:?}: {error}"))
            };
            [
                of("redis", &mut pair.redis),
                of("trefoil", &mut pair.trefoil),
            ]
        });
        replies.collect()
    }

    /// A command to Redis alone.
    pub(super) fn redis(&mut self, connection: usize, words: &Words) -> Value {
        self.connections[connection].redis.call(words)
    }
}

/// Small parts, so that segments come and go.
fn start(data: &Path) -> Server {
    Server::on(data, &SMALL_PARTS)
}

fn hello(mut connection: Resp, is_resp3: bool) -> Resp {
    if is_resp3 {
        let answer = connection.line("HELLO 3");
        assert!(matches!(answer, Value::Map(_)), "{answer:?}");
    }
    connection
}

/// The words of a line.
pub(super) fn words(line: &str) -> Words {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}
