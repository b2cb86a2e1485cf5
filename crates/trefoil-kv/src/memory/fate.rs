//! What becomes of each call.

use std::fmt::Debug;

use fastrand::Rng;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineCall {
    /// Something is read from a store.
    Read,
    /// A batch.
    Commit,
    /// A store is opened.
    Open,
    /// A store is removed.
    Erase,
    /// Objects are read or listed.
    ReadObject,
    /// An object is created, replaced or removed.
    ChangeObject,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is done.
    Done,
    /// It fails, and nothing is changed.
    FailsBefore,
    /// It is done, and fails all the same. Of what reads only, it fails.
    FailsAfter,
    /// A batch is neither applied nor answered before it is let go. Other calls are done.
    Held,
    /// A batch is applied, and answered when it is let go. Other calls are done.
    Late,
}

/// Decides about calls.
pub trait Fates: Send + Debug {
    /// Decides about the next call.
    fn next(&mut self, call: EngineCall) -> Fate;
}

/// Decides by chance, the same for the same seed.
#[derive(Debug, Clone)]
pub struct SeededFates {
    rng: Rng,
    /// One call in so many fails before it is done; 0: none.
    pub fails_before: u32,
    /// One call in so many is done and fails; 0: none.
    pub fails_after: u32,
    /// One batch in so many is held back; 0: none. Whoever waits for it waits until it is let go.
    pub held: u32,
    /// One batch in so many is answered late; 0: none.
    pub late: u32,
}

impl SeededFates {
    /// Returns fates of this seed, under which every call is done.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            fails_before: 0,
            fails_after: 0,
            held: 0,
            late: 0,
        }
    }
}

impl Fates for SeededFates {
    fn next(&mut self, _call: EngineCall) -> Fate {
        let fates = [
            (self.fails_before, Fate::FailsBefore),
            (self.fails_after, Fate::FailsAfter),
            (self.held, Fate::Held),
            (self.late, Fate::Late),
        ];
        for (one_in, fate) in fates {
            if one_in > 0 && self.rng.u32(0..one_in) == 0 {
                return fate;
            }
        }
        Fate::Done
    }
}

/// Lets some calls pass, then one has a fate of its own, and all later ones fail: as when a process is
/// killed or a cable is cut.
#[derive(Debug, Clone)]
pub struct CutOff {
    /// How many calls are still done.
    pub left: u64,
    /// What becomes of the next one.
    pub last: Fate,
    is_cut: bool,
}

impl CutOff {
    /// Returns fates under which `left` calls are done and the next has the fate `last`.
    pub fn after(left: u64, last: Fate) -> Self {
        Self {
            left,
            last,
            is_cut: false,
        }
    }
}

impl Fates for CutOff {
    fn next(&mut self, _call: EngineCall) -> Fate {
        if self.is_cut {
            return Fate::FailsBefore;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Fate::Done
            }
            None => {
                self.is_cut = true;
                self.last
            }
        }
    }
}
