//! Clients that stay as long as the soak lasts: of the default namespace, and of some that are used
//! now and then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use trefoil::{Query, QueryItem, Selection};

use crate::dcb::{Fact, Grpc, Store as _};
use crate::harness::{ADMIN, Resp, Server, Sse, Value};

/// How many there are.
pub(super) const CLIENTS: u64 = 6;

/// Between two requests of a client: the load is to be steady, not the most there can be.
const PAUSE: Duration = Duration::from_millis(2);

/// How many namespaces are visited, and the pause between two visits.
const VISITED: u64 = 20;
const VISIT_PAUSE: Duration = Duration::from_millis(20);

/// Over how many names a client spreads what it does.
const NAMES: u64 = 5000;

/// After this many requests a client comes with a new connection.
const REQUESTS_PER_CONNECTION: u64 = 1000;

/// Sends requests of one protocol until the load is over.
pub(super) fn run(server: &Server, number: u64, is_over: &AtomicBool) {
    let mut random = Rng::with_seed(number);
    while !is_over.load(Ordering::Relaxed) {
        let mut requests: Box<dyn FnMut(u64)> = match number % 3 {
            0 => http(server),
            1 => grpc(server),
            _ => resp(server),
        };
        for _ in 0..REQUESTS_PER_CONNECTION {
            requests(random.u64(..NAMES));
            thread::sleep(PAUSE);
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Uses namespaces that stay, one after the other, so that they are closed and opened again.
pub(super) fn visit(server: &Server, is_over: &AtomicBool) {
    let mut admin = server.client();
    let names = (0..VISITED).map(|number| format!("visited-{number}"));
    let tokens: Vec<String> = names.map(|name| admin.create_namespace(&name)).collect();
    for (visit, token) in (0_u64..).zip(tokens.iter().cycle()) {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut client = server.client_with(token);
        let position = client.write("visit-1", &json!({}));
        assert_eq!(position, 1 + visit / VISITED);
        thread::sleep(VISIT_PAUSE);
    }
}

/// Writes an event and reads its stream, beside a subscription.
fn http<'a>(server: &'a Server) -> Box<dyn FnMut(u64) + 'a> {
    let mut client = server.client();
    let subscription = Sse::subscribe(server, ADMIN, "category=soak&position=0");
    let mut n_requests = 0;
    Box::new(move |name| {
        let stream = format!("soak-{name}");
        client.write(&stream, &json!({"name": name}));
        let read = client.rpc(&json!(["stream.get", stream, {"batchSize": 10}]));
        assert!(!read.ok().as_array().unwrap().is_empty());
        n_requests += 1;
        if n_requests % 100 == 0 {
            subscription.data();
        }
    })
}

/// Appends on condition and reads by tag.
fn grpc<'a>(server: &'a Server) -> Box<dyn FnMut(u64) + 'a> {
    let mut client = Grpc::connect(server.grpc_port, ADMIN);
    Box::new(move |name| {
        let tag = format!("name:{name}");
        let fact = Fact::new("Soaked", [tag.clone()]).with(json!({"name": name}));
        client.append(&[fact], &[]).unwrap();
        let item = QueryItem {
            types: Vec::new(),
            tags: vec![tag],
        };
        let read = Selection::query(Query { items: vec![item] }).limit(10);
        assert!(!client.read(&read).unwrap().events.is_empty());
    })
}

/// Changes and reads keys of several types; some of them expire.
fn resp<'a>(server: &'a Server) -> Box<dyn FnMut(u64) + 'a> {
    let mut client: Resp = server.resp();
    Box::new(move |name| {
        for line in [
            format!("SET text:{name} {name} PX 5000"),
            format!("HINCRBY hash:{} f{name} 1", name % 100),
            format!("ZADD zset:{} {name} m{name}", name % 100),
            format!("RPUSH list:{} {name}", name % 100),
            format!("LTRIM list:{} -50 -1", name % 100),
            format!("SETBIT bits {name} 1"),
        ] {
            let reply = client.line(&line);
            assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        }
        let got = client.line(&format!("GETBIT bits {name}"));
        assert_eq!(got, Value::Integer(1));
    })
}
