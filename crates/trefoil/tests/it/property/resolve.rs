//! Turns descriptions of operations into real ones, with what the model holds at that moment.

use trefoil::{
    Commit, ConsumerGroup, EventId, From, ImportedEvent, List, NewEvent, Payload, Read, Source,
    Timestamp,
};
use trefoil_core::make_event_id;

use super::driver::Driver;
use super::ops::*;
use crate::model::Model;

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
                Payload::Json(format!(r#"{{"n": 1.0, "text":"{text}"}}"#).into())
            }
            DataSpec::Binary(length) => Payload::Binary(vec![0xfe; usize::from(length)].into()),
            DataSpec::Broken => Payload::Json("{".into()),
        };
        NewEvent {
            id: self.id_of(&spec.id),
            stream: spec.stream.map(|index| STREAMS[index].to_owned()),
            event_type: TYPES[spec.event_type].to_owned(),
            data,
            metadata: spec.metadata.map(|index| METADATA[index].into()),
            tags: (0..spec.tags)
                .map(|number| format!("tag:{number}"))
                .collect(),
        }
    }

    pub(super) fn commit_of(&self, events: &[EventSpec], conditions: &[ConditionSpec]) -> Commit {
        let mut commit = Commit::new(events.iter().map(|spec| self.event_of(spec)));
        for condition in conditions {
            let stream = STREAMS[condition.stream];
            let version = self
                .model
                .version(stream)
                .map_or(-1, |version| version as i64);
            commit = commit.expect_version(stream, version + condition.offset);
        }
        commit
    }

    /// A batch that continues what is there, with its one fault put in last; `None` if there is
    /// nothing to be at fault with.
    pub(super) fn batch_of(
        &self,
        specs: &[ImportSpec],
        fault: &Fault,
    ) -> Option<Vec<ImportedEvent>> {
        let mut after = Model {
            events: self.model.events.clone(),
        };
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

    pub(super) fn read_of(&self, spec: &ReadSpec) -> Read {
        let mut read = match &spec.source {
            SourceSpec::All => Read::all(),
            SourceSpec::Category(index) => Read::category(CATEGORIES[*index]),
            SourceSpec::Stream(index) => Read::stream(STREAMS[*index]),
        };
        read.from = match spec.from {
            FromSpec::Edge => From::Edge,
            FromSpec::Near(which, offset) => {
                let near = self.existing(which).map_or(0, |event| event.position);
                From::Position(near.saturating_add_signed(offset))
            }
            FromSpec::Number(number) if matches!(read.source, Source::Stream(_)) => {
                From::StreamPosition(number)
            }
            FromSpec::Number(number) => From::Position(number),
        };
        if spec.backwards {
            read = read.backwards();
        }
        read.limit = spec.limit;
        read.filter.event_type = spec.event_type.map(|index| TYPES[index].to_owned());
        read.filter.correlation = spec.correlation.map(|index| CORRELATIONS[index].to_owned());
        read.filter.group = spec
            .group
            .map(|(member, size)| ConsumerGroup { member, size });
        read
    }
}

pub(super) fn list_of(spec: &ListSpec) -> List {
    List {
        prefix: spec.prefix.to_owned(),
        after: spec.after.to_owned(),
        limit: spec.limit,
    }
}
