//! The events of a running UmaDB, over its gRPC API.
//!
//! They keep their positions, so that whoever has remembered one goes on with it here. An import
//! that broke off is taken up after the last event of the namespace.

mod line;
mod source;
mod tracking;

use std::time::SystemTime;

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::json;
use trefoil::Timestamp;
use trefoil_grpc::{Connect, SequencedEvent};

use super::request::{Failure, Import, REQUEST_BYTES};
use crate::client::{Client, Connection, Row};
use crate::output::{Output, count_progress};
use line::Line;
use source::Source;
use tracking::Sources;

const EXAMPLES: &str = "Positions, ids, tags, metadata and tracked positions are kept; the time of an event, which UmaDB does
not know, is that of the import. The nil UUID is no id here. Run it again to go on after the last
event that is here, be it that the import broke off or that UmaDB has new events.

UmaDB does not list the sources of tracked positions. Those that stand with the events are found;
name the ones that were only recorded without events.

Examples:
  trefoil import umadb http://127.0.0.1:50051
  trefoil import umadb http://127.0.0.1:50051 --tracking-source orders --tracking-source payments
  trefoil import umadb https://events.example.org:50051 --ca ca.pem --url http://127.0.0.1:8080";

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
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    pub(super) fn run(self, output: &mut Output) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let mut source = Source::connect(self.connect()?)?;
        let here: u64 = client.call(&("events.head",))?;
        let there = source.head()?;
        check_same(&mut source, &client, here)?;
        let bar = count_progress()?;
        bar.set_length(there - here);
        let mut transfer = Transfer {
            import: Import {
                client,
                force: false,
                new_ids: false,
                imported: 0,
                bar,
            },
            body: Vec::new(),
            positions: Vec::new(),
            sources: Sources::of(&self.tracking_source),
        };
        if there > here {
            transfer.run(&mut source, here + 1)?;
        }
        transfer.import.bar.finish_and_clear();
        transfer
            .sources
            .bring(&mut source, &transfer.import.client)?;
        let imported = transfer.import.imported;
        match output.json {
            true => output.value(&json!({"imported": imported, "head": there}))?,
            false => output.line(format_args!(
                "imported {imported} events, up to position {there}"
            ))?,
        }
        Ok(())
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
fn check_same(source: &mut Source, client: &Client, head: u64) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Answer {
        events: Vec<Row>,
    }
    if head == 0 {
        return Ok(());
    }
    let options = json!({"from": head, "batchSize": 1});
    let answer: Answer = client.call(&("events.query", json!({}), options))?;
    let here = answer.events.into_iter().next().map(Row::into_event);
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

/// Events on their way.
struct Transfer {
    import: Import,
    body: Vec<u8>,
    /// The positions of the events in the body.
    positions: Vec<u64>,
    sources: Sources,
}

impl Transfer {
    fn run(&mut self, source: &mut Source, start: u64) -> anyhow::Result<()> {
        let mut answers = source.read(start);
        while let Some(answer) = answers.blocking_recv() {
            let answer = answer.map_err(|status| source.refusal(&status));
            let answer = answer.with_context(|| self.so_far())?;
            let time = now()?.to_string();
            for event in &answer.events {
                self.add(event, &time)?;
                if self.body.len() >= REQUEST_BYTES {
                    self.send()?;
                }
            }
        }
        self.send()
    }

    fn add(&mut self, sequenced: &SequencedEvent, time: &str) -> anyhow::Result<()> {
        let line = Line::of(sequenced, time)?;
        self.sources.note(sequenced);
        serde_json::to_writer(&mut self.body, &line)?;
        self.body.push(b'\n');
        self.positions.push(sequenced.position);
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        if self.body.is_empty() {
            return Ok(());
        }
        let sent = self.import.send(&self.body, ProgressBar::set_position);
        let sent = sent.map_err(|failure| match failure {
            Failure::Other(error) => error,
            Failure::Stopped { line, error } => {
                let index = usize::try_from(line).unwrap_or(0).saturating_sub(1);
                let position = self.positions.get(index).copied().unwrap_or(0);
                let what = format!("the event at position {position} cannot be imported");
                anyhow::Error::new(error).context(what)
            }
        });
        sent.with_context(|| self.so_far())?;
        self.body.clear();
        self.positions.clear();
        Ok(())
    }

    fn so_far(&self) -> String {
        format!("the import stopped after {} events", self.import.imported)
    }
}

fn now() -> anyhow::Result<Timestamp> {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(Timestamp(i64::try_from(since_1970.as_nanos())?))
}
