//! The events of a running UmaDB, over its gRPC API.
//!
//! Before anything is written, the events that are over a limit are counted: they stop the migration, or
//! they are left out.

mod line;
mod source;
mod too_large;
mod tracking;

use std::ops::RangeInclusive;

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::json;
use trefoil::Clock;
use trefoil_grpc::{Connect, SequencedEvent};

use super::comparison::{ExpectedEvent, MigratedEvents};
use super::transfer::LineTransfer;
use crate::client::{ConnectionArguments, EventRow, HttpClient};
use crate::output::{CommandOutput, count_progress};
use line::Line;
use source::UmaDb;
use too_large::TooLarge;
use tracking::Sources;

const EXAMPLES: &str = "Positions, ids, tags, metadata and tracked positions are kept; the time of an event, which UmaDB does
not know, is that of the migration. The nil UUID is no id here. Run it again to go on after the last
event that is here, be it that the migration broke off or that UmaDB has new events.

Events that are over a limit of Trefoil are counted before anything is written. If there are any, the
migration stops there; --skip-too-large leaves them out.

UmaDB does not list the sources of tracked positions. Those that stand with the events are found;
name the ones that were only recorded without events.

Examples:
  trefoil migrate umadb http://127.0.0.1:50051
  trefoil migrate umadb http://127.0.0.1:50051 --tracking-source orders --tracking-source payments
  trefoil migrate umadb https://events.example.org:50051 --ca ca.pem --url http://127.0.0.1:8080";

/// Loads the events of a running UmaDB into a namespace of their own.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Address of UmaDB
    #[arg(value_name = "URL")]
    source: String,
    /// API key of UmaDB
    #[arg(
        long,
        value_name = "KEY",
        env = "UMADB_API_KEY",
        hide_env_values = true
    )]
    api_key: Option<String>,
    /// File with the certificate, in PEM, that signed UmaDB's one
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
    /// A source whose tracked position is brought along too; may be given several times
    #[arg(long, value_name = "SOURCE")]
    tracking_source: Vec<String>,
    /// Leave out events that are over a limit, and go on
    #[arg(long)]
    skip_too_large: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

impl Arguments {
    pub(super) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let mut source = UmaDb::connect(self.connect()?)?;
        let here: u64 = client.call(&("events.head",))?;
        let there = source.head()?;
        check_same(&mut source, &client, here)?;
        let tell = ProgressBar::set_position;
        let mut transfer = Transfer {
            lines: LineTransfer::new(client, false, count_progress()?, tell),
            time: String::new(),
            sources: Sources::of(&self.tracking_source),
        };
        let mut skipped = 0;
        if there > here {
            let positions = here + 1..=there;
            skipped = self.check_sizes(&mut source, positions.clone())?;
            transfer.run(&mut source, positions)?;
        }
        let client = transfer.lines.client();
        transfer.sources.bring(&mut source, client)?;
        let imported = transfer.lines.imported();
        let compared = compare(&mut source, client, there)?;
        match output.is_text() {
            false => output.value(&json!({
                "imported": imported,
                "skipped": skipped,
                "compared": compared,
                "head": there,
            }))?,
            true => output.line(format_args!(
                "imported {imported} events, up to position {there}; {compared} are the same on both sides"
            ))?,
        }
        Ok(())
    }

    /// Counts the events that are over a limit. If there are any, it tells where they are, and they
    /// are to be left out or nothing is imported.
    fn check_sizes(
        &self,
        source: &mut UmaDb,
        positions: RangeInclusive<u64>,
    ) -> anyhow::Result<u64> {
        let bar = count_progress()?;
        bar.set_message("checking sizes");
        bar.set_length(positions.end() - positions.start() + 1);
        let mut found = TooLarge::default();
        source.for_each(positions, |event| {
            found.note(event);
            bar.inc(1);
            Ok(())
        })?;
        bar.finish_and_clear();
        let (count, url) = (found.count(), &source.url);
        if count == 0 {
            return Ok(0);
        }
        let report = format!("{count} events of {url} are over a limit of Trefoil:\n{found}");
        if !self.skip_too_large {
            bail!("{report}Nothing was imported. To leave these out, use --skip-too-large.");
        }
        eprintln!("{report}They are left out.");
        Ok(count)
    }

    fn connect(&self) -> anyhow::Result<Connect> {
        let read = |path: &std::path::PathBuf| {
            let shown = path.display();
            std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))
        };
        Ok(Connect {
            url: self.source.clone(),
            token: self.api_key.clone(),
            ca_certificate: self.ca.as_ref().map(read).transpose()?,
        })
    }
}

