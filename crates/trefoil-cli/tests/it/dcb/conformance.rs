//! Runs `cases/read.txt` and `cases/append.txt`, whose README says what the lines mean.

use trefoil::{Query, Selection};

use super::backend::{Backend, Protocol, over_every_protocol};
use super::store::{Answer, Refusal, Store};
use super::words;

over_every_protocol!(reads_conform, appends_conform);

fn reads_conform(backend: &mut Backend) {
    run(backend, include_str!("cases/read.txt"));
}

fn appends_conform(backend: &mut Backend) {
    run(backend, include_str!("cases/append.txt"));
}

/// Every case again, with a checkpoint and a restart after each line: what is asked for is then on
/// disk and not in memory.
#[test]
fn a_restart_after_every_line_changes_nothing() {
    let mut backend = Backend::start(Protocol::Library);
    for text in [
        include_str!("cases/read.txt"),
        include_str!("cases/append.txt"),
    ] {
        let restarting = text.replace("\n= ", "\nrestart\n= ");
        run(&mut backend, &restarting);
    }
}

fn run(backend: &mut Backend, text: &str) {
    let mut n_cases = 0;
    for case in text.split("== ").filter(|case| !case.trim().is_empty()) {
        let conditions = backend.connect().conditions_max();
        let several = |line: &str| line.matches(" unless ").count() > conditions;
        if case.lines().any(several) {
            continue;
        }
        backend.renew();
        run_case(backend, case);
        n_cases += 1;
    }
    assert!(n_cases > 10, "cases got lost");
}

/// What a line came to.
enum Came {
    Nothing,
    Read(Answer),
    Append(Result<u64, Refusal>),
}

fn run_case(backend: &mut Backend, case: &str) {
    let (title, lines) = case.split_once('\n').unwrap();
    let mut store = backend.connect();
    let (mut asked, mut came) = ("", Came::Nothing);
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let place = || format!("{title}\n{asked}\n{line}\n");
        match (word, &came) {
            ("restart", _) => {
                drop(store);
                backend.restart();
                store = backend.connect();
                continue;
            }
            ("+", _) => came = Came::Append(append(store.as_mut(), rest)),
            ("?", _) => came = Came::Read(read(store.as_mut(), rest)),
            ("=", Came::Read(answer)) => expect_read(answer, rest, &place()),
            ("=", Came::Append(answer)) => expect_append(answer, rest, &place()),
            _ => panic!("{}", place()),
        }
        asked = line;
    }
}

fn append(store: &mut dyn Store, text: &str) -> Result<u64, Refusal> {
    let (facts, unless) = words::append(text);
    store.append(&facts, &unless)
}

fn read(store: &mut dyn Store, text: &str) -> Answer {
    let mut read = Selection::query(Query::all());
    let mut rest = text.to_owned();
    if let Some(without) = rest.strip_suffix(" backwards") {
        rest = without.to_owned();
        read = read.backwards();
    }
    if let Some((before, limit)) = rest.split_once(" limit ") {
        let (limit, more) = limit.split_once(' ').unwrap_or((limit, ""));
        read = read.limit(limit.parse().unwrap());
        rest = format!("{before} {more}").trim().to_owned();
    }
    if let Some(without) = rest.strip_suffix(" backwards") {
        rest = without.to_owned();
        read = read.backwards();
    }
    if let Some((before, from)) = rest.split_once(" from ") {
        read = read.from_position(from.trim().parse().unwrap());
        rest = before.to_owned();
    }
    store.read(&read.matching(words::query(&rest))).unwrap()
}

fn numbers(text: &str) -> Vec<u64> {
    let words = text.split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

fn expect_read(answer: &Answer, expected: &str, place: &str) {
    let (positions, head) = match expected.split_once("head") {
        Some((positions, head)) => (positions, Some(numbers(head)[0])),
        None => (expected, None),
    };
    assert_eq!(answer.positions(), numbers(positions), "{place}");
    if head.is_some() {
        assert_eq!(answer.head, head, "{place}");
    }
}

fn expect_append(answer: &Result<u64, Refusal>, expected: &str, place: &str) {
    let numbers = numbers(expected);
    match answer {
        Ok(position) => assert_eq!(*position, numbers[0], "{place}"),
        Err(Refusal::Conflict {
            condition,
            position,
        }) if expected.starts_with("refused") => {
            let by = condition.is_none_or(|condition| condition as u64 == numbers[0]);
            let at = position.is_none_or(|position| numbers[1..].contains(&position));
            assert!(by && at, "{answer:?} {place}");
        }
        Err(refusal) => panic!("{refusal:?} {place}"),
    }
}
