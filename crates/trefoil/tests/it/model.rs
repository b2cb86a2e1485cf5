//! The whole semantics of `Database` over a plain list: slow and obvious, the judge of the engine.

use std::collections::{BTreeMap, BTreeSet};

use trefoil::{
    Appended, CategoryInfo, Commit, Condition, ConsumerGroup, Direction, Error, Event, EventId,
    Filter, From, ImportedEvent, List, NewEvent, Payload, Read, Result, Source, StreamInfo,
    Timestamp,
};
use trefoil_core::{category, correlation_category, in_group, stream_group_hash};

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
}

impl Record {
    /// What the engine handed out.
    pub(crate) fn of(event: &Event) -> Self {
        let data = event.data().to_vec().into();
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
                Payload::Json(data)
            } else {
                Payload::Binary(data)
            },
            metadata: event.metadata().map(<[u8]>::to_vec),
            tags: event.tags().map(str::to_owned).collect(),
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
        }
    }

    pub(crate) fn stream_name(&self) -> Option<&str> {
        self.stream.as_ref().map(|(name, _)| name.as_str())
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
        filter
            .event_type
            .as_ref()
            .is_none_or(|wanted| *wanted == self.event_type)
            && filter
                .correlation
                .as_ref()
                .is_none_or(|wanted| Some(wanted) == correlation().as_ref())
            && filter.group.is_none_or(in_members)
    }

    fn is_of(&self, source: &Source) -> bool {
        match source {
            Source::All => true,
            Source::Category(name) => self.stream_name().map(category) == Some(name),
            Source::Stream(name) => self.stream_name() == Some(name),
        }
    }

    fn is_from(&self, from: From, direction: Direction) -> bool {
        let reached = |at: u64, from: u64| match direction {
            Direction::Forwards => at >= from,
            Direction::Backwards => at <= from,
        };
        match from {
            From::Edge => true,
            From::Position(from) => reached(self.position, from),
            From::StreamPosition(from) => self
                .stream
                .as_ref()
                .is_some_and(|(_, at)| reached(*at, from)),
        }
    }
}

/// What a commit must lead to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// These are appended; ids and times that the engine makes are still missing.
    Fresh(Vec<Record>),
    /// Nothing is written: the answer is the one of the first time.
    Replayed(Vec<Appended>),
}

/// The events of one database.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) events: Vec<Record>,
}

impl Model {
    pub(crate) fn head(&self) -> u64 {
        self.events.last().map_or(0, |event| event.position)
    }

    pub(crate) fn version(&self, stream: &str) -> Option<u64> {
        let mut newest = self
            .events
            .iter()
            .rev()
            .filter_map(|event| event.stream.as_ref());
        newest
            .find(|(name, _)| name == stream)
            .map(|(_, position)| *position)
    }

    fn with_id(&self, id: EventId) -> Option<&Record> {
        self.events.iter().find(|event| event.id == id)
    }

    /// Decides a commit without applying it: a repetition first, then conditions, then ids.
    pub(crate) fn decide(&self, commit: &Commit, data_bytes_max: usize) -> Result<Outcome> {
        commit.validate(data_bytes_max)?;
        if let Some(appended) = self.replay(commit) {
            return Ok(Outcome::Replayed(appended));
        }
        for (index, condition) in commit.conditions.iter().enumerate() {
            self.check(index, condition)?;
        }
        self.check_ids(commit)?;
        Ok(Outcome::Fresh(self.place(commit)))
    }

    /// Every id is known, in the streams the commit names and in the same order.
    fn replay(&self, commit: &Commit) -> Option<Vec<Appended>> {
        let mut appended: Vec<Appended> = Vec::new();
        for event in &commit.events {
            let known = self.with_id(event.id?)?;
            let in_order = appended
                .last()
                .is_none_or(|before| before.position < known.position);
            if known.stream_name() != event.stream.as_deref() || !in_order {
                return None;
            }
            appended.push(known.appended());
        }
        Some(appended)
    }

    fn check(&self, index: usize, condition: &Condition) -> Result<()> {
        let Condition::StreamVersion { stream, expected } = condition else {
            panic!("the model knows no condition {condition:?}");
        };
        let actual = self.version(stream).map_or(-1, |version| version as i64);
        if actual == *expected {
            return Ok(());
        }
        let (stream, expected) = (stream.clone(), *expected);
        Err(Error::VersionConflict {
            condition: index,
            stream,
            expected,
            actual,
        })
    }

    fn check_ids(&self, commit: &Commit) -> Result<()> {
        let mut seen = BTreeMap::new();
        for (event, position) in commit.events.iter().zip(self.head() + 1..) {
            let Some(id) = event.id else { continue };
            let taken = self.with_id(id).map(|known| known.position);
            if let Some(position) = taken.or(seen.get(&id).copied()) {
                return Err(Error::DuplicateId { id, position });
            }
            seen.insert(id, position);
        }
        Ok(())
    }

    fn place(&self, commit: &Commit) -> Vec<Record> {
        let mut next = BTreeMap::<&str, u64>::new();
        let place = |(event, position): (_, u64)| {
            let event: &NewEvent = event;
            let mut at = 0;
            if let Some(stream) = event.stream.as_deref() {
                let begin = || self.version(stream).map_or(0, |version| version + 1);
                let next = next.entry(stream).or_insert_with(begin);
                at = *next;
                *next += 1;
            }
            Record::new(event, position, at, Timestamp::default())
        };
        commit
            .events
            .iter()
            .zip(self.head() + 1..)
            .map(place)
            .collect()
    }

    /// Appends a whole batch or nothing.
    pub(crate) fn import(&mut self, batch: &[ImportedEvent]) -> Result<()> {
        let before = self.events.len();
        for imported in batch {
            if let Err(error) = self.import_one(imported) {
                self.events.truncate(before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn import_one(&mut self, imported: &ImportedEvent) -> Result<()> {
        let (event, position) = (&imported.event, imported.position);
        let refused = |text: &str| Err(Error::ImportRefused(text.to_owned()));
        if self.events.iter().any(|known| known.position == position) {
            return Err(Error::PositionExists(position));
        }
        if position <= self.head() {
            return refused("the global position is below the head");
        }
        if let Some(known) = event.id.and_then(|id| self.with_id(id)) {
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
        self.events.push(Record::new(
            event,
            position,
            imported.stream_position,
            imported.time,
        ));
        Ok(())
    }

    pub(crate) fn read(&self, read: &Read) -> Vec<Record> {
        let selected = self.events.iter().filter(|event| {
            event.is_of(&read.source)
                && event.is_from(read.from, read.direction)
                && event.matches(&read.filter)
        });
        match read.direction {
            Direction::Forwards => selected.take(read.limit).cloned().collect(),
            Direction::Backwards => selected.rev().take(read.limit).cloned().collect(),
        }
    }

    pub(crate) fn last(&self, stream: &str, event_type: Option<&str>) -> Option<Record> {
        let mut read = Read::stream(stream).backwards().limit(1);
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
