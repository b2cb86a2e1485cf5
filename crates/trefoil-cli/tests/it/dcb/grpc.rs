//! gRPC as a store: UmaDB's `Append` and `Read`.

use tokio::runtime::{Builder, Runtime};
use trefoil::{Direction, Query, Selection, StartAt, parse_event_id};
use trefoil_grpc::{
    AppendCondition, AppendRequest, Client, Code, Connect, Event, ReadRequest, SequencedEvent,
    Status, error_of,
};

use super::store::{Answer, Fact, Refusal, Seen, Store, Unless};

/// A connection of its own, driven by the thread that uses it.
pub(crate) struct Grpc {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
}

impl Grpc {
    pub(crate) fn connect(port: u16, token: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let connect = Connect {
            url: format!("http://127.0.0.1:{port}"),
            token: Some(token.to_owned()),
            ..Connect::default()
        };
        let client = runtime.block_on(Client::connect(connect)).unwrap();
        Self { runtime, client }
    }
}

impl Store for Grpc {
    fn append(&mut self, facts: &[Fact], unless: &[Unless]) -> Result<u64, Refusal> {
        assert!(unless.len() <= 1, "the protocol has one condition");
        let request = AppendRequest {
            events: facts.iter().map(event).collect(),
            condition: unless.first().map(condition),
            tracking_info: None,
        };
        let appended = self.runtime.block_on(self.client.append(request));
        appended.map_err(|status| refusal(&status))
    }

    fn read(&mut self, read: &Selection) -> Result<Answer, Refusal> {
        let request = ReadRequest {
            query: Some(query(&read.filter.query)),
            start: match read.from {
                StartAt::Position(position) => Some(position),
                _ => None,
            },
            backwards: Some(read.direction == Direction::Backwards),
            limit: u32::try_from(read.limit).ok(),
            ..ReadRequest::default()
        };
        let answer = self.runtime.block_on(async {
            let mut stream = self.client.read(request).await?;
            let (mut events, mut head) = (Vec::new(), None);
            while let Some(batch) = stream.message().await? {
                events.extend(batch.events.iter().map(seen));
                head = batch.head;
            }
            Ok(Answer { events, head })
        });
        answer.map_err(|status: Status| refusal(&status))
    }

    fn conditions_max(&self) -> usize {
        1
    }
}

fn event(fact: &Fact) -> Event {
    Event {
        event_type: fact.kind.clone(),
        tags: fact.tags.clone(),
        data: fact.data.to_string().into(),
        uuid: fact.id.map_or_else(String::new, |id| id.to_string()),
        metadata: Vec::new(),
    }
}

fn query(query: &Query) -> trefoil_grpc::Query {
    let items = query.items.iter().map(|item| trefoil_grpc::QueryItem {
        types: item.types.clone(),
        tags: item.tags.clone(),
    });
    trefoil_grpc::Query {
        items: items.collect(),
    }
}

fn condition(unless: &Unless) -> AppendCondition {
    AppendCondition {
        fail_if_events_match: Some(query(&unless.query)),
        after: unless.after,
    }
}

fn refusal(status: &Status) -> Refusal {
    let said = error_of(status);
    match status.code() {
        Code::FailedPrecondition => {
            assert!(said.is_some(), "{status:?}");
            let (_, rest) = status
                .message()
                .split_once("the event at position ")
                .unwrap();
            let position = rest.split(' ').next().unwrap().parse().ok();
            Refusal::Conflict {
                condition: None,
                position,
            }
        }
        Code::InvalidArgument => Refusal::Invalid(status.message().to_owned()),
        Code::Unavailable => Refusal::Gone(status.to_string()),
        // What the client says of a connection that broke has no details.
        Code::Unknown | Code::Cancelled | Code::Internal if said.is_none() => {
            Refusal::Gone(status.to_string())
        }
        _ => panic!("{status:?} {said:?}"),
    }
}

fn seen(stored: &SequencedEvent) -> Seen {
    let event = stored.event.as_ref().unwrap();
    Seen {
        position: stored.position,
        fact: Fact {
            kind: event.event_type.clone(),
            tags: event.tags.clone(),
            data: serde_json::from_slice(&event.data).unwrap(),
            id: parse_event_id(&event.uuid),
        },
    }
}
