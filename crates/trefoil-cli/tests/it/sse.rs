//! Subscribers across dropped connections and killed servers: nothing missed, nothing twice,
//! nothing out of order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{ADMIN, Client, Poll, SMALL_PARTS, Server, Sse, seeded};

/// A server that is killed and started again while clients hold on to it.
struct Phoenix {
    data: TempDir,
    server: Mutex<Option<Server>>,
}

impl Phoenix {
    fn new() -> Self {
        let data = TempDir::new().unwrap();
        let server = Mutex::new(Some(Server::on(data.path(), &SMALL_PARTS)));
        Self { data, server }
    }

    /// Does something with the server of the moment.
    fn with<T>(&self, work: impl FnOnce(&Server) -> T) -> T {
        work(self.server.lock().unwrap().as_ref().unwrap())
    }

    fn die_and_rise(&self, gently: bool) {
        let mut server = self.server.lock().unwrap();
        let old = server.take().unwrap();
        if gently {
            assert!(old.terminate().success());
        } else {
            old.kill();
        }
        *server = Some(Server::on(self.data.path(), &SMALL_PARTS));
    }

    fn client(&self) -> Client {
        self.with(Server::client)
    }
}

/// Writes numbers to a few streams, each until it is acknowledged, until told to stop.
fn write_numbers(phoenix: &Phoenix, writer: u32, stop: &AtomicBool) {
    let mut client = phoenix.client();
    for n in 0u64.. {
        let stream = format!("feed-{}", (u64::from(writer) + n * 3) % 7);
        let id = format!("00000000-0000-4000-8000-{writer:04x}{n:08x}");
        let tags = [format!("writer:{writer}"), format!("third:{}", n % 3)];
        let data = json!({"writer": writer, "n": n});
        let event = json!({"stream": stream, "type": "E", "data": data, "tags": tags, "id": id});
        let call = json!(["commit", {"events": [event]}]);
        while client.try_rpc(&call).is_err() {
            thread::sleep(Duration::from_millis(5));
            client = phoenix.client();
        }
        if stop.load(Ordering::SeqCst) {
            return;
        }
    }
}

/// How a subscriber asks again for what comes after `last`.
type Resume = fn(&Server, last: Option<&Value>) -> Sse;

/// Follows until the event at `end` has come (0: not known yet), asking again whenever the stream
/// breaks.
fn follow(phoenix: &Phoenix, resume: Resume, end: &AtomicU64) -> Vec<Value> {
    let started = Instant::now();
    let mut seen: Vec<Value> = Vec::new();
    let mut sse = phoenix.with(|server| resume(server, None));
    loop {
        match sse.poll() {
            Poll::Data(data) => seen.push(data),
            Poll::Nothing => {}
            Poll::End => sse = phoenix.with(|server| resume(server, seen.last())),
        }
        if seen
            .last()
            .is_some_and(|last| global(last) == end.load(Ordering::SeqCst))
        {
            return seen;
        }
        let last = seen.last();
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "nothing after {last:?} came"
        );
    }
}

/// The global position of a row or a poke.
fn global(data: &Value) -> u64 {
    data.get("globalPosition")
        .unwrap_or(&data[4])
        .as_u64()
        .unwrap()
}

const EVENTS: Resume = |server, last| events(server, "category=feed", last);

const QUERIED_EVENTS: Resume =
    |server, last| events(server, "tag=writer:1&tag=third:2&type=E", last);

fn events(server: &Server, query: &str, last: Option<&Value>) -> Sse {
    let mut headers = vec![("Authorization", format!("Bearer {ADMIN}"))];
    if let Some(last) = last {
        headers.push(("Last-Event-ID", global(last).to_string()));
    }
    let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
    Sse::open(server, &format!("/events?{query}"), &headers)
}

const CATEGORY_POKES: Resume = |server, last| {
    let position = last.map_or(0, |last| global(last) + 1);
    Sse::open(
        server,
        &format!("/subscribe?token={ADMIN}&category=feed&position={position}"),
        &[],
    )
};

const STREAM_POKES: Resume = |server, last| {
    let position = last.map_or(0, |last| last["position"].as_u64().unwrap() + 1);
    Sse::open(
        server,
        &format!("/subscribe?token={ADMIN}&stream=feed-3&position={position}"),
        &[],
    )
};

const GROUP_POKES: Resume = |server, last| {
    let position = last.map_or(0, |last| global(last) + 1);
    let group = format!("category=feed&consumer=1&size=3&position={position}");
    Sse::open(server, &format!("/subscribe?token={ADMIN}&{group}"), &[])
};

