//! Applies operations to a database and to the model, and compares every answer.

use proptest::test_runner::TestCaseError;
use trefoil::{
    Commit, Database, Direction, Error, List, NewEvent, Options, Payload, QueryItem, RemoveBefore,
    Result, Selection, Subscription, Timestamp,
};

use super::ops::*;
use super::resolve::list_of;
use crate::model::{Model, Record};

pub(super) type Check<T = ()> = std::result::Result<T, TestCaseError>;

/// A subscription and what it must still deliver: the events that `read` selects.
pub(super) struct Following {
    pub(super) subscription: Subscription,
    pub(super) read: Selection,
}

/// Opens the database under test, for the first time or again.
pub(crate) type Open = Box<dyn Fn(&Options) -> Result<Database>>;

/// A database under test beside the model of what it must hold.
pub(crate) struct Driver {
    open: Open,
    pub(super) options: Options,
    pub(super) database: Database,
    pub(super) model: Model,
    /// Commits as they were answered, with all ids filled in.
    pub(super) answered: Vec<Commit>,
    pub(super) following: Vec<Following>,
    /// The newest time the server has assigned.
    pub(super) clock: Timestamp,
    /// The commit number last answered, unless something else may have used one since.
    pub(super) commit_number: Option<u64>,
    /// Whether the database may commit something by itself.
    pub(super) commits_itself: bool,
}

/// Compares and names what differs.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the calls read like sentences"
)]
pub(super) fn same<T: PartialEq + std::fmt::Debug>(what: &str, actual: T, expected: T) -> Check {
    if actual == expected {
        return Ok(());
    }
    let text = format!("{what}\n  database: {actual:?}\n  model:    {expected:?}");
    Err(TestCaseError::fail(text))
}

/// What of an error is promised: its kind and its numbers, not its text.
pub(super) fn kind(error: &Error) -> String {
    match error {
        Error::Invalid(_) => "Invalid".to_owned(),
        Error::ImportRefused(_) => "ImportRefused".to_owned(),
        Error::ImportStopped { error, .. } => kind(error),
        other => format!("{other:?}"),
    }
}

