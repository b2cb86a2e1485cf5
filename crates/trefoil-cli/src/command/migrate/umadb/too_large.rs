//! Events that are over a limit of Trefoil: counted before anything is written.

use std::fmt::{self, Display, Formatter};

use trefoil::limits;
use trefoil_grpc::{Event, SequencedEvent};

use super::line;

/// How many positions are shown for each limit.
const POSITIONS_SHOWN: usize = 5;

/// A limit on an event.
struct Limit {
    /// What is limited, as the report says it after the number.
    what: &'static str,
    max: usize,
    /// Returns how much of it an event has.
    measure: fn(&Event) -> usize,
}

/// The limits, in the order in which the server checks them. UmaDB's own limit on the source of a
/// tracked position is the same as ours.
const LIMITS: [Limit; 6] = [
    Limit {
        what: "bytes of type",
        max: limits::EVENT_TYPE_BYTES_MAX,
        measure: |event| event.event_type.len(),
    },
    Limit {
        what: "tags",
        max: limits::TAGS_PER_EVENT_MAX,
        measure: |event| event.tags.len(),
    },
    Limit {
        what: "bytes of tags",
        max: limits::TAGS_BYTES_PER_EVENT_MAX,
        measure: |event| event.tags.iter().map(String::len).sum(),
    },
    Limit {
        what: "bytes in one tag",
        max: limits::TAG_BYTES_MAX,
        measure: |event| event.tags.iter().map(String::len).max().unwrap_or(0),
    },
    Limit {
        what: "bytes of data",
        max: limits::EVENT_DATA_BYTES_MAX,
        measure: |event| event.data.len(),
    },
    Limit {
        what: "bytes of metadata as JSON",
        max: limits::EVENT_METADATA_BYTES_MAX,
        measure: line::metadata_bytes,
    },
];

/// Whether an event is over a limit.
pub(super) fn is_too_large(event: &Event) -> bool {
    exceeded(event).is_some()
}

/// The index of the first limit that an event is over.
fn exceeded(event: &Event) -> Option<usize> {
    LIMITS
        .iter()
        .position(|limit| (limit.measure)(event) > limit.max)
}

/// The events that are over each limit.
#[derive(Debug, Default)]
pub(super) struct TooLarge {
    excesses: [Excess; LIMITS.len()],
}

/// The events that are over one limit.
#[derive(Debug, Default, Clone)]
struct Excess {
    count: u64,
    /// The positions of the first ones.
    first: Vec<u64>,
}

impl TooLarge {
    /// Counts an event if it is over a limit.
    pub(super) fn note(&mut self, sequenced: &SequencedEvent) {
        let Some(index) = sequenced.event.as_ref().and_then(exceeded) else {
            return;
        };
        let excess = &mut self.excesses[index];
        excess.count += 1;
        if excess.first.len() < POSITIONS_SHOWN {
            excess.first.push(sequenced.position);
        }
    }

    /// Returns the number of events that are over a limit.
    pub(super) fn count(&self) -> u64 {
        self.excesses.iter().map(|excess| excess.count).sum()
    }
}

/// A line for each limit: how many events are over it, and where the first ones are.
impl Display for TooLarge {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let over = LIMITS.iter().zip(&self.excesses);
        for (limit, excess) in over.filter(|(_, excess)| excess.count > 0) {
            let Limit { what, max, .. } = limit;
            let first: Vec<String> = excess.first.iter().map(u64::to_string).collect();
            let is_all = excess.first.len() as u64 == excess.count;
            let more = if is_all { "" } else { ", ..." };
            let (count, first) = (excess.count, first.join(", "));
            writeln!(
                formatter,
                "  {count} with more than {max} {what}: position {first}{more}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use trefoil::{NewEvent, Payload};
    use trefoil_grpc::MetadataEntry;

    use super::*;

    /// Whether the server would take the event.
    fn is_valid(event: &Event) -> bool {
        let data = Payload::binary(event.data.clone());
        let mut new = NewEvent::without_stream(event.event_type.clone(), "").with_data(data);
        new.tags = event.tags.clone();
        if let [entry] = &event.metadata[..] {
            new.metadata = Some(format!(r#"{{"{}":"{}"}}"#, entry.key, entry.value).into());
        }
        new.validate(limits::EVENT_DATA_BYTES_MAX).is_ok()
    }

    /// An event that has this much of what a limit is about.
    fn with(limit: usize, amount: usize) -> Event {
        let mut event = Event::default();
        match LIMITS[limit].what {
            "bytes of type" => event.event_type = "t".repeat(amount),
            "tags" => event.tags = vec!["t".to_owned(); amount],
            "bytes of tags" => {
                event.tags =
                    vec!["t".repeat(limits::TAG_BYTES_MAX); amount / limits::TAG_BYTES_MAX];
                event.tags.push("t".repeat(amount % limits::TAG_BYTES_MAX));
            }
            "bytes in one tag" => event.tags = vec!["t".repeat(amount)],
            "bytes of data" => event.data = vec![b'x'; amount].into(),
            "bytes of metadata as JSON" => {
                let value = "m".repeat(amount - r#"{"k":""}"#.len());
                let key = "k".to_owned();
                event.metadata = vec![MetadataEntry { key, value }];
            }
            other => panic!("{other} is not tested"),
        }
        event
    }

    #[test]
    fn what_is_over_a_limit_is_what_the_server_refuses() {
        for (index, limit) in LIMITS.iter().enumerate() {
            let (most, more) = (with(index, limit.max), with(index, limit.max + 1));
            assert!(is_valid(&most) && !is_too_large(&most), "{}", limit.what);
            assert!(!is_valid(&more), "{}", limit.what);
            assert_eq!(exceeded(&more), Some(index));
        }
    }

    #[test]
    fn the_first_positions_are_shown_for_each_limit() {
        let mut found = TooLarge::default();
        for position in 1..=9 {
            let index = if position == 4 { 1 } else { 0 };
            let amount = LIMITS[index].max + usize::from(position != 5);
            found.note(&SequencedEvent {
                position,
                event: Some(with(index, amount)),
                ..SequencedEvent::default()
            });
        }
        assert_eq!(found.count(), 8);
        assert_eq!(
            found.to_string(),
            "  7 with more than 4096 bytes of type: position 1, 2, 3, 6, 7, ...\n  \
             1 with more than 2048 tags: position 4\n"
        );
    }
}
