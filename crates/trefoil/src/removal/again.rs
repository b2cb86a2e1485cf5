//! Redactions that others than the namespace know: an archive follows them, and what was restored is
//! redacted again.
//!
//! A log that was put together from a backup may have an event as it was before it was redacted, also if
//! the state of that backup says that it is: parts of the log are shared with older backups.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trefoil_core::{Event, EventId, Result};

use super::redaction::{Redaction, all_redactions};
use crate::Database;
use crate::database::engine::Engine;
use crate::read::fetch_all;
use crate::state::{DurableView, StateStore};
use crate::write::Work;

/// How many events are looked at together, and redacted by one commit.
const TOGETHER: usize = 512;

/// Redactions by the position and the id of the event.
type WantedRedactions = BTreeMap<(u64, EventId), Redaction>;

/// That an event was redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownRedaction {
    /// Where the event stands.
    pub position: u64,
    /// Its id. What has another one at this position is another event.
    #[serde(with = "id_text")]
    pub id: EventId,
    /// When it was redacted, in milliseconds since 1970.
    pub time: u64,
    /// Whether its tags are gone as well.
    pub drops_tags: bool,
}

/// Ids as text.
mod id_text {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use trefoil_core::{EventId, parse_event_id};

    pub(super) fn serialize<S: Serializer>(id: &EventId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<EventId, D::Error> {
        let text = String::deserialize(from)?;
        parse_event_id(&text).ok_or_else(|| D::Error::custom("this is no id of an event"))
    }
}

impl KnownRedaction {
    fn new(position: u64, redaction: Redaction) -> Self {
        let Redaction {
            time,
            drops_tags,
            id,
        } = redaction;
        Self {
            position,
            id,
            time,
            drops_tags,
        }
    }

    fn redaction(self) -> Redaction {
        Redaction {
            time: self.time,
            drops_tags: self.drops_tags,
            id: self.id,
        }
    }

    /// Returns the bytes of what stays of an event that has its position, if that is the one, and it is
    /// not the stub already.
    pub(crate) fn stub(self, event: &Event) -> Option<Bytes> {
        let stub = self.redaction().stub(event);
        let is_stub = Event::decode(self.position, stub.clone()).as_ref() == Some(event);
        (event.id() == self.id && !is_stub).then_some(stub)
    }
}

/// Returns all redactions of a namespace, in the order of their positions.
pub(crate) fn known_redactions(store: &StateStore) -> Result<Vec<KnownRedaction>> {
    let all = all_redactions(&DurableView::new(store))?;
    let known = all.into_iter();
    Ok(known
        .map(|(position, redaction)| KnownRedaction::new(position, redaction))
        .collect())
}

impl Database {
    /// Returns all redactions, in the order of their positions.
    pub fn redactions(&self) -> Result<Vec<KnownRedaction>> {
        self.ask(|engine| known_redactions(&engine.store))
    }

    /// Redacts events again which the log has as they were, or of which the namespace does not know that
    /// they are redacted: its own redactions, and those that others know. Returns of how many events it
    /// has removed something. When it returns, their bytes are gone. Blocks the thread.
    pub(crate) fn redact_again(&self, known: &[KnownRedaction]) -> Result<u64> {
        let engine = self.engine()?;
        let own = all_redactions(&DurableView::new(&engine.store))?;
        let mut wanted = WantedRedactions::new();
        let own_redactions = own.iter().map(|(position, one)| (*position, *one));
        let known = known.iter().map(|one| (one.position, one.redaction()));
        for (position, redaction) in own_redactions.chain(known) {
            let wanted = wanted.entry((position, redaction.id)).or_insert(redaction);
            wanted.drops_tags |= redaction.drops_tags;
        }
        let head = engine.writer.head();
        let mut positions: Vec<u64> = wanted.keys().map(|(position, _)| *position).collect();
        positions.dedup();
        positions.retain(|position| *position <= head);
        let mut n_redacted = 0;
        for positions in positions.chunks(TOGETHER) {
            let (n_changed, works) = missed(&engine, positions, &wanted, &own)?;
            n_redacted += n_changed;
            if !works.is_empty() {
                engine.write(Work::RedactAgain(works))?;
            }
        }
        engine.finish_redactions()?;
        Ok(n_redacted)
    }
}

/// Returns which redactions of these positions are to be made again, and how many of them change an
/// event.
fn missed(
    engine: &Engine,
    positions: &[u64],
    wanted: &WantedRedactions,
    own: &BTreeMap<u64, Redaction>,
) -> Result<(u64, Vec<(u64, Redaction)>)> {
    let (mut n_changed, mut works) = (0, Vec::new());
    for event in fetch_all(engine.storage.as_ref(), positions)? {
        let position = event.position();
        let Some(redaction) = wanted.get(&(position, event.id())) else {
            continue;
        };
        let known = KnownRedaction::new(position, *redaction);
        let is_changed = known.stub(&event).is_some();
        n_changed += u64::from(is_changed);
        if is_changed || own.get(&position) != Some(redaction) {
            works.push((position, *redaction));
        }
    }
    Ok((n_changed, works))
}
