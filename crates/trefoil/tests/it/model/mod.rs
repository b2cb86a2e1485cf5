//! The whole semantics of `Database` over a plain list: slow and obvious, the judge of the engine.

mod commit;

use std::collections::{BTreeMap, BTreeSet};

use trefoil::{
    Appended, CategoryInfo, ConsumerGroup, Direction, Error, Event, EventId, Filter, ImportedEvent,
    List, NewEvent, Payload, Query, RemoveBefore, Result, Selection, Source, StartAt, StreamInfo,
    Timestamp, Tracking,
};
use trefoil_core::{category, correlation_category, in_group, stream_group_hash};

pub(crate) use commit::Outcome;

/// Everything that can be known of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) position: u64,
    pub(crate) id: EventId,
    pub(crate) time: Timestamp,
    pub(crate) stream: Option<(String, u64)>,
    pub(crate) event_type: String,
    pub(crate) data: Payload,
    pub(crate) metadata: Option<Vec<u8>>,
    pub(crate) tags: Vec<String>,
    pub(crate) tracking: Option<Tracking>,
    pub(crate) is_redacted: bool,
}

impl Record {
    /// What the engine handed out.
    pub(crate) fn of(event: &Event) -> Self {
        let data = event.data().to_vec();
        Self {
            position: event.position(),
            id: event.id(),
            time: event.time(),
            stream: event
                .stream()
                .map(str::to_owned)
                .zip(event.stream_position()),
            event_type: event.event_type().to_owned(),
            data: if event.data_is_json() {
                Payload::json(data)
            } else {
                Payload::binary(data)
            },
            metadata: event.metadata().map(<[u8]>::to_vec),
            tags: event.tags().map(str::to_owned).collect(),
            tracking: event.tracking(),
            is_redacted: event.is_redacted(),
        }
    }

    fn new(event: &NewEvent, position: u64, stream_position: u64, time: Timestamp) -> Self {
        Self {
            position,
            id: event.id.unwrap_or_default(),
            time,
            stream: event.stream.clone().map(|name| (name, stream_position)),
            event_type: event.event_type.clone(),
            data: event.data.clone(),
            metadata: event.metadata.as_ref().map(|bytes| bytes.to_vec()),
            tags: event.tags.clone(),
            tracking: None,
            is_redacted: false,
        }
    }

    fn tracking(mut self, tracking: Option<Tracking>) -> Self {
        self.tracking = tracking;
        self
    }

    pub(crate) fn stream_name(&self) -> Option<&str> {
        self.stream.as_ref().map(|(name, _)| name.as_str())
    }

    /// Whether all that the client says of an event is so of this one.
    fn is_same(&self, event: &NewEvent) -> bool {
        let sorted = |tags: &[String]| {
            let mut tags = tags.to_vec();
            tags.sort();
            tags
        };
        self.stream_name() == event.stream.as_deref()
            && self.event_type == event.event_type
            && (self.is_redacted
                || self.data.bytes() == event.data.bytes()
                    && self.metadata.as_deref() == event.metadata.as_deref()
                    && sorted(&self.tags) == sorted(&event.tags))
    }

    pub(crate) fn appended(&self) -> Appended {
        let stream_position = self.stream.as_ref().map(|(_, position)| *position);
        Appended {
            id: self.id,
            position: self.position,
            stream_position,
        }
    }

    fn matches(&self, filter: &Filter) -> bool {
        let in_members = |group: ConsumerGroup| {
            let hash = self.stream_name().and_then(stream_group_hash);
            hash.is_some_and(|hash| in_group(hash, group.member, group.size))
        };
        let correlation = || self.metadata.as_deref().and_then(correlation_category);
        self.is_meant_by(&filter.query)
            && filter
                .event_type
                .as_ref()
                .is_none_or(|wanted| *wanted == self.event_type)
            && filter
                .correlation
                .as_ref()
                .is_none_or(|wanted| Some(wanted) == correlation().as_ref())
            && filter.group.is_none_or(in_members)
    }

