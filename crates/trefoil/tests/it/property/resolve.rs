//! Turns descriptions of operations into real ones, with what the model holds at that moment.

use trefoil::{
    Commit, Condition, ConsumerGroup, EventId, ImportedEvent, List, NewEvent, Payload, Query,
    QueryItem, Selection, Source, StartAt, Timestamp, Tracking,
};
use trefoil_core::make_event_id;

use super::driver::Driver;
use super::ops::*;

impl Driver {
    fn id_of(&self, spec: &IdSpec) -> Option<EventId> {
        match spec {
            IdSpec::Made => None,
            IdSpec::Client(number) => Some(EventId::from_u128(u128::from(*number) << 64 | 0xc11e)),
            IdSpec::Existing(which) => self.existing(*which).map(|event| event.id),
            IdSpec::Lookalike(position) => Some(make_event_id(1, 1, u64::from(*position))),
        }
    }

    fn event_of(&self, spec: &EventSpec) -> NewEvent {
        let data = match spec.data {
            DataSpec::Json(length) => {
                let text = "x".repeat(usize::from(length));
                Payload::json(format!(r#"{{"n": 1.0, "text":"{text}"}}"#))
            }
            DataSpec::Binary(length) => Payload::binary(vec![0xfe; usize::from(length)]),
            DataSpec::Broken => Payload::json("{"),
        };
        let mut event = NewEvent::of(TYPES[spec.event_type], data)
            .with_tags(spec.tags.iter().map(|&tag| TAGS[tag]));
        event.id = self.id_of(&spec.id);
        event.stream = spec.stream.map(|index| STREAMS[index].to_owned());
        event.metadata = spec.metadata.map(|index| METADATA[index].into());
        event
    }

    pub(super) fn commit_of(&self, spec: &CommitSpec) -> Commit {
        let mut commit = Commit::new(spec.events.iter().map(|spec| self.event_of(spec)));
        commit.conditions = self.conditions_of(&spec.conditions);
        commit.tracking = spec.tracking.map(|(source, offset)| {
            let recorded = self.model.tracked.get(SOURCES[source]).copied();
            let position = recorded.unwrap_or(7).saturating_add_signed(offset);
            Tracking::new(SOURCES[source], position)
        });
        match spec.has_repeatable_ids {
            true => commit.with_repeatable_ids(),
            false => commit,
        }
    }

    pub(super) fn conditions_of(&self, specs: &[ConditionSpec]) -> Vec<Condition> {
        specs.iter().map(|spec| self.condition_of(spec)).collect()
    }

    fn condition_of(&self, spec: &ConditionSpec) -> Condition {
        match spec {
            ConditionSpec::Version { stream, offset } => {
                let stream = STREAMS[*stream].to_owned();
                let version = self.model.version(&stream);
                let version = version.map_or(-1, |version| version as i64);
                let expected = version + offset;
                Condition::StreamVersion { stream, expected }
            }
            ConditionSpec::NoMatch {
                source,
                query,
                after,
            } => Condition::NoMatch {
                source: source_of(source),
                query: query_of(query),
                after: match *after {
                    AfterSpec::Nothing => None,
                    AfterSpec::Near(which, offset) => Some(self.near(which, offset)),
                    AfterSpec::Head(offset) => {
                        Some(self.model.head().saturating_add_signed(offset))
                    }
                },
            },
        }
    }

    /// The position of an event that is there, plus an offset.
    pub(super) fn near(&self, which: usize, offset: i64) -> u64 {
        let near = self.existing(which).map_or(0, |event| event.position);
        near.saturating_add_signed(offset)
    }

    /// A batch that continues what is there, with its one fault put in last; `None` if there is
    /// nothing to be at fault with.
    pub(super) fn batch_of(
        &self,
        specs: &[ImportSpec],
        fault: &Fault,
    ) -> Option<Vec<ImportedEvent>> {
        let mut after = self.model.clone();
        let mut batch = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let mut event = self.event_of(&EventSpec {
                data: DataSpec::Json(9),
                ..spec.event.clone()
            });
            let position = after.head() + 1 + spec.position_gap;
            event.id = Some(EventId::from_u128(
                0x1e << 64 | u128::from(position) << 8 | index as u128,
            ));
            let version = event
                .stream
                .as_deref()
                .and_then(|stream| after.version(stream));
            let imported = ImportedEvent {
                is_redacted: false,
                tracking: spec
                    .tracking
                    .map(|(source, position)| Tracking::new(SOURCES[source], position)),
                stream_position: version.map_or(0, |version| version + 1) + spec.stream_gap,
                position,
                time: Timestamp(1_700_000_000_000_000_000 + spec.seconds * 1_000_000_000),
                event,
            };
            if after.import(std::slice::from_ref(&imported)).is_err() {
                // The id was imported before a `clear`-less reopen: leave this one out.
                continue;
            }
            batch.push(imported);
        }
        self.put_fault(&mut batch, fault)?;
        Some(batch)
    }

    fn put_fault(&self, batch: &mut [ImportedEvent], fault: &Fault) -> Option<()> {
        let n = batch.len();
        let last = batch.last_mut()?;
        match fault {
            Fault::Nothing => {}
            Fault::PositionTaken(which) => last.position = self.existing(*which)?.position,
            Fault::PositionInGap(which) => {
                let position = self.existing(*which)?.position.checked_sub(1)?;
                last.position = position.max(1);
            }
            Fault::NotAscending if n > 1 => batch.swap(n - 2, n - 1),
            Fault::NotAscending => return None,
            Fault::StreamPositionTaken => {
                let stream = last.event.stream.as_deref()?;
                last.stream_position = self.model.version(stream)?;
            }
            Fault::DuplicateId(which) => last.event.id = Some(self.existing(*which)?.id),
        }
        Some(())
    }

    pub(super) fn read_of(&self, spec: &ReadSpec) -> Selection {
        let mut read = Selection::query(query_of(&spec.query));
        read.source = source_of(&spec.source);
        read.from = match spec.from {
            FromSpec::Edge => StartAt::Edge,
            FromSpec::Near(which, offset) => StartAt::Position(self.near(which, offset)),
            FromSpec::Number(number) if matches!(read.source, Source::Stream(_)) => {
                StartAt::StreamPosition(number)
            }
            FromSpec::Number(number) => StartAt::Position(number),
        };
        if spec.backwards {
            read = read.backwards();
        }
        read.limit = spec.limit;
        read.as_of = spec.as_of.map(|(which, offset)| self.near(which, offset));
        read.filter.event_type = spec.event_type.map(|index| TYPES[index].to_owned());
        read.filter.correlation = spec.correlation.map(|index| CORRELATIONS[index].to_owned());
        read.filter.group = spec
            .group
            .map(|(member, size)| ConsumerGroup { member, size });
        read
    }
}

fn source_of(spec: &SourceSpec) -> Source {
    match spec {
        SourceSpec::All => Source::All,
        SourceSpec::Category(index) => Source::Category(CATEGORIES[*index].to_owned()),
        SourceSpec::Stream(index) => Source::Stream(STREAMS[*index].to_owned()),
    }
}

fn query_of(spec: &QuerySpec) -> Query {
    let named = |names: &[&str], numbers: &[usize]| {
        let name = |number: &usize| names.get(*number).copied().unwrap_or(ABSENT).to_owned();
        numbers.iter().map(name).collect()
    };
    let item = |(types, tags): &(Vec<usize>, Vec<usize>)| QueryItem {
        types: named(&TYPES, types),
        tags: named(&TAGS, tags),
    };
    spec.iter().map(item).collect()
}

pub(super) fn list_of(spec: &ListSpec) -> List {
    List::new(spec.limit)
        .with_prefix(spec.prefix.to_owned())
        .after(spec.after.to_owned())
}
