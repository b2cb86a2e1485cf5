//! Tracked positions: the last one of each source may have been recorded without an event.

use std::collections::BTreeSet;

use anyhow::bail;
use serde_json::{Value, json};
use trefoil_grpc::SequencedEvent;

use super::source::UmaDb;
use crate::client::HttpClient;

/// The sources that are known.
pub(super) struct Sources {
    /// Those that the user names. They must be there.
    named: BTreeSet<String>,
    /// Those that stand with events.
    seen: BTreeSet<String>,
}

impl Sources {
    pub(super) fn of(named: &[String]) -> Self {
        Self {
            named: named.iter().cloned().collect(),
            seen: BTreeSet::new(),
        }
    }

    /// Notes the source that stands with an event.
    pub(super) fn note(&mut self, event: &SequencedEvent) {
        if let Some(tracking) = &event.tracking_info
            && !self.seen.contains(&tracking.source)
        {
            self.seen.insert(tracking.source.clone());
        }
    }

    /// Records the last position of each source, unless the events have brought it.
    pub(super) fn bring(&self, from: &mut UmaDb, to: &HttpClient) -> anyhow::Result<()> {
        for source in self.named.union(&self.seen) {
            let there = from.tracking(source)?;
            let here: Option<u64> = to.call(&("events.tracking", source))?;
            match there {
                None if self.named.contains(source) => {
                    let url = &from.url;
                    bail!("{url} has no tracked position of the source {source:?}");
                }
                Some(position) if here.is_none_or(|here| here < position) => {
                    let tracking = json!({"source": source, "position": position});
                    let _: Value = to.call(&("commit", json!({"tracking": tracking})))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
