//! The examples print what they promise.

use std::process::Command;

/// Runs an example, which `cargo test` has built beside this test.
fn check(name: &str, expected: &str) {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap().parent().unwrap().join("examples");
    let output = match Command::new(built.join(name)).output() {
        Ok(output) => output,
        Err(error) => panic!("{name}: {error}; `cargo build -p trefoil --examples` builds it"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{name}");
}

#[test]
fn commit() {
    check(
        "commit",
        "commit 1 ends at position 2\n\
         refused: the event at 1 has this address\n\
         position 3, sent before: false\n\
         position 3, sent before: true\n\
         1 Opened\n\
         3 Deposited\n",
    );
}

#[test]
fn decision() {
    check(
        "decision",
        "ada: enrolled\n\
         bob: enrolled\n\
         ada: is enrolled already\n\
         eve: the course is full\n\
         physics has 2 students\n",
    );
}

#[test]
fn projection() {
    check(
        "projection",
        "counted 2 events, up to Some(2)\n\
         counted 1 events, up to Some(3)\n\
         counted 0 events, up to Some(3)\n\
         refused: 3 was counted\n\
         ada: 2\n\
         bob: 1\n",
    );
}

#[test]
fn subscription() {
    check(
        "subscription",
        "1 order-1\n\
         2 order-2\n\
         3 order-3\n\
         the end: the database is closed\n",
    );
}

#[test]
fn transaction() {
    check(
        "transaction",
        "ada got one, 1 left: event 1\n\
         bob got one, 0 left: event 2\n\
         eve got none: it is sold out\n\
         visits: Some(1)\n\
         visits: Some(1)\n\
         refused: command 1 failed: WRONGTYPE Operation against a key holding the wrong kind of \
         value\n\
         visits: Some(\"1\")\n",
    );
}
