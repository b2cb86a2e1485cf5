//! The library as a store.

use trefoil::{Commit, Condition, Database, Error, Event, NewEvent, Selection};

use super::store::{Answer, Fact, Refusal, Seen, Store, Unless};

pub(super) struct Library(pub(super) Database);

impl Store for Library {
    fn append(&mut self, facts: &[Fact], unless: &[Unless]) -> Result<u64, Refusal> {
        let mut commit = Commit::new(facts.iter().map(event));
        commit.conditions = unless.iter().map(condition).collect();
        let committed = self.0.commit(commit).map_err(refusal)?;
        Ok(committed.position)
    }

    fn read(&mut self, read: &Selection) -> Result<Answer, Refusal> {
        let (events, head) = self.0.read_with_head(read).map_err(refusal)?;
        Ok(Answer {
            events: events.iter().map(seen).collect(),
            head: Some(head),
        })
    }
}

fn event(fact: &Fact) -> NewEvent {
    let mut event =
        NewEvent::without_stream(&fact.kind, fact.data.to_string()).with_tags(&fact.tags);
    event.id = fact.id;
    event
}

fn condition(unless: &Unless) -> Condition {
    match unless.after {
        None => Condition::no_match(unless.query.clone()),
        Some(after) => Condition::no_match_after(unless.query.clone(), after),
    }
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::ConditionFailed {
            condition,
            position,
        } => Refusal::Conflict {
            condition: Some(condition),
            position: Some(position),
        },
        Error::Invalid(text) => Refusal::Invalid(text),
        other => panic!("{other:?}"),
    }
}

fn seen(event: &Event) -> Seen {
    Seen {
        position: event.position(),
        fact: Fact {
            kind: event.event_type().to_owned(),
            tags: event.tags().map(str::to_owned).collect(),
            data: serde_json::from_slice(event.data()).unwrap(),
            id: event.given_id(),
        },
    }
}
