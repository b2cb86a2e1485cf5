//! An event of UmaDB as a line of an import.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use trefoil_grpc::{Event, MetadataEntry, SequencedEvent};

/// A line. Data stands in base64, which the server stores as JSON if it is JSON.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    id: Option<&'a str>,
    stream: &'a str,
    #[serde(rename = "type")]
    event_type: &'a str,
    gpos: u64,
    data64: String,
    meta: Option<MetadataObject<'a>>,
    time: &'a str,
    tags: &'a [String],
    tracking: Option<LineTracking<'a>>,
}

#[derive(Serialize)]
struct LineTracking<'a> {
    source: &'a str,
    position: u64,
}

/// The id of an event. The nil UUID, which some clients send, is none.
pub(super) fn id(event: &Event) -> Option<&str> {
    let is_nil = |id: &str| id.bytes().all(|byte| matches!(byte, b'0' | b'-'));
    Some(event.uuid.as_str()).filter(|id| !is_nil(id))
}

/// Returns the length of an event's metadata as JSON.
pub(super) fn metadata_bytes(event: &Event) -> usize {
    serde_json::to_vec(&MetadataObject(&event.metadata)).map_or(usize::MAX, |json| json.len())
}

/// Returns an event's metadata as it is here, if it has some.
pub(super) fn metadata(event: &Event) -> anyhow::Result<Option<serde_json::Value>> {
    match event.metadata.is_empty() {
        true => Ok(None),
        false => Ok(Some(serde_json::to_value(MetadataObject(&event.metadata))?)),
    }
}

/// Metadata as an object, in the order of its entries.
struct MetadataObject<'a>(&'a [MetadataEntry]);

impl Serialize for MetadataObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|entry| (&entry.key, &entry.value)))
    }
}

impl<'a> Line<'a> {
    /// Returns the line of an event, which gets this time.
    pub(super) fn of(sequenced: &'a SequencedEvent, event: &'a Event, time: &'a str) -> Self {
        let tracking = sequenced.tracking_info.as_ref();
        Self {
            id: id(event),
            stream: "",
            event_type: &event.event_type,
            gpos: sequenced.position,
            data64: STANDARD.encode(&event.data),
            meta: (!event.metadata.is_empty()).then_some(MetadataObject(&event.metadata)),
            time,
            tags: &event.tags,
            tracking: tracking.map(|tracking| LineTracking {
                source: &tracking.source,
                position: tracking.position,
            }),
        }
    }
}
