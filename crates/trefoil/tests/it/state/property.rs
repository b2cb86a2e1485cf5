//! Random transactions against the same commands on a plain map: whatever is checkpointed, cleaned,
//! reopened or rebuilt in between, the replies are the same.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use trefoil::{Call, CommandError, Database, Error, Options, Reply, Step, Transaction, tools};
use trefoil_state::{CommandMoment, Keyspace, MemorySpace};

use crate::claim;

/// What can happen between two transactions.
#[derive(Debug, Clone)]
enum Action {
    Transact {
        commands: Vec<String>,
        is_strict: bool,
    },
    Checkpoint,
    Compact,
    Reopen,
    Rebuild,
}

fn command() -> impl Strategy<Value = String> {
    let key = || prop::sample::select(vec!["a", "b", "c"]);
    let field = || prop::sample::select(vec!["f", "g", "h", "i"]);
    let number = || -3i64..4;
    let place = || 0u32..70_000;
    prop_oneof![
        (key(), number()).prop_map(|(key, n)| format!("SET {key} {n}")),
        (key(), place()).prop_map(|(key, n)| format!("SETBIT {key} {n} 1")),
        (key(), place(), 0u32..16)
            .prop_map(|(key, n, v)| format!("BITFIELD {key} SET u4 #{n} {v}")),
        (key(), place()).prop_map(|(key, n)| format!("SETRANGE {key} {n} text")),
        (key(), number()).prop_map(|(key, n)| format!("INCRBY {key} {n}")),
        (key(), field(), number()).prop_map(|(key, f, n)| format!("HINCRBY {key} {f} {n}")),
        (key(), field()).prop_map(|(key, f)| format!("HDEL {key} {f}")),
        (key(), field(), number()).prop_map(|(key, f, n)| format!("ZADD {key} {n} {f}")),
        (key(), field()).prop_map(|(key, f)| format!("ZREM {key} {f}")),
        (key(), field()).prop_map(|(key, f)| format!("SADD {key} {f}")),
        (key(), field()).prop_map(|(key, f)| format!("SREM {key} {f}")),
        (key(), number()).prop_map(|(key, n)| format!("RPUSH {key} {n}")),
        key().prop_map(|key| format!("LPOP {key}")),
        (key(), field(), number()).prop_map(|(key, f, n)| format!("LINSERT {key} BEFORE {n} {f}")),
        (key(), number()).prop_map(|(key, n)| format!("RPUSH {key} {}", many("element", n))),
        (key(), number()).prop_map(|(key, n)| format!("ZADD {key} {}", many_scored(n))),
        (key(), 0u32..300).prop_map(|(key, n)| format!("LTRIM {key} {} -{n}", n / 3)),
        (key(), 0u32..300).prop_map(|(key, n)| format!("LSET {key} {n} {}", "long".repeat(99))),
        (key(), 0u32..300).prop_map(|(key, n)| format!("ZREMRANGEBYRANK {key} {n} {}", 2 * n)),
        key().prop_map(|key| format!("DEL {key}")),
        (key(), key()).prop_map(|(from, to)| format!("RENAME {from} {to}")),
        (key(), key()).prop_map(|(from, to)| format!("COPY {from} {to} REPLACE")),
        key().prop_map(|key| format!("EXPIREAT {key} 9999999999")),
        key().prop_map(|key| format!("PERSIST {key}")),
        Just("FLUSHDB".to_owned()),
    ]
}

/// Elements that take more than one block.
fn many(name: &str, n: i64) -> String {
    let elements = (0..200).map(|index| format!("{name}-{}", index * n));
    elements.collect::<Vec<_>>().join(" ")
}

/// Members with scores that take more than one block.
fn many_scored(n: i64) -> String {
    let pairs = (0..200).map(|index| format!("{} member-{index}", index * 77 % 200 * n));
    pairs.collect::<Vec<_>>().join(" ")
}

/// What reads everything there is.
const QUESTIONS: [&str; 8] = [
    "DBSIZE",
    "TYPE",
    "GET",
    "HGETALL",
    "SMEMBERS",
    "LRANGE",
    "ZRANGE",
    "EXPIRETIME",
];

fn questions() -> Vec<Call> {
    let mut questions = vec![call("DBSIZE")];
    for key in ["a", "b", "c"] {
        for name in &QUESTIONS[1..] {
            let rest = if name.ends_with("RANGE") { " 0 -1" } else { "" };
            questions.push(call(&format!("{name} {key}{rest}")));
        }
    }
    questions
}

fn call(line: &str) -> Call {
    let words = line
        .split_whitespace()
        .map(|word| Bytes::from(word.to_owned()));
    Call::new(words.collect()).unwrap().unwrap()
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => (vec(command(), 1..6), any::<bool>())
            .prop_map(|(commands, is_strict)| Action::Transact { commands, is_strict }),
        2 => Just(Action::Checkpoint),
        1 => Just(Action::Compact),
        1 => Just(Action::Reopen),
        1 => Just(Action::Rebuild),
    ]
}

/// The same commands on a plain map.
#[derive(Default)]
struct Model(MemorySpace);

impl Model {
    fn run(&mut self, call: &Call) -> Reply {
        let before = self.0.clone();
        let mut keyspace = Keyspace::new(
            &mut self.0,
            CommandMoment {
                now: 1,
                seed: 1,
                position: 1,
            },
        )
        .unwrap();
        match call.run(&mut keyspace) {
            Ok(reply) => reply,
            Err(CommandError::Refused(text)) => {
                self.0 = before;
                Reply::Error(text)
            }
            Err(CommandError::Engine(error)) => panic!("{error}"),
        }
    }

    /// The replies, or the index of the command that fails.
    fn transact(&mut self, calls: &[Call], is_strict: bool) -> Result<Vec<Reply>, usize> {
        let before = self.0.clone();
        let mut replies = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let reply = self.run(call);
            if is_strict && matches!(reply, Reply::Error(_)) {
                self.0 = before;
                return Err(index);
            }
            replies.push(reply);
        }
        Ok(replies)
    }
}

fn check(actions: &[Action]) {
    let directory = tempfile::tempdir().unwrap();
    let open = || Database::open(directory.path(), &Options::default()).unwrap();
    let mut db = open();
    let mut model = Model::default();
    for action in actions {
        match action {
            Action::Transact {
                commands,
                is_strict,
            } => {
                let calls: Vec<Call> = commands.iter().map(|line| call(line)).collect();
                let expected = model.transact(&calls, *is_strict);
                let mut transaction =
                    Transaction::new().with_steps(calls.into_iter().map(Step::Call));
                transaction.is_strict = *is_strict;
                let replies = match db.transact(transaction) {
                    Ok(executed) => Ok(executed.replies),
                    Err(Error::CommandFailed { index, .. }) => Err(index),
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(replies, expected, "{commands:?}");
            }
            Action::Checkpoint => db.checkpoint().unwrap(),
            Action::Compact => db.compact().unwrap(),
            Action::Reopen | Action::Rebuild => {
                db.close().unwrap();
                if matches!(action, Action::Rebuild) {
                    tools::repair(claim(directory.path()), &Options::default()).unwrap();
                }
                db = open();
            }
        }
        let calls = questions();
        let expected: Vec<Reply> = calls.iter().map(|call| model.run(call)).collect();
        assert_eq!(db.look(&calls).unwrap(), expected, "after {action:?}");
    }
    db.close().unwrap();
    let report = tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_state_is_what_the_commands_make_of_a_plain_map(actions in vec(action(), 1..40)) {
        check(&actions);
    }
}
