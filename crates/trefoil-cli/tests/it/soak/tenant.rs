//! The life of one namespace: created, used over all protocols, deleted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use trefoil::{Query, QueryItem, Selection};

use crate::dcb::{Fact, Grpc, Store as _};
use crate::harness::{Resp, Server, Sse, Value};

/// So that no two have one name.
static TENANTS: AtomicU64 = AtomicU64::new(0);

/// The fewest rounds of a life, however slow the machine.
const ROUNDS_MIN: u64 = 3;

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(50);

/// Lives for about so long.
pub(super) fn live(server: &Server, life: Duration) {
    let born = Instant::now();
    let name = format!("tenant-{}", TENANTS.fetch_add(1, Ordering::Relaxed));
    let mut admin = server.client();
    let token = admin.create_namespace(&name);
    let subscription = Sse::subscribe(server, &token, "category=order&position=0");
    let mut client = server.client_with(&token);
    let mut grpc = Grpc::connect(server.grpc_port, &token);
    let mut resp = Resp::connect(server.resp_port).unwrap();
    assert_eq!(resp.call(&["AUTH", &token]), Value::ok());
    let mut round = 0;
    while round < ROUNDS_MIN || born.elapsed() < life {
        round += 1;
        let position = client.write("order-1", &json!({"round": round}));
        assert_eq!(subscription.data()["globalPosition"], json!(position));
        let tags = [format!("round:{round}")];
        grpc.append(&[Fact::new("Placed", tags.clone())], &[])
            .unwrap();
        let item = QueryItem {
            types: Vec::new(),
            tags: tags.into(),
        };
        let found = grpc.all(&Query { items: vec![item] });
        assert_eq!(found.events.len(), 1);
        assert_eq!(resp.line("INCR rounds"), Value::Integer(round as i64));
        resp.line(&format!("HSET order:{round} state placed"));
        resp.line(&format!("EXPIRE order:{round} 2"));
        transact(&mut resp, round);
        thread::sleep(PAUSE);
    }
    let all = grpc.read(&Selection::all()).unwrap();
    assert_eq!(all.events.len() as u64, 3 * round);
    drop((subscription, client, grpc, resp));
    let deleted = admin.rpc(&json!(["ns.delete", name]));
    assert_eq!(deleted.status, 200, "{}", deleted.text());
}

/// State and an event in one commit.
fn transact(resp: &mut Resp, round: u64) {
    for line in [
        "MULTI".to_owned(),
        format!("LPUSH log {round}"),
        format!("EVENT.APPEND audit-1 Noted {{\"round\":{round}}}"),
    ] {
        let reply = resp.line(&line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    }
    let replies = resp.line("EXEC");
    assert_eq!(
        replies.elements().map(<[Value]>::len),
        Some(2),
        "{replies:?}"
    );
}
