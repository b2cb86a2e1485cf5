//! A commit of thousands of events, which several threads work on, is what small ones would be.

use trefoil::{Commit, Database, Event, NewEvent, Options, Query, QueryItem, Selection};

/// More than any of the threads is worth starting for.
const N_EVENTS: usize = 12_000;
const N_STREAMS: usize = 5_000;

fn events() -> Vec<NewEvent> {
    let event = |number: usize| {
        let stream = format!("category{}-{}", number % 7, number * 31 % N_STREAMS);
        let correlated = format!(r#"{{"correlationStreamName":"cart{}-1"}}"#, number % 3);
        let event = NewEvent::new(&*stream, format!("Type{}", number % 5), "{}")
            .with_tag(format!("rare:{}", number % 997))
            .with_tag(format!("frequent:{}", number % 3));
        match number % 4 {
            0 => event.with_metadata(correlated),
            _ => event,
        }
    };
    (0..N_EVENTS).map(event).collect()
}

/// What an event is, without its id and its time.
fn essence(event: &Event) -> (u64, Option<String>, Option<u64>, String, Vec<String>) {
    (
        event.position(),
        event.stream().map(str::to_owned),
        event.stream_position(),
        event.event_type().to_owned(),
        event.tags().map(str::to_owned).collect(),
    )
}

/// Commits all events in pieces of this size, twice, so that streams, tags and so on are known the
/// second time; a checkpoint comes between.
fn written(piece: usize) -> Database {
    let database = Database::in_memory(&Options::default()).unwrap();
    for _ in 0..2 {
        for some in events().chunks(piece) {
            database.commit(Commit::new(some.to_vec())).unwrap();
        }
        database.checkpoint().unwrap();
    }
    for some in events().chunks(piece) {
        database.commit(Commit::new(some.to_vec())).unwrap();
    }
    database
}

fn reads() -> Vec<Selection> {
    let tagged = |tag: &str| Selection::query(Query::all().or(QueryItem::any().tagged(tag)));
    let streams =
        (0..40).map(|number| Selection::stream(format!("category{}-{number}", number % 7)));
    let others = [
        Selection::all(),
        Selection::category("category3"),
        Selection::all().of_type("Type4"),
        Selection::all().correlated_with("cart1"),
        tagged("frequent:2"),
        tagged("rare:500"),
    ];
    streams.chain(others).collect()
}

#[test]
fn a_large_commit_is_indexed_as_small_ones_are() {
    let (large, small) = (written(N_EVENTS), written(100));
    let mut n_found = 0;
    for read in reads() {
        let read = read.limit(3 * N_EVENTS);
        let found = |database: &Database| -> Vec<_> {
            let found = database.read(&read).unwrap();
            found.iter().map(essence).collect()
        };
        let (found, expected) = (found(&large), found(&small));
        n_found += found.len();
        assert!(found == expected, "{read:?}");
    }
    assert!(n_found > 5 * N_EVENTS, "only {n_found} events were found");
    assert_eq!(large.info().unwrap().streams, small.info().unwrap().streams);
}
