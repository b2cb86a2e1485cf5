//! Random numbers from a printed seed; `TREFOIL_TEST_SEED` repeats a run.

use std::time::SystemTime;

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        let given = std::env::var("TREFOIL_TEST_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
            now.subsec_nanos().into()
        });
        eprintln!("TREFOIL_TEST_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}