    /// One of the items has the event's type, or none, and no tag that the event has not.
    fn is_meant_by(&self, query: &Query) -> bool {
        let has_type = |types: &[String]| types.is_empty() || types.contains(&self.event_type);
        let has_tags = |tags: &[String]| tags.iter().all(|tag| self.tags.contains(tag));
        let mut items = query.items.iter();
        query.items.is_empty() || items.any(|item| has_type(&item.types) && has_tags(&item.tags))
    }

    fn is_of(&self, source: &Source) -> bool {
        match source {
            Source::All => true,
            Source::Category(name) => self.stream_name().map(category) == Some(name),
            Source::Stream(name) => self.stream_name() == Some(name),
        }
    }

    fn is_from(&self, from: StartAt, direction: Direction) -> bool {
        let reached = |at: u64, from: u64| match direction {
            Direction::Forwards => at >= from,
            Direction::Backwards => at <= from,
        };
        match from {
            StartAt::Edge => true,
            StartAt::Position(from) => reached(self.position, from),
            StartAt::StreamPosition(from) => self
                .stream
                .as_ref()
                .is_some_and(|(_, at)| reached(*at, from)),
        }
    }
}

/// What one database holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) events: Vec<Record>,
    /// Events that were removed, in no order: their positions, versions and ids are still taken.
    removed: Vec<Record>,
    /// Those that the log has dropped since: only their versions and the head tell of them.
    dropped: Vec<Record>,
    /// The position that was last recorded for each source of tracked positions.
    pub(crate) tracked: BTreeMap<String, u64>,
}

impl Model {
    /// All events that the log has.
    fn all(&self) -> impl Iterator<Item = &Record> {
        self.events.iter().chain(&self.removed)
    }

    /// All events that there ever were.
    fn ever(&self) -> impl Iterator<Item = &Record> {
        self.all().chain(&self.dropped)
    }

    pub(crate) fn head(&self) -> u64 {
        self.ever().map(|event| event.position).max().unwrap_or(0)
    }

    /// Drops what was removed from the log.
    pub(crate) fn drop_removed(&mut self) {
        self.dropped.append(&mut self.removed);
    }

    pub(crate) fn version(&self, stream: &str) -> Option<u64> {
        let places = self.ever().filter_map(|event| event.stream.as_ref());
        let of_stream = places.filter(|(name, _)| name == stream);
        of_stream.map(|(_, position)| *position).max()
    }

    fn with_id(&self, id: EventId) -> Option<&Record> {
        let of_id = self.all().filter(|event| event.id == id);
        of_id.min_by_key(|event| event.position)
    }

    /// Removes events of a stream. Answers how many, or why not.
    pub(crate) fn truncate(
        &mut self,
        stream: &str,
        before: RemoveBefore,
        expected: Option<i64>,
    ) -> Result<u64> {
        let actual = self.version(stream).map_or(-1, |version| version as i64);
        if let Some(expected) = expected.filter(|expected| *expected != actual) {
            return Err(Error::VersionConflict {
                condition: 0,
                stream: stream.to_owned(),
                expected,
                actual,
            });
        }
        let goes = |event: &Record| match (&event.stream, before) {
            (Some((name, at)), RemoveBefore::StreamPosition(first)) => {
                name == stream && *at < first
            }
            (Some((name, _)), RemoveBefore::Position(first)) => {
                name == stream && event.position < first
            }
            (Some((name, _)), RemoveBefore::End) => name == stream,
            (None, _) => false,
        };
        let (gone, kept) = std::mem::take(&mut self.events).into_iter().partition(goes);
        let gone: Vec<Record> = gone;
        let n = gone.len() as u64;
        self.removed.extend(gone);
        self.events = kept;
        Ok(n)
    }

    /// Appends a whole batch or nothing.
    pub(crate) fn import(&mut self, batch: &[ImportedEvent]) -> Result<()> {
        let mut after = self.clone();
        batch
            .iter()
            .try_for_each(|imported| after.import_one(imported))?;
        *self = after;
        Ok(())
    }

