//! Applies operations to a database and to the model, and compares every answer.

use proptest::test_runner::TestCaseError;
use tempfile::TempDir;
use trefoil::{
    Commit, Committed, Database, Direction, Error, Event, From, List, NewEvent, Options, Read,
    Result, Subscription, Timestamp,
};

use super::ops::*;
use super::resolve::list_of;
use crate::model::{Model, Outcome, Record};

type Check<T = ()> = std::result::Result<T, TestCaseError>;

/// A subscription and what it must still deliver: the events that `read` selects.
struct Following {
    subscription: Subscription,
    read: Read,
}

/// A database under test beside the model of what it must hold.
pub(crate) struct Driver {
    directory: TempDir,
    options: Options,
    database: Database,
    pub(super) model: Model,
    /// Commits as they were answered, with all ids filled in.
    answered: Vec<Commit>,
    following: Vec<Following>,
    /// The newest time the server has assigned.
    clock: Timestamp,
    /// The commit number last answered, unless something else may have used one since.
    commit_number: Option<u64>,
}

/// Compares and names what differs.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the calls read like sentences"
)]
fn same<T: PartialEq + std::fmt::Debug>(what: &str, actual: T, expected: T) -> Check {
    if actual == expected {
        return Ok(());
    }
    let text = format!("{what}\n  database: {actual:?}\n  model:    {expected:?}");
    Err(TestCaseError::fail(text))
}

/// What of an error is promised: its kind and its numbers, not its text.
fn kind(error: &Error) -> String {
    match error {
        Error::Invalid(_) => "Invalid".to_owned(),
        Error::ImportRefused(_) => "ImportRefused".to_owned(),
        other => format!("{other:?}"),
    }
}

fn records(events: &[Event]) -> Vec<Record> {
    events.iter().map(Record::of).collect()
}

