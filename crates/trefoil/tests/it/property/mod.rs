//! Random operations: the database and the model must agree on every answer and every error.
//!
//! A failing sequence is shrunk and printed. More cases: `PROPTEST_CASES=1000 cargo test -p trefoil`.

mod committing;
mod driver;
mod ops;
mod reading;
mod resolve;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use trefoil::Options;

use driver::Driver;

fn check(options: &Options, cases: u32, length: usize) {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config.max_shrink_iters = 3000;
    let sequences = proptest::collection::vec(ops::op(), 1..length);
    let result = TestRunner::new(config).run(&sequences, |sequence| {
        let mut driver = Driver::new(options.clone());
        for op in &sequence {
            driver.apply(op)?;
        }
        driver.finish()
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Everything small, so that moves of the tail, merges, rotation and compression happen all the
/// time and reads cross all of them.
#[test]
fn a_database_with_tiny_parts_agrees_with_the_model() {
    let options = Options::default()
        .with_tail_events_max(8)
        .with_segment_bytes_max(4096)
        .with_plain_segments(1);
    check(&options, 200, 160);
}

/// The parts as they are in production: everything is in the tail and in one segment.
#[test]
fn a_database_with_default_parts_agrees_with_the_model() {
    check(&Options::default(), 80, 120);
}
