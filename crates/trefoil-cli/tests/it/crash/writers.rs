//! Clients that write until the server is gone and remember what they were told.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::{Client, Server};

/// Where one event went, as the server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: String,
    pub(super) position: u64,
    pub(super) global: u64,
}

/// A commit that was sent: the data of its events, the call, and the answer if one came.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) key: String,
    pub(super) call: Value,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Acknowledged(Vec<Place>),
    /// The server said no: nothing of it may ever be seen.
    Refused,
    /// The connection broke before the answer: all of it may be there, or nothing.
    Unknown,
}

pub(super) struct Writer {
    client: Client,
    round: u64,
    number: usize,
}

impl Writer {
    pub(super) fn new(server: &Server, round: u64, number: usize) -> Self {
        Self {
            client: server.client(),
            round,
            number,
        }
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> Vec<Sent> {
        let mut sent = Vec::new();
        for n in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let key = format!("{}/{}/{n}", self.round, self.number);
            let (call, outcome) = match self.number % 3 {
                0 => self.write_one(&key),
                1 => self.write_several(&key, n),
                _ => self.write_expected(&key),
            };
            let cut_off = matches!(outcome, Outcome::Unknown);
            sent.push(Sent { key, call, outcome });
            if cut_off {
                break;
            }
        }
        sent
    }

    fn write_one(&mut self, key: &str) -> (Value, Outcome) {
        let stream = format!("single-{}", self.number);
        let data = json!({"key": key, "part": 0, "parts": 1});
        let id = format!(
            "{:08x}-{:04x}-4000-8000-{:012x}",
            hash(key),
            self.number,
            self.round
        );
        let call = json!(["stream.write", stream, {"type": "E", "data": data}, {"id": id}]);
        let outcome = self.send(&call, |answer| vec![place(&stream, answer)]);
        (call, outcome)
    }

    /// One commit of several events for several streams.
    fn write_several(&mut self, key: &str, n: u64) -> (Value, Outcome) {
        let streams = [
            format!("several-{}", self.number),
            "shared-1".to_owned(),
            format!("several-{}+{}", self.number, n % 50),
            "shared-2".to_owned(),
        ];
        let parts = 2 + (n as usize) % 3;
        // In every second round groups are staged while the one before is appended: that is done for
        // large commits.
        let filler_bytes = [300, 6000][(self.round % 2) as usize];
        let event = |(part, stream): (usize, &String)| {
            let filler = "x".repeat(part * filler_bytes);
            let data = json!({"key": key, "part": part, "parts": parts, "filler": filler});
            json!({"stream": stream, "type": "E", "data": data})
        };
        let events: Vec<Value> = streams.iter().take(parts).enumerate().map(event).collect();
        let id = format!(
            "{:08x}-{:04x}-4000-9000-{:012x}",
            hash(key),
            self.number,
            self.round
        );
        let call = json!(["commit", {"id": id, "events": events}]);
        let outcome = self.send(&call, |answer| {
            let events = answer["events"].as_array().unwrap();
            events
                .iter()
                .map(|event| place(event["stream"].as_str().unwrap(), event))
                .collect()
        });
        (call, outcome)
    }

    /// Reads the version and writes the next one, in a race with the other writers of this kind.
    fn write_expected(&mut self, key: &str) -> (Value, Outcome) {
        let version = match self.client.try_rpc(&json!(["stream.version", "race-1"])) {
            Ok(answer) => answer.ok().as_i64().unwrap_or(-1),
            Err(_) => return (Value::Null, Outcome::Unknown),
        };
        let data = json!({"key": key, "part": 0, "parts": 1});
        let options = json!({"expectedVersion": version});
        let call = json!(["stream.write", "race-1", {"type": "E", "data": data}, options]);
        let outcome = self.send(&call, |answer| {
            assert_eq!(answer["position"], version + 1, "the version was checked");
            vec![place("race-1", answer)]
        });
        (call, outcome)
    }

    fn send(&mut self, call: &Value, places: impl Fn(&Value) -> Vec<Place>) -> Outcome {
        match self.client.try_rpc(call) {
            Ok(answer) if answer.status == 200 => Outcome::Acknowledged(places(&answer.json())),
            Ok(answer) => {
                assert_eq!(answer.status, 409, "{}", answer.text());
                Outcome::Refused
            }
            Err(_) => Outcome::Unknown,
        }
    }
}

pub(super) fn place(stream: &str, answer: &Value) -> Place {
    Place {
        stream: stream.to_owned(),
        position: answer["position"].as_u64().unwrap(),
        global: answer["globalPosition"].as_u64().unwrap(),
    }
}

/// FNV-1a: a number for a name, the same in every run.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
