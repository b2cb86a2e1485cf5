//! A connection to Tephra through its published client.
//!
//! Of its two clients this is the blocking one, which has no queue and no task between the caller
//! and the socket: it costs least, as the server answers each connection on a thread of its own.

use std::net::SocketAddr;

use anyhow::Result;
use tephra_client::{
    AppendCondition, Client, ClientError, ErrorCode, Event, EventType, Position, Query, QueryItem,
    Tag, Tags,
};
use trefoil_grpc as wire;

use super::connection::{Answer, Found, Request};

/// One connection; every call blocks its thread.
pub(crate) struct Tephra {
    client: Client,
}

impl Tephra {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self {
            client: Client::connect(address)?,
        })
    }

    pub(crate) fn ask(&mut self, request: Request) -> Result<Answer> {
        match request {
            Request::Append(append) => self.append(append),
            Request::Read(read) => self.read(read).map(Answer::Read),
        }
    }

    fn append(&mut self, append: wire::AppendRequest) -> Result<Answer> {
        let events: Result<Vec<Event>> = append.events.into_iter().map(event).collect();
        let condition = append.condition.map(condition).transpose()?;
        match self.client.append(events?, condition) {
            Ok(appended) => Ok(Answer::Appended(appended.last.get())),
            Err(ClientError::Server {
                code: ErrorCode::Conflict,
                ..
            }) => Ok(Answer::Refused),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, read: wire::ReadRequest) -> Result<Found> {
        let query = query(read.query)?;
        let limit = read.limit.map(u64::from);
        let events = if read.backwards.unwrap_or_default() {
            let before = read.start.map_or(u64::MAX, |start| start.saturating_add(1));
            self.client.read_back(query, Position::new(before), limit)?
        } else {
            let after = read.start.map_or(0, |start| start.saturating_sub(1));
            self.client.read(query, Position::new(after), limit)?
        };
        let mut found = Found::default();
        for event in events {
            found.events += 1;
            found.bytes += event?.event().payload().len() as u64;
        }
        Ok(found)
    }
}

fn event(event: wire::Event) -> Result<Event> {
    Ok(Event::new(event.event_type, event.tags, event.data)?)
}

fn condition(condition: wire::AppendCondition) -> Result<AppendCondition> {
    let query = query(condition.fail_if_events_match)?;
    let after = Position::new(condition.after.unwrap_or_default());
    Ok(AppendCondition::new(query).after(after))
}

/// A query without items means everything; to Tephra it would mean nothing.
fn query(query: Option<wire::Query>) -> Result<Query> {
    let items = query.unwrap_or_default().items;
    if items.is_empty() {
        return Ok(Query::all());
    }
    let items: Result<Vec<QueryItem>> = items.into_iter().map(item).collect();
    Ok(Query::items(items?))
}

fn item(item: wire::QueryItem) -> Result<QueryItem> {
    let types: Result<Vec<_>, _> = item.types.into_iter().map(EventType::new).collect();
    let tags: Result<Vec<_>, _> = item.tags.into_iter().map(Tag::new).collect();
    Ok(QueryItem::new(types?, Tags::new(tags?)?))
}
