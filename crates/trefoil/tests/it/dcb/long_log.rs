//! Queries over a log whose posting lists have many blocks and many runs: from every position, in
//! both directions, the index must answer what a scan of everything answers.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use tempfile::TempDir;
use trefoil::{
    Commit, Condition, Database, Direction, Error, EventId, ImportedEvent, NewEvent, Options,
    Payload, Query, QueryItem, Result, Selection, Source, Strategy as Plan, Timestamp,
};

use crate::model::{Model, Record};

/// From frequent to rare; the last one never occurs.
const TYPES: [&str; 5] = ["Common", "Usual", "Seldom", "Rare", "Never"];
const FIXED_TAGS: [&str; 6] = ["hot", "even", "odd", "warm", "rare", "never"];
const ENTITIES: u16 = 120;
/// Tags that only events of one stretch of the log have.
const STRETCHES: u16 = 8;
const STRETCH_EVENTS: usize = 350;
const STREAMS: u16 = 20;

type Drawn = (u16, u16, u16, u16);

#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<Drawn>),
    /// Events that bring their positions along, with a gap before them.
    Import(Vec<Drawn>, u64),
    Checkpoint,
    Compact,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let events = || proptest::collection::vec(any::<Drawn>(), 1..700);
    let step = prop_oneof![
        6 => events().prop_map(Step::Commit),
        1 => (events(), 0..3000u64).prop_map(|(events, gap)| Step::Import(events, gap)),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 4..16)
}

fn pick(names: &[&str], draw: u16) -> String {
    names[usize::from(draw) % names.len()].to_owned()
}

fn event(number: usize, (kind, fixed, entity, stream): Drawn) -> NewEvent {
    let kind = match kind % 1000 {
        0..800 => 0,
        800..980 => 1,
        980..998 => 2,
        _ => 3,
    };
    let data = Payload::binary(vec![number as u8; usize::from(stream % 5)]);
    let mut event = NewEvent::without_stream(TYPES[kind], "")
        .with_data(data)
        .with_tag(format!("entity:{}", entity % ENTITIES))
        .with_tag(["even", "odd"][number % 2]);
    let stretch = (number / STRETCH_EVENTS) as u16 % STRETCHES;
    let extra = [
        ("hot".to_owned(), fixed % 2 == 0),
        ("warm".to_owned(), fixed % 25 == 0),
        ("rare".to_owned(), fixed % 900 == 0),
        (format!("stretch:{stretch}"), fixed % 3 == 0),
    ];
    let extra = extra.into_iter().filter(|(_, has)| *has);
    event.tags.extend(extra.map(|(tag, _)| tag));
    if stream % 4 != 0 {
        event.stream = Some(stream_name(stream));
    }
    event
}

fn stream_name(draw: u16) -> String {
    let category = ["flow", "loop"][usize::from(draw % STREAMS) / 14];
    format!("{category}-{}", draw % STREAMS)
}

/// One to three demands or none, on few events or on many.
fn query() -> impl Strategy<Value = (Source, Query)> {
    let types = proptest::collection::vec(0..TYPES.len() as u16, 0..3)
        .prop_map(|draws| draws.iter().map(|&draw| pick(&TYPES, draw)).collect());
    let tag = prop_oneof![
        3 => (0..FIXED_TAGS.len() as u16).prop_map(|draw| pick(&FIXED_TAGS, draw)),
        2 => (0..ENTITIES).prop_map(|entity| format!("entity:{entity}")),
        1 => (0..STRETCHES).prop_map(|stretch| format!("stretch:{stretch}")),
    ];
    let tags = proptest::collection::vec(tag, 0..4);
    let item = (types, tags).prop_map(|(types, tags)| QueryItem { types, tags });
    let query = proptest::collection::vec(item, 1..4).prop_map(|items| Query { items });
    let source = prop_oneof![
        4 => Just(Source::All),
        1 => any::<u16>().prop_map(|draw| Source::Stream(stream_name(draw))),
        1 => prop_oneof![Just("flow"), Just("loop"), Just("none")]
            .prop_map(|name| Source::Category(name.to_owned())),
    ];
    (source, query)
}

/// The database and all that was written to it.
struct Subject {
    directory: TempDir,
    options: Options,
    database: Database,
    model: Model,
}

impl Subject {
    fn new(options: Options) -> Self {
        let directory = TempDir::new().unwrap();
        let database = Database::open(directory.path(), &options).unwrap();
        Self {
            directory,
            options,
            database,
            model: Model::default(),
        }
    }

    fn apply(&mut self, step: &Step) -> Result<()> {
        let first = self.model.events.len();
        let numbered = |drawn: &[Drawn]| -> Vec<NewEvent> {
            let events = drawn.iter().enumerate();
            events
                .map(|(index, &drawn)| event(first + index, drawn))
                .collect()
        };
        match step {
            Step::Commit(drawn) => {
                let from = self.model.head() + 1;
                self.database.commit(Commit::new(numbered(drawn)))?;
                self.take_over(from)
            }
            Step::Import(drawn, gap) => {
                let from = self.model.head() + 1 + gap;
                let place = |(event, position): (NewEvent, u64)| ImportedEvent {
                    event: event.with_id(EventId::from_u128(u128::from(position))),
                    stream_position: position,
                    position,
                    time: Timestamp(1_700_000_000_000_000_000),
                    tracking: None,
                    is_redacted: false,
                };
                let batch = numbered(drawn).into_iter().zip(from..).map(place);
                self.database.import(batch.collect())?;
                self.take_over(from)
            }
            Step::Checkpoint => self.database.checkpoint(),
            Step::Compact => self.database.compact(),
            Step::Reopen => {
                self.database.close()?;
                self.database = Database::open(self.directory.path(), &self.options)?;
                Ok(())
            }
        }
    }