impl Driver {
    pub(crate) fn new(options: Options) -> Self {
        let directory = TempDir::new().unwrap();
        let database = Database::open(directory.path(), &options).unwrap();
        Self {
            directory,
            options,
            database,
            model: Model::default(),
            answered: Vec::new(),
            following: Vec::new(),
            clock: Timestamp(i64::MIN),
            commit_number: None,
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) -> Check {
        match op {
            Op::Commit { events, conditions } => {
                let commit = self.commit_of(events, conditions);
                self.commit(commit)
            }
            Op::Resend { which, how } => self.resend(*which, how),
            Op::Import { events, fault } => self.import(events, fault),
            Op::Read(spec) => self.read(&self.read_of(spec)),
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
                let subscription = self.database.subscribe(read.clone());
                self.following.push(Following { subscription, read });
                Ok(())
            }
            Op::Poll { which } => self.poll(*which),
            Op::Clear => self.clear(),
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
        self.read(&Read::all())?;
        for stream in STREAMS {
            self.read(&Read::stream(stream).backwards())?;
        }
        for category in CATEGORIES {
            self.read(&Read::category(category).backwards())?;
        }
        let everything = List {
            limit: usize::MAX,
            ..List::default()
        };
        let actual = self.ok("streams", self.database.streams(&everything))?;
        same("streams", actual, self.model.streams(&everything))
    }

    fn ok<T>(&self, what: &str, result: Result<T>) -> Check<T> {
        result.map_err(|error| TestCaseError::fail(format!("{what} failed: {error:?}")))
    }

    pub(super) fn existing(&self, which: usize) -> Option<&Record> {
        let events = &self.model.events;
        events.get(which.checked_rem(events.len())?)
    }

    fn commit(&mut self, commit: Commit) -> Check {
        let answer = self.database.commit(commit.clone());
        let decided = self
            .model
            .decide(&commit, self.options.event_data_bytes_max);
        match (answer, decided) {
            (Err(actual), Err(expected)) => same("commit", kind(&actual), kind(&expected)),
            (Ok(committed), Ok(Outcome::Replayed(appended))) => {
                same("replayed", committed.replayed, true)?;
                same(
                    "position",
                    Some(committed.position),
                    appended.last().map(|a| a.position),
                )?;
                same("replayed commit", committed.events, appended)
            }
            (Ok(committed), Ok(Outcome::Fresh(records))) => {
                self.committed(commit, &committed, records)
            }
            (answer, decided) => {
                let text = format!("{commit:?}\n  database: {answer:?}\n  model: {decided:?}");
                Err(TestCaseError::fail(text))
            }
        }
    }

    /// Takes ids and times, which only the database can know, from its answers; the rest must be
    /// as the model says.
    fn committed(&mut self, mut commit: Commit, answer: &Committed, fresh: Vec<Record>) -> Check {
        same("replayed", answer.replayed, false)?;
        if let Some(before) = self.commit_number {
            same("commit number", answer.commit, before + 1)?;
        }
        self.commit_number = Some(answer.commit);
        let from = Read::all()
            .from_position(fresh[0].position)
            .limit(fresh.len());
        let stored = self.ok("read of the commit", self.database.read(&from))?;
        same("events of the commit", stored.len(), fresh.len())?;
        same("events of the answer", answer.events.len(), fresh.len())?;
        for (index, mut record) in fresh.into_iter().enumerate() {
            let new = &mut commit.events[index];
            record.id = *new.id.get_or_insert(answer.events[index].id);
            record.time = stored[index].time();
            if record.time < self.clock {
                return Err(TestCaseError::fail("time went backwards"));
            }
            self.clock = record.time;
            same("answer", &answer.events[index], &record.appended())?;
            same("stored event", Record::of(&stored[index]), record.clone())?;
            self.model.events.push(record);
        }
        same("position of the commit", answer.position, self.model.head())?;
        self.answered.push(commit);
        Ok(())
    }

    fn resend(&mut self, which: usize, how: &Resend) -> Check {
        let Some(index) = which.checked_rem(self.answered.len()) else {
            return Ok(());
        };
        let mut commit = self.answered[index].clone();
        match how {
            Resend::Same => {}
            Resend::WithFailingCondition => commit = commit.expect_version(STREAMS[0], 1_000_000),
            Resend::Reversed => commit.events.reverse(),
            Resend::WithoutLast => drop(commit.events.pop()),
            Resend::WithNewEvent => commit
                .events
                .push(NewEvent::new(STREAMS[0], TYPES[0], "{}")),
            Resend::ToOtherStream => commit.events[0].stream = Some("elsewhere-1".to_owned()),
        }
        self.commit(commit)
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
        same("head", self.database.head(), self.model.head())
    }

    fn read(&self, read: &Read) -> Check {
        let actual = self.ok("read", self.database.read(read))?;
        same(
            &format!("{read:?}"),
            records(&actual),
            self.model.read(read),
        )
    }

    fn info(&self) -> Check {
        let info = self.ok("info", self.database.info())?;
        let everything = List {
            limit: usize::MAX,
            ..List::default()
        };
        let streams = self.model.streams(&everything).len() as u64;
        same("events", info.events, self.model.events.len() as u64)?;
        same("streams", info.streams, streams)?;
        same(
            "head",
            (info.head, self.database.head()),
            (self.model.head(), self.model.head()),
        )?;
        let last = self.model.events.last().map(|event| event.time);
        same("last activity", info.last_activity, last)
    }

    fn poll(&mut self, which: usize) -> Check {
        let Some(index) = which.checked_rem(self.following.len()) else {
            return Ok(());
        };
        let mut delivered = Vec::new();
        loop {
            let next = self.following[index].subscription.try_next();
            match self.ok("subscription", next)? {
                events if events.is_empty() => break,
                events => delivered.extend(records(&events)),
            }
        }
        let read = &self.following[index].read;
        same(
            &format!("subscription {read:?}"),
            delivered.as_slice(),
            &self.model.read(read),
        )?;
        if let Some(last) = delivered.last() {
            self.following[index].read.from = From::Position(last.position + 1);
        }
        Ok(())
    }

    /// Subscriptions to what is gone say so, and only so.
    fn end_subscriptions(&mut self) -> Check {
        for mut following in self.following.drain(..) {
            match following.subscription.try_next() {
                Err(Error::Closed(_)) => {}
                other => {
                    let text = format!("an ended subscription answered {other:?}");
                    return Err(TestCaseError::fail(text));
                }
            }
        }
        Ok(())
    }

    fn clear(&mut self) -> Check {
        self.ok("clear", self.database.clear())?;
        self.model.events.clear();
        self.commit_number = None;
        self.end_subscriptions()
    }

    fn reopen(&mut self) -> Check {
        self.ok("close", self.database.close())?;
        let late = Commit::new([NewEvent::new(STREAMS[0], TYPES[0], "{}")]);
        let refused = matches!(self.database.commit(late), Err(Error::Closed(_)));
        same("a commit after close is refused", refused, true)?;
        self.end_subscriptions()?;
        let opened = Database::open(self.directory.path(), &self.options);
        self.database = self.ok("open", opened)?;
        same(
            "bytes cut after a clean close",
            self.database.recovery().cut_bytes,
            0,
        )
    }
}
