//! A connection through the published client of UmaDB, unmodified: the one that applications use.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use futures_util::StreamExt;
use trefoil_grpc as wire;
use umadb_client::{AsyncUmaDbClient, UmaDbClient};
use umadb_dcb::{
    DcbAppendCondition, DcbError, DcbEvent, DcbEventStoreAsync, DcbQuery, DcbQueryItem,
};

use super::connection::{Answer, Found, Request};

/// One client with a connection of its own.
pub(crate) struct Umadb {
    client: AsyncUmaDbClient,
}

impl Umadb {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let client = UmaDbClient::new(format!("http://{address}"));
        Ok(Self {
            client: client.connect_async().await?,
        })
    }

    pub(crate) async fn ask(&self, request: Request) -> Result<Answer> {
        match request {
            Request::Append(append) => self.append(append).await,
            Request::Read(read) => self.read(read).await.map(Answer::Read),
        }
    }

    async fn append(&self, append: wire::AppendRequest) -> Result<Answer> {
        let events = append.events.into_iter().map(event).collect();
        let condition = append.condition.map(condition);
        match self.client.append(events, condition, None).await {
            Ok(position) => Ok(Answer::Appended(position)),
            Err(DcbError::IntegrityError(_)) => Ok(Answer::Refused),
            Err(error) => bail!("an append was answered with {error}"),
        }
    }

    async fn read(&self, read: wire::ReadRequest) -> Result<Found> {
        let backwards = read.backwards.unwrap_or_default();
        let query = read.query.map(query);
        let mut events = self
            .client
            .read(query, read.start, backwards, read.limit)
            .await?;
        let mut found = Found::default();
        while let Some(event) = events.next().await {
            found.events += 1;
            found.bytes += event?.event.data.len() as u64;
        }
        Ok(found)
    }
}

fn event(event: wire::Event) -> DcbEvent {
    DcbEvent {
        event_type: event.event_type,
        tags: event.tags,
        data: event.data.into(),
        ..DcbEvent::default()
    }
}

fn condition(condition: wire::AppendCondition) -> DcbAppendCondition {
    let matching = condition.fail_if_events_match.unwrap_or_default();
    DcbAppendCondition::new(query(matching)).after(condition.after)
}

fn query(query: wire::Query) -> DcbQuery {
    let items = query.items.into_iter();
    DcbQuery::with_items(items.map(|item| DcbQueryItem {
        types: item.types,
        tags: item.tags,
    }))
}
