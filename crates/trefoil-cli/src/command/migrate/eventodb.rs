//! The events of a running EventoDB, over its HTTP API.

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use trefoil::Timestamp;

use super::comparison::{ExpectedEvent, MigratedEvents};
use super::transfer::LineTransfer;
use crate::client::{ConnectionArguments, EventRow, HttpClient, ShownEvent};
use crate::output::{CommandOutput, spinner};

const EXAMPLES: &str = "Positions, streams, ids, times, data and metadata are kept. A namespace of EventoDB becomes one of \
Trefoil: run it once for each, with the token of both.

Examples:
  trefoil migrate eventodb http://old:8080 --from-token $OLD
  trefoil migrate eventodb http://old:8080 --from-token $OLD --url http://new:8080 --token $NEW";

/// How many events are asked for at a time.
const PAGE_EVENTS: usize = 1000;

/// Loads the events of a namespace of a running EventoDB into an empty namespace.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Address of EventoDB
    #[arg(value_name = "URL")]
    source: String,
    /// Token of the namespace of EventoDB
    #[arg(
        long,
        value_name = "TOKEN",
        env = "EVENTODB_TOKEN",
        hide_env_values = true
    )]
    from_token: String,
    /// File with the certificates, in PEM, of those who vouch for an https:// EventoDB
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
    /// Give new ids to events whose ids are not UUIDs or belong to other events
    #[arg(long)]
    new_ids: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let source = EventoDb {
            client: HttpClient::of(&self.source, &self.from_token, self.ca.as_deref())?,
        };
        let here: u64 = client.call(&("events.head",))?;
        source.check_same(&client, here)?;
        let tell = |bar: &ProgressBar, imported| bar.set_message(format!("{imported} events"));
        let mut transfer = LineTransfer::new(client, self.new_ids, spinner()?, tell);
        let read = source.for_each(here, |event| {
            transfer.add(event.global_position, &EventLine::of(event))?;
            Ok(true)
        });
        read.and_then(|()| transfer.send())
            .with_context(|| transfer.so_far())?;
        transfer.bar().finish_and_clear();
        let imported = transfer.imported();
        let (compared, head) = self.compare(&source, transfer.client())?;
        match output.is_text() {
            false => {
                let told = json!({"imported": imported, "compared": compared, "head": head});
                output.value(&told)?;
            }
            true => output.line(format_args!(
                "imported {imported} events, up to position {head}; {compared} are the same on both sides"
            ))?,
        }
        Ok(())
    }

    /// Reads everything again, there and here. Returns how many events there are, and the last position.
    fn compare(&self, source: &EventoDb, client: &HttpClient) -> anyhow::Result<(u64, u64)> {
        let bar = spinner()?;
        let here: u64 = client.call(&("events.head",))?;
        let mut migrated = MigratedEvents::of(client)?;
        let mut compared = 0;
        source.for_each(0, |event| {
            // What was written there meanwhile is for the next time.
            if event.global_position > here {
                return Ok(false);
            }
            let metadata = event.metadata.as_ref();
            migrated.expect(&ExpectedEvent {
                position: event.global_position,
                id: Some(event.id.as_str()).filter(|_| !self.new_ids),
                stream: Some((&event.stream, event.position)),
                event_type: &event.event_type,
                tags: &[],
                data: event.data.get().as_bytes(),
                metadata: metadata
                    .map(|json| serde_json::from_str(json.get()))
                    .transpose()?,
                time: Timestamp::parse(&event.time),
            })?;
            compared += 1;
            bar.set_message(format!("compared {compared} events"));
            Ok(true)
        })?;
        bar.finish_and_clear();
        Ok((migrated.finish(here)?, here))
    }
}

/// The EventoDB that is read.
struct EventoDb {
    client: HttpClient,
}

impl EventoDb {
    /// Calls `visit` with each event after a position, in order, until it has seen enough.
    fn for_each(
        &self,
        after: u64,
        mut visit: impl FnMut(&ShownEvent) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let mut next = after + 1;
        loop {
            for event in self.page(next, PAGE_EVENTS)? {
                if event.stream.is_empty() {
                    let url = self.client.url();
                    bail!("{url} is no EventoDB: it has events without streams");
                }
                next = event.global_position + 1;
                if !visit(&event)? {
                    return Ok(());
                }
            }
            if self.page(next, 1)?.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns events from a position on.
    fn page(&self, position: u64, events: usize) -> anyhow::Result<Vec<ShownEvent>> {
        let options = json!({"position": position, "batchSize": events});
        let rows = self.client.call(&("category.get", "", options));
        let rows: Vec<EventRow> =
            rows.with_context(|| format!("cannot read {}", self.client.url()))?;
        Ok(rows.into_iter().map(EventRow::into_event).collect())
    }

    /// A migration that goes on must go on with the same events: the last one here must be there.
    fn check_same(&self, here: &HttpClient, head: u64) -> anyhow::Result<()> {
        if head == 0 {
            return Ok(());
        }
        let ours = EventoDb::last(here, head)?;
        let theirs = self.page(head, 1)?.into_iter().next();
        let is_same = ours.zip(theirs).is_some_and(|(ours, theirs)| {
            (
                ours.stream,
                ours.position,
                ours.event_type,
                ours.global_position,
            ) == (
                theirs.stream,
                theirs.position,
                theirs.event_type,
                theirs.global_position,
            )
        });
        if !is_same {
            bail!(
                "the namespace holds other events than {}: its last event, at global position {head}, is \
                 not there. Migrate into an empty namespace.",
                self.client.url()
            );
        }
        Ok(())
    }

    fn last(here: &HttpClient, head: u64) -> anyhow::Result<Option<ShownEvent>> {
        let options = json!({"position": head, "batchSize": 1});
        let rows: Vec<EventRow> = here.call(&("category.get", "", options))?;
        Ok(rows.into_iter().map(EventRow::into_event).next())
    }
}

/// An event as a line of an import.
#[derive(Serialize)]
struct EventLine<'a> {
    id: &'a str,
    stream: &'a str,
    #[serde(rename = "type")]
    event_type: &'a str,
    pos: i64,
    gpos: u64,
    data: &'a RawValue,
    meta: Option<&'a RawValue>,
    time: &'a str,
}

impl<'a> EventLine<'a> {
    fn of(event: &'a ShownEvent) -> Self {
        Self {
            id: &event.id,
            stream: &event.stream,
            event_type: &event.event_type,
            pos: event.position,
            gpos: event.global_position,
            data: &event.data,
            meta: event.metadata.as_deref(),
            time: &event.time,
        }
    }
}
