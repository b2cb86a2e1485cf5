//! Holds in namespaces that nobody visits: they end in their time, though not all namespaces can be
//! open at once, and though the server was killed.

use std::thread::sleep;
use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use trefoil::Timestamp;

use crate::harness::{Resp, Server, Value};

const NAMESPACES: usize = 12;
/// So that most namespaces are closed at any time.
const SETTINGS: [&str; 2] = ["--open-namespaces-max=3", "--log-level=warn"];
/// How long a hold lasts, in milliseconds: it outlives the restart.
const HOLD: u64 = 8_000;
/// How long after the last hold should have ended somebody looks.
const PATIENCE: Duration = Duration::from_secs(10);

fn connect(server: &Server, token: &str) -> Resp {
    let mut connection = Resp::connect(server.resp_port).unwrap();
    assert_eq!(connection.call(&["AUTH", token]), Value::ok());
    connection
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_millis().try_into().unwrap()
}

/// The times of the events of this type, in milliseconds since 1970, because deadlines are whole
/// milliseconds: a hold made at 0.9 ms and lasting 5 ms ends at 5 ms, as an expiry does in Redis.
fn times(server: &Server, token: &str, event_type: &str) -> Vec<u64> {
    let call = json!(["category.get", "seats", {}]);
    let rows = server.client_with(token).rpc(&call).ok();
    let rows = rows.as_array().unwrap();
    let is_wanted = |row: &&Json| {
        row.as_array()
            .unwrap()
            .iter()
            .any(|cell| cell == event_type)
    };
    let time = |row: &Json| {
        let cells = row.as_array().unwrap().iter().filter_map(Json::as_str);
        { cells }.find_map(Timestamp::parse).unwrap().millis()
    };
    rows.iter().filter(is_wanted).map(time).collect()
}

#[test]
fn holds_end_in_namespaces_that_nobody_visits() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &SETTINGS);
    let mut admin = server.client();
    let names = (0..NAMESPACES).map(|number| format!("tenant{number}"));
    let tokens: Vec<_> = names.map(|name| admin.create_namespace(&name)).collect();
    for token in &tokens {
        let mut line = connect(&server, token);
        line.call(&["SEATS.INIT", "1", "A", "ROWS", "2", "SEATS", "2"]);
        let hold = HOLD.to_string();
        let reserve = [
            "SEATS.RESERVE",
            "1",
            "A",
            "b",
            "u",
            "SEATS",
            "1-1",
            "HOLDMS",
            &hold,
        ];
        let answer = line.call(&reserve);
        assert!(!format!("{answer:?}").contains("ERR"), "{answer:?}");
    }
    server.kill();
    let server = Server::on(data.path(), &SETTINGS);
    sleep(Duration::from_millis(HOLD) + PATIENCE);
    let visited = now();
    for token in &tokens {
        let reserved = times(&server, token, "SeatsReserved");
        let ended = times(&server, token, "HoldExpired");
        assert_eq!((reserved.len(), ended.len()), (1, 1), "{}", server.log());
        let due = reserved[0] + HOLD;
        assert!(due <= ended[0], "the hold ended too early");
        println!("{} ms late", ended[0] - due);
        assert!(ended[0] < visited, "the hold ended because of the visit");
    }
}
