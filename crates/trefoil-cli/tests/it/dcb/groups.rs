//! Appends that meet in one group: a condition sees what was staged before it, with its type and
//! all of its tags, and never sees itself.

use trefoil::Query;

use super::backend::{Backend, over_every_protocol};
use super::store::{Fact, Refusal, Unless, item};

over_every_protocol!(
    of_appends_that_exclude_each_other_one_wins,
    appends_that_only_look_alike_all_win,
    several_events_at_once_are_there_together_or_not_at_all,
);

const CLIENTS: usize = 60;

/// How many were appended; all others must have failed their condition.
fn winners(answers: Vec<Result<u64, Refusal>>) -> usize {
    let won = |answer| match answer {
        Ok(_) => true,
        Err(Refusal::Conflict { .. }) => false,
        Err(refusal) => panic!("{refusal:?}"),
    };
    answers
        .into_iter()
        .filter(|answer| won(answer.clone()))
        .count()
}

fn of_appends_that_exclude_each_other_one_wins(backend: &mut Backend) {
    let shapes = [
        (Fact::new("Moved", ["a"]), item(&[], &["a"])),
        (
            Fact::new("Moved", ["a", "b"]),
            item(&["Moved"], &["b", "a"]),
        ),
        (Fact::new("Moved", [""; 0]), item(&["Moved"], &[])),
    ];
    for (fact, item) in shapes {
        for after in [None, Some(0)] {
            backend.renew();
            let query = Query::from(item.clone());
            let unless = Unless { query, after };
            let answers = backend.together(CLIENTS, |_, store| {
                store.append(std::slice::from_ref(&fact), std::slice::from_ref(&unless))
            });
            assert_eq!(winners(answers), 1, "{unless:?}");
        }
    }
}

fn appends_that_only_look_alike_all_win(backend: &mut Backend) {
    // The same tag and another type; the same type and another second tag; its own type twice.
    type Shape = fn(usize) -> (Vec<Fact>, Query);
    let shapes: [Shape; 3] = [
        |number| {
            let kind = format!("Moved{number}");
            let query = item(&[&kind], &["a"]);
            (vec![Fact::new(&kind, ["a"])], query.into())
        },
        |number| {
            let tag = format!("b{number}");
            let query = item(&["Moved"], &["a", &tag]);
            (vec![Fact::new("Moved", ["a", &tag])], query.into())
        },
        |number| {
            let kind = format!("Moved{number}");
            let query = item(&[&kind], &[]);
            (
                vec![Fact::new(&kind, ["a"]), Fact::new(&kind, ["b"])],
                query.into(),
            )
        },
    ];
    for shape in shapes {
        backend.renew();
        let answers = backend.together(CLIENTS, |number, store| {
            let (facts, query) = shape(number);
            store.append(&facts, &[Unless::any(&query)])
        });
        assert_eq!(winners(answers), CLIENTS);
    }
}

/// Readers count while writers append three at a time, some of which are refused.
fn several_events_at_once_are_there_together_or_not_at_all(backend: &mut Backend) {
    let mine = |number: usize| Query::from(item(&[], &[&format!("writer:{number}")]));
    let seen = backend.together(50, |number, store| {
        let mut longest = 0;
        for round in 0..8 {
            if number < 10 {
                let answer = store.all(&Query::all());
                assert_eq!(answer.events.len() % 3, 0, "a part of an append was seen");
                assert_eq!(answer.after(), answer.events.len() as u64);
                assert!(answer.events.len() >= longest, "events went away");
                longest = answer.events.len();
                continue;
            }
            let tag = format!("writer:{number}");
            let facts = ["First", "Second", "Third"].map(|kind| Fact::new(kind, [&tag]));
            let unless = match round % 2 {
                0 => Vec::new(),
                _ => vec![Unless::any(&mine(number))],
            };
            let answer = store.append(&facts, &unless);
            assert_eq!(answer.is_ok(), unless.is_empty());
        }
        longest
    });
    assert_eq!(seen.len(), 50);
    let events = backend.connect().all(&Query::all()).events;
    assert_eq!(events.len(), 40 * 4 * 3);
    for commit in events.chunks(3) {
        let kinds = commit.iter().map(|seen| seen.fact.kind.as_str());
        assert!(kinds.eq(["First", "Second", "Third"]), "{commit:?}");
        assert!(
            commit
                .iter()
                .all(|seen| seen.fact.tags == commit[0].fact.tags)
        );
    }
}