#[test]
fn subscribers_miss_nothing_while_the_server_dies_and_rises() {
    const DEATHS: u64 = 8;
    let phoenix = Phoenix::new();
    let mut random = seeded();
    let stop = AtomicBool::new(false);
    let ends: [AtomicU64; 5] = Default::default();
    thread::scope(|scope| {
        let (phoenix, stop) = (&phoenix, &stop);
        let writers: Vec<_> = (0..3)
            .map(|n| scope.spawn(move || write_numbers(phoenix, n, stop)))
            .collect();
        let follower = |(resume, end)| scope.spawn(move || follow(phoenix, resume, end));
        let resumes: [Resume; 5] = [
            EVENTS,
            QUERIED_EVENTS,
            CATEGORY_POKES,
            STREAM_POKES,
            GROUP_POKES,
        ];
        let threads: Vec<_> = resumes.into_iter().zip(&ends).map(follower).collect();
        for death in 0..DEATHS {
            thread::sleep(Duration::from_millis(150 + random.u64(..250)));
            phoenix.die_and_rise(death % 4 == 3);
        }
        stop.store(true, Ordering::SeqCst);
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        let expected = expected(&mut phoenix.client());
        for (end, rows) in ends.iter().zip(&expected) {
            end.store(global(rows.last().unwrap()), Ordering::SeqCst);
        }
        for ((thread, rows), what) in threads.into_iter().zip(&expected).zip(FOLLOWED) {
            assert!(
                thread.join().unwrap() == *rows,
                "{what} differ from what a read returns"
            );
        }
    });
}

const FOLLOWED: [&str; 5] = [
    "events",
    "events of a query",
    "category pokes",
    "stream pokes",
    "a member's pokes",
];

/// What the followers must have got, by reading.
fn expected(client: &mut Client) -> [Vec<Value>; 5] {
    let mut queried = |query: Value| {
        let answer = client.rpc(&json!(["events.query", query])).ok();
        answer["events"].as_array().unwrap().clone()
    };
    let events = queried(json!({"category": "feed"}));
    let tags = json!({"items": [{"types": ["E"], "tags": ["writer:1", "third:2"]}]});
    let queried = queried(tags);
    let mut rows = |call: Value| client.rpc(&call).ok().as_array().unwrap().clone();
    let all = rows(json!(["category.get", "feed", {"batchSize": -1}]));
    assert!(all.len() > 50, "too little was written: {}", all.len());
    let poke =
        |row: &Value| json!({"stream": row[1], "position": row[3], "globalPosition": row[4]});
    let pokes: Vec<Value> = all.iter().map(poke).collect();
    let stream = pokes
        .iter()
        .filter(|poke| poke["stream"] == "feed-3")
        .cloned()
        .collect();
    let group = json!({"batchSize": -1, "consumerGroup": {"member": 1, "size": 3}});
    let group = rows(json!(["category.get", "feed", group]))
        .iter()
        .map(poke)
        .collect();
    [events, queried, pokes, stream, group]
}

#[test]
fn the_members_of_a_group_get_each_event_once_over_sse_as_by_reading() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    for n in 0..60 {
        client.write(&format!("work-{}", n % 20), &json!({"n": n}));
    }
    let members: Vec<Sse> = (0..3)
        .map(|member| {
            Sse::subscribe(
                &server,
                ADMIN,
                &format!("category=work&consumer={member}&size=3"),
            )
        })
        .collect();
    for n in 60..120 {
        client.write(&format!("work-{}", n % 20), &json!({"n": n}));
    }
    let mut total = 0;
    for (member, sse) in members.iter().enumerate() {
        let group = json!({"consumerGroup": {"member": member, "size": 3}});
        let rows = client.rpc(&json!(["category.get", "work", group])).ok();
        for row in rows.as_array().unwrap() {
            assert_eq!(
                global(&sse.data()),
                row[4].as_u64().unwrap(),
                "member {member}"
            );
            total += 1;
        }
        assert!(sse.is_silent_for(Duration::from_millis(100)));
    }
    assert_eq!(total, 120, "every event belongs to one member");
}

/// `/events` sends what `events.query` returns, with the global position as the id.
#[test]
fn events_carry_what_queries_return_and_ids() {
    let server = Server::in_test_mode();
    let mut client = server.client();
    let event = json!({"stream": "full-1", "type": "T", "data": {"a": "line\nbreak"}, "metadata": {"m": 1}, "tags": ["a", "b"]});
    client.rpc(&json!(["commit", {"events": [event]}])).ok();
    client.write("full-2", &json!({}));
    for shape in ["arrays", "objects"] {
        let path = format!("/events?token={ADMIN}&category=full&type=T&as={shape}");
        let events = Sse::open(&server, &path, &[]);
        let (id, event) = events.event();
        assert_eq!(id.as_deref(), Some("1"));
        let read = json!(["events.query", {"category": "full"}, {"batchSize": 1, "as": shape}]);
        assert_eq!(json!([event]), client.rpc(&read).ok()["events"]);
        assert!(
            events.is_silent_for(Duration::from_millis(100)),
            "another type was sent"
        );
    }
}
