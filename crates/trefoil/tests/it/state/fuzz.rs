//! Every command with random arguments, on values of all types: it answers or refuses, and takes
//! neither the process with it nor more memory than it should.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use trefoil::{Database, Options, Reply, Step, Transaction};

/// One value of each type, strings and collections also in their large forms.
const BEGINNING: [&str; 9] = [
    "SET s 10",
    "SETRANGE long 9000 end",
    "HSET h f 1 g text 1 2",
    "HEXPIRE h 1000 FIELDS 1 f",
    "SADD m a b 1 2 3",
    "ZADD z 1 a 2 b -inf c 1.5 d",
    "RPUSH l a b c 1 2",
    "SET e v EX 1000",
    "ZADD y 0 a 0 b 0 c",
];

/// Words that some command knows, numbers at their edges, and what nobody expects. No number lies
/// between a million and the largest: a command would do what it says.
const WORDS: &[&str] = &[
    "s",
    "long",
    "h",
    "m",
    "z",
    "l",
    "e",
    "y",
    "none",
    "",
    "a",
    "b",
    "f",
    "*",
    "[",
    "?[^",
    "\\",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "-2",
    "7",
    "100",
    "-100",
    "4096",
    "65536",
    "1000000",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "4294967296",
    "1.5",
    "-0",
    "1e308",
    "1e-400",
    "inf",
    "-inf",
    "nan",
    "0x1p3",
    "+1",
    "1 ",
    "(1",
    "(inf",
    "[a",
    "(b",
    "-",
    "+",
    "#1",
    "#4294967296",
    "#9223372036854775807",
    "u8",
    "i64",
    "u64",
    "u63",
    "i1",
    "u0",
    "GET",
    "SET",
    "INCRBY",
    "OVERFLOW",
    "SAT",
    "FAIL",
    "WRAP",
    "NX",
    "XX",
    "GT",
    "LT",
    "CH",
    "INCR",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "IFEQ",
    "IFNE",
    "IFDEQ",
    "IFDNE",
    "FNX",
    "FXX",
    "FIELDS",
    "MATCH",
    "COUNT",
    "TYPE",
    "LIMIT",
    "BYSCORE",
    "BYLEX",
    "REV",
    "WITHSCORES",
    "WITHSCORE",
    "WITHVALUES",
    "WEIGHTS",
    "AGGREGATE",
    "SUM",
    "MIN",
    "MAX",
    "STORE",
    "BY",
    "ASC",
    "DESC",
    "ALPHA",
    "LEFT",
    "RIGHT",
    "BEFORE",
    "AFTER",
    "RANK",
    "MAXLEN",
    "IDX",
    "LEN",
    "MINMATCHLEN",
    "WITHMATCHLEN",
    "AND",
    "OR",
    "NOT",
    "XOR",
    "BIT",
    "BYTE",
    "DB",
    "REPLACE",
    "ENCODING",
    "ASYNC",
    "string",
    "h->*",
    "*->f",
];

fn word() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        30 => select(WORDS).prop_map(|word| Bytes::from_static(word.as_bytes())),
        1 => vec(any::<u8>(), 0..40).prop_map(Bytes::from),
        1 => any::<i64>().prop_filter("too much of a thing", |n| !(1_000_000..1 << 53).contains(&n.unsigned_abs()))
            .prop_map(|n| Bytes::from(n.to_string())),
    ]
}

/// A command of the right number of arguments, most of which have the right keys in front.
fn call() -> impl Strategy<Value = Vec<Bytes>> {
    (any::<Index>(), vec(word(), 0..8), vec(word(), 0..6)).prop_map(|(which, all, more)| {
        let all_commands: Vec<_> = Options::default().commands.iter().collect();
        let spec = which.get(&all_commands);
        let n = spec.arity.unsigned_abs() as usize;
        let mut words = vec![Bytes::from_static(spec.name.as_bytes())];
        words.extend(all);
        words.resize(n, Bytes::from_static(b"1"));
        if spec.arity < 0 {
            words.extend(more);
        }
        words
    })
}

/// About how many bytes a reply takes.
fn size(reply: &Reply) -> usize {
    let pairs = |pairs: &[(Reply, Reply)]| pairs.iter().map(|(a, b)| size(a) + size(b)).sum();
    let inside: usize = match reply {
        Reply::Bulk(bytes) => bytes.len(),
        Reply::Text(text) => text.len(),
        Reply::Error(text) => text.len(),
        Reply::Array(all) | Reply::Set(all) => all.iter().map(size).sum(),
        Reply::Map(all) | Reply::Pairs(all) => pairs(all),
        _ => 0,
    };
    size_of::<Reply>() + inside
}

/// The largest reply: a million of the elements that a negative count may ask for.
const REPLY_BYTES_MAX: usize = 128 * 1024 * 1024;

fn run(db: &Database, commands: Vec<Vec<Bytes>>) -> Vec<Reply> {
    let calls = commands.into_iter();
    let calls = calls.map(|words| db.commands().call(words).unwrap());
    let steps = calls.filter_map(Result::ok).map(Step::Call);
    let transaction = Transaction::default().with_steps(steps);
    db.transact(transaction.lenient()).unwrap().replies
}

#[test]
fn no_arguments_are_too_strange() {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 1_000;
    }
    let beginning = BEGINNING.map(|line| {
        let words = line
            .split(' ')
            .map(|word| Bytes::from_static(word.as_bytes()));
        words.collect::<Vec<_>>()
    });
    proptest!(config, |(calls in vec(call(), 1..200))| {
        let db = Database::in_memory(&Options::default()).unwrap();
        let begun = run(&db, beginning.to_vec());
        prop_assert!(begun.iter().all(|reply| !matches!(reply, Reply::Error(_))), "{begun:?}");
        for words in calls {
            let shown = format!("{words:?}");
            for reply in run(&db, vec![words]) {
                prop_assert!(size(&reply) <= REPLY_BYTES_MAX, "{shown}: {} bytes", size(&reply));
            }
        }
        db.close().unwrap();
    });
}
