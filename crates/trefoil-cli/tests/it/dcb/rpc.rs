//! `/rpc` as a store: `commit` and `events.query`.

use serde_json::{Value, json};
use trefoil::{Direction, EventId, Query, Selection, StartAt, parse_event_id};

use super::store::{Answer, Fact, Refusal, Seen, Store, Unless};
use crate::harness::{Client, Response};

pub(super) struct Rpc(pub(super) Client);

impl Store for Rpc {
    fn append(&mut self, facts: &[Fact], unless: &[Unless]) -> Result<u64, Refusal> {
        let events: Vec<Value> = facts.iter().map(event).collect();
        let conditions: Vec<Value> = unless.iter().map(condition).collect();
        let commit = json!({"events": events, "conditions": conditions});
        let answer = self.call(&json!(["commit", commit]))?;
        Ok(answer["globalPosition"].as_u64().unwrap())
    }

    fn read(&mut self, read: &Selection) -> Result<Answer, Refusal> {
        let mut options = json!({});
        if let StartAt::Position(from) = read.from {
            options["from"] = from.into();
        }
        if read.direction == Direction::Backwards {
            options["direction"] = "backwards".into();
        }
        if read.limit < usize::MAX {
            options["batchSize"] = read.limit.into();
        }
        let asked = query(&read.filter.query);
        let answer = self.call(&json!(["events.query", asked, options]))?;
        let rows = answer["events"].as_array().unwrap();
        Ok(Answer {
            events: rows.iter().map(seen).collect(),
            head: answer["head"].as_u64(),
        })
    }
}

impl Rpc {
    fn call(&mut self, call: &Value) -> Result<Value, Refusal> {
        match self.0.try_rpc(call) {
            Ok(answer) if answer.status == 200 => Ok(answer.json()),
            Ok(answer) => Err(refusal(&answer)),
            Err(error) => Err(Refusal::Gone(error.to_string())),
        }
    }
}

fn event(fact: &Fact) -> Value {
    let mut event = json!({"type": fact.kind, "data": fact.data, "tags": fact.tags});
    if let Some(id) = fact.id {
        event["id"] = id.to_string().into();
    }
    event
}

fn query(query: &Query) -> Value {
    let items = query.items.iter();
    let items = items.map(|item| json!({"types": item.types, "tags": item.tags}));
    json!({"items": items.collect::<Vec<_>>()})
}

fn condition(unless: &Unless) -> Value {
    let mut condition = json!({"query": query(&unless.query)});
    if let Some(after) = unless.after {
        condition["after"] = after.into();
    }
    condition
}

fn refusal(answer: &Response) -> Refusal {
    let error = answer.json()["error"].take();
    let number = |name: &str| error["details"][name].as_u64();
    match (answer.status, error["code"].as_str().unwrap()) {
        (409, "CONDITION_FAILED") => Refusal::Conflict {
            condition: number("condition").map(|index| index as usize),
            position: number("globalPosition"),
        },
        (400, "INVALID_REQUEST") => Refusal::Invalid(error["message"].to_string()),
        // It is about to end and takes nothing more.
        (503, _) => Refusal::Gone(answer.text().to_owned()),
        _ => panic!("{answer:?}"),
    }
}

/// `[id, streamName, type, position, globalPosition, data, metadata, time, tags]`
fn seen(row: &Value) -> Seen {
    let position = row[4].as_u64().unwrap();
    let id = parse_event_id(row[0].as_str().unwrap()).unwrap();
    let tags = row[8].as_array().unwrap().iter();
    assert_eq!((&row[1], &row[3]), (&json!(""), &json!(-1)), "no stream");
    Seen {
        position,
        fact: Fact {
            kind: row[2].as_str().unwrap().to_owned(),
            tags: tags.map(|tag| tag.as_str().unwrap().to_owned()).collect(),
            data: row[5].clone(),
            id: (!is_made_for(&id, position)).then_some(id),
        },
    }
}

/// Whether the server made this id for the event at this position: the lowest 40 bits say so.
fn is_made_for(id: &EventId, position: u64) -> bool {
    id.get_version_num() == 7 && id.as_u64_pair().1 & ((1 << 40) - 1) == position
}
