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

pub(crate) use driver::Open;

use driver::Driver;

/// Runs this many sequences of up to `length` operations, each on a new place for a database.
pub(crate) fn check(place: impl Fn() -> Open, options: &Options, cases: u32, length: usize) {
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
        let mut driver = Driver::new(place(), options.clone());
        for op in &sequence {
            driver.apply(op)?;
        }
        driver.finish()
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