    /// Reads back what was just written; that this is what was handed in is shown elsewhere.
    fn take_over(&mut self, from: u64) -> Result<()> {
        let written = self.database.read(&Selection::all().from_position(from))?;
        self.model.events.extend(written.iter().map(Record::of));
        Ok(())
    }

    /// Asks for the same query from everywhere.
    fn ask(&self, source: &Source, query: &Query, stride: u64) -> Result<(), TestCaseError> {
        let mut read = Selection::query(query.clone());
        read.source = source.clone();
        let naive = self.model.read(&read);
        let naive: Vec<u64> = naive.iter().map(|record| record.position).collect();
        let head = self.model.head();
        let plan = self.ok(&read, self.database.explain(&read))?.strategy;
        prop_assert!(plan != Plan::Nothing || naive.is_empty(), "{read:?}");
        self.compare(&read, &naive)?;
        self.compare(&read.clone().backwards(), &naive)?;
        for position in (0..=head + 2).step_by(stride as usize) {
            let limit = 1 + (position / stride) as usize % 9;
            let from = read.clone().from_position(position).limit(limit);
            self.compare(&from, &naive)?;
            self.compare(&from.clone().backwards(), &naive)?;
            let as_of = from.as_of(position.saturating_add(stride * 3));
            self.compare(&as_of, &naive)?;
            self.compare_condition(source, query, position, &naive)?;
        }
        Ok(())
    }

    fn ok<T>(&self, read: &Selection, result: Result<T>) -> Result<T, TestCaseError> {
        result.map_err(|error| TestCaseError::fail(format!("{read:?}: {error:?}")))
    }

    /// `naive` are all positions that match, ascending.
    fn compare(&self, read: &Selection, naive: &[u64]) -> Result<(), TestCaseError> {
        let end = read.as_of.unwrap_or(u64::MAX);
        let naive = &naive[..naive.partition_point(|&position| position <= end)];
        let expected: Vec<u64> = match (read.direction, read.from) {
            (Direction::Forwards, trefoil::StartAt::Position(from)) => {
                let first = naive.partition_point(|&position| position < from);
                naive[first..].iter().take(read.limit).copied().collect()
            }
            (Direction::Backwards, trefoil::StartAt::Position(from)) => {
                let after = naive.partition_point(|&position| position <= from);
                let before = naive[..after].iter().rev();
                before.take(read.limit).copied().collect()
            }
            (Direction::Forwards, _) => naive.to_vec(),
            (Direction::Backwards, _) => naive.iter().rev().copied().collect(),
        };
        let found = self.ok(read, self.database.read(read))?;
        let found: Vec<u64> = found.iter().map(trefoil::Event::position).collect();
        prop_assert_eq!(found, expected, "{:?}", read);
        Ok(())
    }

    fn compare_condition(
        &self,
        source: &Source,
        query: &Query,
        after: u64,
        naive: &[u64],
    ) -> Result<(), TestCaseError> {
        let condition = Condition::NoMatch {
            source: source.clone(),
            query: query.clone(),
            after: Some(after),
        };
        let last = naive.last().copied().unwrap_or_default();
        match self.database.check(&[condition]) {
            Ok(()) => prop_assert!(last <= after, "{last} > {after}: {query:?}"),
            Err(Error::ConditionFailed { position, .. }) => {
                let is_match = position > after && naive.binary_search(&position).is_ok();
                prop_assert!(is_match, "{position} after {after}: {query:?}");
            }
            Err(error) => return Err(TestCaseError::fail(format!("{query:?}: {error:?}"))),
        }
        Ok(())
    }
}

#[test]
fn from_every_position_the_index_answers_what_a_scan_answers() {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 12;
    }
    config.max_shrink_iters = 300;
    let tail = prop_oneof![Just(64), Just(500), Just(100_000)];
    let queries = proptest::collection::vec((query(), 1..12u64), 8..20);
    let cases = (tail, steps(), queries);
    let result = TestRunner::new(config).run(&cases, |(tail_events_max, steps, queries)| {
        let mut subject = Subject::new(
            Options::default()
                .with_tail_events_max(tail_events_max)
                .with_segment_bytes_max(64 * 1024)
                .with_plain_segments(1),
        );
        for step in &steps {
            let applied = subject.apply(step);
            applied.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        }
        for ((source, query), stride) in &queries {
            subject.ask(source, query, *stride)?;
        }
        Ok(())
    });
    if let Err(failure) = result {
        // The steps of a failing case are long: what failed is enough to ask again.
        let text = failure.to_string();
        panic!("{}", text.chars().take(20_000).collect::<String>());
    }
}