impl Driver {
    pub(crate) fn new(open: Open, options: Options) -> Self {
        let database = open(&options).unwrap();
        Self {
            open,
            options,
            database,
            model: Model::default(),
            answered: Vec::new(),
            following: Vec::new(),
            clock: Timestamp(i64::MIN),
            commit_number: None,
            commits_itself: false,
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) -> Check {
        match op {
            Op::Commit(spec) => self.commit(self.commit_of(spec)),
            Op::Together(specs) => {
                self.commit_together(specs.iter().map(|spec| self.commit_of(spec)).collect())
            }
            Op::Check(conditions) => self.check(conditions),
            Op::Tracking { source } => self.tracking(SOURCES[*source]),
            Op::Resend { which, how } => self.resend(*which, how),
            Op::Import { events, fault } => self.import(events, fault),
            Op::Remove {
                stream,
                before,
                version,
            } => self.remove(STREAMS[*stream], before, *version),
            Op::Redact { event, drops_tags } => self.redact(*event, *drops_tags),
            Op::Read(spec) => self.read(&self.read_of(spec)),
            Op::Pages { read, limit, bytes } => {
                self.read_pages(&self.read_of(read), *limit, *bytes)
            }
            Op::Last { stream, event_type } => {
                let event_type = event_type.map(|index| TYPES[index]);
                let actual = self.ok("last", self.database.last(STREAMS[*stream], event_type))?;
                let expected = self.model.last(STREAMS[*stream], event_type);
                same("last", actual.as_ref().map(Record::of), expected)
            }
            Op::Version { stream } => {
                let actual = self.ok("version", self.database.version(STREAMS[*stream]))?;
                same("version", actual, self.model.version(STREAMS[*stream]))
            }
            Op::Streams(spec) => {
                let list = list_of(spec);
                let actual = self.ok("streams", self.database.streams(&list))?;
                same("streams", actual, self.model.streams(&list))
            }
            Op::Categories(spec) => {
                let list = list_of(spec);
                let actual = self.ok("categories", self.database.categories(&list))?;
                same("categories", actual, self.model.categories(&list))
            }
            Op::Info => self.info(),
            Op::PositionAt { event, offset } => {
                let near = self.existing(*event).map_or(0, |event| event.time.0);
                let time = Timestamp(near + offset);
                let actual = self.ok("position_at", self.database.position_at(time))?;
                same("position_at", actual, self.model.position_at(time))
            }
            Op::Subscribe(spec) => {
                let mut read = self.read_of(spec);
                (read.limit, read.direction) = (usize::MAX, Direction::Forwards);
                read.as_of = None;
                let subscription = self.database.subscribe(read.clone());
                self.following.push(Following { subscription, read });
                Ok(())
            }
            Op::Poll { which } => self.poll(*which),
            Op::Clear => self.clear(),
            Op::Checkpoint => self.ok("checkpoint", self.database.checkpoint()),
            Op::Compact => {
                self.model.drop_removed();
                self.commit_number = None;
                self.ok("compact", self.database.compact())
            }
            Op::Reopen => self.reopen(),
        }
    }

    /// Everything that is there, in both directions, and what every subscription still owes.
    pub(crate) fn finish(&mut self) -> Check {
        while !self.following.is_empty() {
            self.poll(0)?;
            self.following.remove(0);
        }
        self.reopen()?;
        self.info()?;
        for source in SOURCES {
            self.tracking(source)?;
        }
        self.read(&Selection::all())?;
        for tag in TAGS {
            self.read(&Selection::query(QueryItem::any().tagged(tag).into()).backwards())?;
        }
        for stream in STREAMS {
            self.read(&Selection::stream(stream).backwards())?;
        }
        for category in CATEGORIES {
            self.read(&Selection::category(category).backwards())?;
        }
        let everything = List::new(usize::MAX);
        let actual = self.ok("streams", self.database.streams(&everything))?;
        same("streams", actual, self.model.streams(&everything))?;
        let actual = self.ok("categories", self.database.categories(&everything))?;
        same("categories", actual, self.model.categories(&everything))
    }

    pub(super) fn ok<T>(&self, what: &str, result: Result<T>) -> Check<T> {
        result.map_err(|error| TestCaseError::fail(format!("{what} failed: {error:?}")))
    }

    pub(super) fn existing(&self, which: usize) -> Option<&Record> {
        let events = &self.model.events;
        events.get(which.checked_rem(events.len())?)
    }

    fn import(&mut self, specs: &[ImportSpec], fault: &Fault) -> Check {
        let Some(batch) = self.batch_of(specs, fault) else {
            return Ok(());
        };
        let actual = self
            .database
            .import(batch.clone())
            .map_err(|error| kind(&error));
        let expected = self.model.import(&batch).map_err(|error| kind(&error));
        self.commit_number = None;
        same("import", actual, expected)?;
        same("head", self.database.head().unwrap(), self.model.head())
    }

    fn remove(&mut self, stream: &str, before: &BeforeSpec, offset: Option<i64>) -> Check {
        let before = match *before {
            BeforeSpec::StreamPosition(position) => RemoveBefore::StreamPosition(position),
            BeforeSpec::Near(which, offset) => RemoveBefore::Position(self.near(which, offset)),
            BeforeSpec::End => RemoveBefore::End,
        };
        let version = self.model.version(stream);
        let actual_version = version.map_or(-1, |version| version as i64);
        let expected_version = offset.map(|offset| actual_version + offset);
        let actual = self.database.truncate(stream, before, expected_version);
        let actual = actual.map(|truncated| (truncated.removed, truncated.version));
        let removed = self.model.truncate(stream, before, expected_version);
        if removed.as_ref().is_ok_and(|removed| *removed > 0) {
            self.commit_number = self.commit_number.map(|number| number + 1);
        }
        let expected = removed.map(|removed| (removed, version));
        let kind = |error: Error| kind(&error);
        same("remove", actual.map_err(kind), expected.map_err(kind))
    }

    fn redact(&mut self, which: usize, drops_tags: bool) -> Check {
        let Some(index) = which.checked_rem(self.model.events.len()) else {
            return Ok(());
        };
        self.commits_itself = true;
        let position = self.model.events[index].position;
        self.ok("redact", self.database.redact(position, drops_tags))?;
        let stub = self.ok("stub", self.database.event_at(position))?;
        let stub = stub.as_ref().map(Record::of);
        let metadata = stub.as_ref().and_then(|stub| stub.metadata.clone());
        let says_so = |text: &[u8]| text.starts_with(br#"{"redacted":"#);
        same("it says so", metadata.as_deref().is_some_and(says_so), true)?;
        let record = &mut self.model.events[index];
        record.is_redacted = true;
        record.data = Payload::json("null");
        record.metadata = metadata;
        if drops_tags {
            record.tags.clear();
        }
        same("stub", stub.as_ref(), Some(&*record))
    }

    fn tracking(&self, source: &str) -> Check {
        let actual = self.ok("tracking", self.database.tracking(source))?;
        same(source, actual, self.model.tracked.get(source).copied())
    }

    fn info(&self) -> Check {
        let info = self.ok("info", self.database.info())?;
        let everything = List::new(usize::MAX);
        let streams = self.model.streams(&everything).len() as u64;
        same("events", info.events, self.model.events.len() as u64)?;
        same("streams", info.streams, streams)?;
        same(
            "head",
            (info.head, self.database.head().unwrap()),
            (self.model.head(), self.model.head()),
        )?;
        let last = self.model.events.last().map(|event| event.time);
        same("last activity", info.last_activity, last)
    }

    fn clear(&mut self) -> Check {
        self.ok("clear", self.database.clear())?;
        self.model = Model::default();
        self.commit_number = None;
        self.end_subscriptions()
    }

    fn reopen(&mut self) -> Check {
        self.ok("close", self.database.close())?;
        let late = Commit::new([NewEvent::new(STREAMS[0], TYPES[0], "{}")]);
        let refused = matches!(self.database.commit(late), Err(Error::Closed(_)));
        same("a commit after close is refused", refused, true)?;
        self.end_subscriptions()?;
        let opened = (self.open)(&self.options);
        self.database = self.ok("open", opened)?;
        same(
            "bytes cut after a clean close",
            self.database.recovery().cut_bytes,
            0,
        )
    }
}
