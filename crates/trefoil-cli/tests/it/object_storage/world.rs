//! One server on a storage, and what is written to it over every protocol.

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use trefoil_grpc::{AppendRequest, Client, Connect, Event, ReadRequest};

use super::Storage;
use crate::harness::{ADMIN, Server, Value, binary};

const EVENTS: u64 = 40;

/// A server with a cache of its own, which is gone with it.
pub(super) struct World {
    server: Server,
    _cache: TempDir,
}

/// What was written and acknowledged.
pub(super) struct Written {
    tenant_token: String,
    account: Json,
    tenant: Json,
}

impl World {
    pub(super) fn start(storage: &Storage) -> Self {
        let cache = TempDir::new().unwrap();
        let directory = cache.path().join("cache");
        let arguments = [
            "--storage",
            &storage.url,
            "--cache-dir",
            directory.to_str().unwrap(),
            "--token",
            ADMIN,
        ];
        let mut command = binary();
        command.envs(&storage.variables);
        let server = Server::try_launch(command, &arguments).unwrap();
        assert!(server.log().contains(&storage.url), "{}", server.log());
        Self {
            server,
            _cache: cache,
        }
    }

    /// Writes over HTTP, gRPC and RESP, to two namespaces.
    pub(super) fn write(&self) -> Written {
        let mut client = self.server.client();
        for number in 0..EVENTS {
            client.write("account-1", &json!({"number": number}));
        }
        let tenant_token = client.create_namespace("tenant");
        let mut tenant = self.server.client_with(&tenant_token);
        tenant.write("order-1", &json!({"of": "the tenant"}));
        self.append("Enrolled", "course:c1");
        let mut resp = self.server.resp();
        assert_eq!(resp.call(&["SET", "greeting", "hello"]), Value::ok());
        let words = ["HSET", "stats", "reserved", "7"];
        assert_eq!(resp.call(&words), Value::Integer(1));
        let words = ["EVENT.APPEND", "show-1", "Reserved", "{\"seat\":7}"];
        assert!(resp.call(&words).elements().is_some());
        Written {
            tenant_token,
            account: client.rpc(&json!(["stream.get", "account-1"])).ok(),
            tenant: tenant.rpc(&json!(["stream.get", "order-1"])).ok(),
        }
    }

    /// Checks that all of it is there, and nothing else of it.
    pub(super) fn check(&self, written: &Written) {
        let mut client = self.server.client();
        let account = client.rpc(&json!(["stream.get", "account-1"])).ok();
        assert_eq!(account, written.account);
        assert_eq!(account.as_array().unwrap().len() as u64, EVENTS);
        let mut tenant = self.server.client_with(&written.tenant_token);
        let order = tenant.rpc(&json!(["stream.get", "order-1"])).ok();
        assert_eq!(order, written.tenant);
        let foreign = tenant.rpc(&json!(["stream.get", "account-1"])).ok();
        assert_eq!(foreign, json!([]));
        let enrolled = self.read();
        let tags = |event: &Event| event.tags.contains(&"course:c1".to_owned());
        assert!(enrolled.iter().any(tags));
        let mut resp = self.server.resp();
        assert_eq!(resp.call(&["GET", "greeting"]), Value::bulk("hello"));
        let words = ["HGET", "stats", "reserved"];
        assert_eq!(resp.call(&words), Value::bulk("7"));
        let show = client.rpc(&json!(["stream.get", "show-1"])).ok();
        assert_eq!(show[0][1], "Reserved");
    }

    pub(super) fn write_more(&self, round: u64) {
        let mut client = self.server.client();
        client.write("more-1", &json!({"round": round}));
        let mut resp = self.server.resp();
        let counted = resp.call(&["INCR", "rounds"]);
        assert_eq!(counted, Value::Integer(i64::try_from(round).unwrap() + 1));
    }

    pub(super) fn check_more(&self, rounds: u64) {
        let mut client = self.server.client();
        let more = client.rpc(&json!(["stream.get", "more-1"])).ok();
        let rows = more.as_array().unwrap();
        let found: Vec<u64> = rows
            .iter()
            .map(|row| row[4]["round"].as_u64().unwrap())
            .collect();
        assert_eq!(found, (0..rounds).collect::<Vec<u64>>());
        let mut resp = self.server.resp();
        assert_eq!(
            resp.call(&["GET", "rounds"]),
            Value::bulk(rounds.to_string())
        );
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    pub(super) fn kill(self) {
        self.server.kill();
    }

    pub(super) fn stop(self) {
        let log = self.server.log();
        assert!(self.server.terminate().success(), "{log}");
    }

    /// Waits until a server that was told to has stopped.
    pub(super) fn ends(self) {
        let log = self.server.log();
        assert!(self.server.wait().success(), "{log}");
    }

    fn grpc(&self, runtime: &Runtime) -> Client {
        let connect = Connect {
            url: format!("http://127.0.0.1:{}", self.server.grpc_port),
            token: Some(ADMIN.to_owned()),
            ca_certificate: None,
        };
        runtime.block_on(Client::connect(connect)).unwrap()
    }

    fn append(&self, event_type: &str, tag: &str) {
        let runtime = Runtime::new().unwrap();
        let mut client = self.grpc(&runtime);
        let event = Event {
            event_type: event_type.to_owned(),
            tags: vec![tag.to_owned()],
            data: b"{}".to_vec().into(),
            ..Event::default()
        };
        let request = AppendRequest {
            events: vec![event],
            ..AppendRequest::default()
        };
        runtime.block_on(client.append(request)).unwrap();
    }

    fn read(&self) -> Vec<Event> {
        let runtime = Runtime::new().unwrap();
        let mut client = self.grpc(&runtime);
        runtime.block_on(async {
            let mut answers = client.read(ReadRequest::default()).await.unwrap();
            let mut events = Vec::new();
            while let Some(answer) = answers.message().await.unwrap() {
                let found = answer.events.into_iter();
                events.extend(found.filter_map(|found| found.event));
            }
            events
        })
    }
}