    fn import_one(&mut self, imported: &ImportedEvent) -> Result<()> {
        let (event, position) = (&imported.event, imported.position);
        let refused = |text: &str| Err(Error::ImportRefused(text.to_owned()));
        if self.all().any(|known| known.position == position) {
            return Err(Error::PositionExists(position));
        }
        if position <= self.head() {
            return refused("the global position is below the head");
        }
        let known = event.id.and_then(|id| self.with_id(id));
        if let Some(known) = known.filter(|_| event.stream.is_some()) {
            return Err(Error::DuplicateId {
                id: known.id,
                position: known.position,
            });
        }
        let version = event
            .stream
            .as_deref()
            .and_then(|stream| self.version(stream));
        if version.is_some_and(|version| imported.stream_position <= version) {
            return refused("the stream position is not after the stream's last");
        }
        let at = imported.stream_position;
        let record = Record::new(event, position, at, imported.time);
        self.events.push(record.tracking(imported.tracking.clone()));
        if let Some(Tracking { source, position }) = imported.tracking.clone() {
            self.tracked.insert(source, position);
        }
        Ok(())
    }

    pub(crate) fn read(&self, read: &Selection) -> Vec<Record> {
        let selected = self.events.iter().filter(|event| {
            read.as_of.is_none_or(|as_of| event.position <= as_of)
                && event.is_of(&read.source)
                && event.is_from(read.from, read.direction)
                && event.matches(&read.filter)
        });
        match read.direction {
            Direction::Forwards => selected.take(read.limit).cloned().collect(),
            Direction::Backwards => selected.rev().take(read.limit).cloned().collect(),
        }
    }

    pub(crate) fn last(&self, stream: &str, event_type: Option<&str>) -> Option<Record> {
        let mut read = Selection::stream(stream).backwards().limit(1);
        read.filter.event_type = event_type.map(str::to_owned);
        self.read(&read).pop()
    }

    pub(crate) fn position_at(&self, time: Timestamp) -> Option<u64> {
        self.events
            .iter()
            .find(|event| event.time >= time)
            .map(|event| event.position)
    }

    pub(crate) fn streams(&self, list: &List) -> Vec<StreamInfo> {
        let mut found = BTreeMap::<&str, StreamInfo>::new();
        for event in &self.events {
            let Some((name, version)) = &event.stream else {
                continue;
            };
            let events = found.get(name.as_str()).map_or(0, |info| info.events) + 1;
            let info = StreamInfo {
                stream: name.clone(),
                version: *version,
                events,
                last_position: event.position,
                last_activity: event.time,
            };
            found.insert(name, info);
        }
        let all = found.into_values();
        all.filter(|info| is_listed(list, &info.stream))
            .take(list.limit)
            .collect()
    }

    pub(crate) fn categories(&self, list: &List) -> Vec<CategoryInfo> {
        let mut found = BTreeMap::<&str, (CategoryInfo, BTreeSet<&str>)>::new();
        for event in &self.events {
            let Some(stream) = event.stream_name() else {
                continue;
            };
            let name = category(stream);
            let (info, streams) = found.entry(name).or_insert_with(|| {
                let info = CategoryInfo {
                    category: name.to_owned(),
                    events: 0,
                    streams: 0,
                    last_position: 0,
                    last_activity: Timestamp::default(),
                };
                (info, BTreeSet::new())
            });
            streams.insert(stream);
            info.events += 1;
            info.streams = streams.len() as u64;
            info.last_position = event.position;
            info.last_activity = event.time;
        }
        let all = found.into_values().map(|(info, _)| info);
        all.filter(|info| is_listed(list, &info.category))
            .take(list.limit)
            .collect()
    }
}

fn is_listed(list: &List, name: &str) -> bool {
    name.starts_with(&list.prefix) && (list.after.is_empty() || name > list.after.as_str())
}
