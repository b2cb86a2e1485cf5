//! Random numbers from a printed seed; `TREFOIL_TEST_SEED` repeats a run.

use fastrand::Rng;

/// Returns a generator and prints its seed.
pub(crate) fn seeded() -> Rng {
    let given = std::env::var("TREFOIL_TEST_SEED").ok();
    let given = given.and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("TREFOIL_TEST_SEED={seed}");
    Rng::with_seed(seed)
}