/// An import that goes on must go on with the same events: the last one here must be there.
fn check_same(source: &mut UmaDb, client: &HttpClient, head: u64) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Answer {
        events: Vec<EventRow>,
    }
    if head == 0 {
        return Ok(());
    }
    let options = json!({"from": head, "batchSize": 1});
    let answer: Answer = client.call(&("events.query", json!({}), options))?;
    let here = answer.events.into_iter().next().map(EventRow::into_event);
    let there = source.event_at(head)?.and_then(|event| event.event);
    let is_same = here.zip(there).is_some_and(|(here, there)| {
        here.event_type == there.event_type
            && here.tags == there.tags
            && line::id(&there).is_none_or(|id| here.id.eq_ignore_ascii_case(id))
    });
    if !is_same {
        let url = &source.url;
        bail!(
            "the namespace holds other events than {url}: its last event, at global position \
             {head}, is not there. Import into an empty namespace."
        );
    }
    Ok(())
}

/// Reads everything again, there and here. Returns how many events are the same. Those that were left out are
/// not here.
fn compare(source: &mut UmaDb, client: &HttpClient, there: u64) -> anyhow::Result<u64> {
    let mut migrated = MigratedEvents::of(client)?;
    let bar = count_progress()?;
    bar.set_message("comparing");
    bar.set_length(there);
    if there > 0 {
        source.for_each(1..=there, |sequenced| {
            bar.inc(1);
            let position = sequenced.position;
            let event = sequenced.event.as_ref();
            let event =
                event.with_context(|| format!("there is no event at position {position}"))?;
            if too_large::is_too_large(event) {
                return Ok(());
            }
            migrated.expect(&ExpectedEvent {
                position,
                id: line::id(event),
                event_type: &event.event_type,
                tags: &event.tags,
                data: &event.data,
                metadata: line::metadata(event)?,
                ..ExpectedEvent::default()
            })
        })?;
    }
    bar.finish_and_clear();
    migrated.finish(there)
}

/// Events on their way.
struct Transfer {
    lines: LineTransfer,
    /// The time of the events of the request.
    time: String,
    sources: Sources,
}

impl Transfer {
    fn run(&mut self, source: &mut UmaDb, positions: RangeInclusive<u64>) -> anyhow::Result<()> {
        let bar = self.lines.bar();
        bar.set_length(positions.end() - positions.start() + 1);
        let read = source.for_each(positions, |event| self.add(event));
        read.and_then(|()| self.lines.send())
            .with_context(|| self.lines.so_far())?;
        self.lines.bar().finish_and_clear();
        Ok(())
    }

    fn add(&mut self, sequenced: &SequencedEvent) -> anyhow::Result<()> {
        let position = sequenced.position;
        let event = sequenced.event.as_ref();
        let event = event.with_context(|| format!("there is no event at position {position}"))?;
        // Of an event that is left out the tracked position comes along.
        self.sources.note(sequenced);
        if too_large::is_too_large(event) {
            return Ok(());
        }
        if self.lines.is_empty() {
            self.time = Clock::default().now().to_string();
        }
        let line = Line::of(sequenced, event, &self.time);
        self.lines.add(position, &line)
    }
}
