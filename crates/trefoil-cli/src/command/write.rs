//! `trefoil write`: one event.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::ConnectionArguments;
use crate::input::json_object;
use crate::output::CommandOutput;

const EXAMPLES: &str = "Examples:
  trefoil write account-1 Opened '{\"owner\":\"Ada\"}' --expected-version -1
  echo '{\"amount\":5}' | trefoil write account-1 Deposited -
  trefoil write account-1 Closed --metadata '{\"correlationStreamName\":\"audit-7\"}'";

/// Writes one event to a stream and prints its position once it is on disk.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The stream
    stream: String,
    /// The type of the event
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// Data of the event, a JSON object; - reads standard input
    #[arg(default_value = "{}")]
    data: String,
    /// Metadata of the event, a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// The id, a UUID; writing an id again does nothing [default: a new one]
    #[arg(long, value_name = "UUID")]
    id: Option<String>,
    /// Write only if the stream is at this version; -1 if it must not exist
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    expected_version: Option<i64>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(rename = "type")]
    event_type: &'a str,
    data: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_version: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenEvent {
    position: u64,
    global_position: u64,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let metadata = self.metadata.as_deref();
        let message = Message {
            event_type: &self.event_type,
            data: json_object("data", &self.data)?,
            metadata: metadata
                .map(|text| json_object("metadata", text))
                .transpose()?,
        };
        let options = WriteOptions {
            id: self.id.as_deref(),
            expected_version: self.expected_version,
        };
        let client = self.connection.client()?;
        let written: WrittenEvent =
            client.call(&("stream.write", &self.stream, message, options))?;
        if !output.is_text() {
            return Ok(output.value(&written)?);
        }
        let WrittenEvent {
            position,
            global_position,
        } = written;
        Ok(output.line(format_args!(
            "{}@{position}  {global_position}",
            self.stream
        ))?)
    }
}
