//! Streams whose postings fill several blocks of a run are read from every place, both ways.

use trefoil::{Database, EventId, ImportedEvent, NewEvent, Options, Selection, Timestamp};

const N_EVENTS: u64 = 1_800;

/// The events of two streams in turn. Places in the second have gaps.
fn imported(position: u64) -> ImportedEvent {
    let (stream, stream_position) = match position % 2 {
        1 => ("dense-1", position / 2),
        _ => ("gaps-1", position * 3 / 2),
    };
    let event = NewEvent::new(stream, "E", "{}").with_id(EventId::from_u128(position.into()));
    ImportedEvent {
        tracking: None,
        is_redacted: false,
        event,
        stream_position,
        position,
        time: Timestamp(1),
    }
}

/// The positions that a read from a place must find.
fn expected(stream: &str, from: u64, limit: usize, is_backwards: bool) -> Vec<u64> {
    let of_stream = |position: &u64| imported(*position).event.stream.as_deref() == Some(stream);
    let all = (1..=N_EVENTS).filter(of_stream);
    let place = |position: &u64| imported(*position).stream_position;
    if is_backwards {
        let found = all.rev().filter(|position| place(position) <= from);
        found.take(limit).collect()
    } else {
        let found = all.filter(|position| place(position) >= from);
        found.take(limit).collect()
    }
}

fn check(database: &Database) {
    for stream in ["dense-1", "gaps-1"] {
        let edges = [0, 1, 255, 256, 511, 512, 513, 1023, 1024];
        let froms = (0..3 * N_EVENTS / 2).step_by(83).chain(edges);
        for from in froms {
            for (limit, is_backwards) in [(1, false), (1, true), (600, false), (600, true)] {
                let mut read = Selection::stream(stream)
                    .from_stream_position(from)
                    .limit(limit);
                if is_backwards {
                    read = read.backwards();
                }
                let found = database.read(&read).unwrap();
                let found: Vec<u64> = found.iter().map(trefoil::Event::position).collect();
                let expected = expected(stream, from, limit, is_backwards);
                assert_eq!(found, expected, "{stream} {from} {limit} {is_backwards}");
            }
        }
    }
}

/// Reads from every global position, also those between two events of the stream.
fn check_positions(database: &Database) {
    for (stream, rest) in [("dense-1", 1), ("gaps-1", 0)] {
        for from in 1..N_EVENTS {
            let read = Selection::stream(stream).from_position(from).limit(1);
            let next = database.read(&read.clone()).unwrap();
            let expected = from + u64::from(from % 2 != rest);
            assert_eq!(next[0].position(), expected, "{stream} from {from}");
            let before = database.read(&read.backwards()).unwrap();
            let expected =
                Some(from - u64::from(from % 2 != rest)).filter(|position| *position > 0);
            let before = before.first().map(trefoil::Event::position);
            assert_eq!(before, expected, "{stream} back from {from}");
        }
    }
}

#[test]
fn every_place_of_a_long_stream_is_found_both_ways() {
    let database = Database::in_memory(&Options::default()).unwrap();
    for piece in (1..=N_EVENTS).collect::<Vec<_>>().chunks(700) {
        let events = piece.iter().copied().map(imported).collect();
        database.import(events).unwrap();
        database.checkpoint().unwrap();
    }
    check(&database);
    check_positions(&database);
    database.compact().unwrap();
    check(&database);
    check_positions(&database);
}
