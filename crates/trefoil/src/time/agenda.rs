//! What is to be cleaned of a database, and when.
//!
//! What is due stays known until it has been cleaned and it is known what is due next. So whenever a
//! database is closed, it is known when it must be opened again.

use parking_lot::Mutex;
use trefoil_state::{ExpiryPlace, GarbagePlace};

use crate::time::NEVER;

/// What is to be cleaned, and where that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chore {
    /// What has expired, and replies of transactions. There are none of before this time.
    Expiries {
        place: ExpiryPlace,
        replies: u64,
    },
    Garbage(GarbagePlace),
}

impl Chore {
    /// Returns the chore that does what either of two does.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Expiries { place, replies },
                Self::Expiries {
                    place: other,
                    replies: others,
                },
            ) => Self::Expiries {
                place: place.min(other),
                replies: replies.min(others),
            },
            (Self::Garbage(place), Self::Garbage(other)) => Self::Garbage(place.min(other)),
            // An agenda has chores of one kind.
            (chore, _) => chore,
        }
    }

    /// A chore of this kind that does nothing.
    fn nothing(&self) -> Self {
        match self {
            Self::Expiries { .. } => Self::Expiries {
                place: ExpiryPlace::end(),
                replies: u64::MAX,
            },
            Self::Garbage(_) => Self::Garbage(GarbagePlace::end()),
        }
    }
}

/// What of one kind is to be cleaned, and its deadline.
#[derive(Debug)]
pub(crate) struct Agenda {
    state: Mutex<AgendaState>,
}

#[derive(Debug)]
struct AgendaState {
    time: u64,
    chore: Chore,
    /// Before cleaning has begun: when something is due, as the last closing of the database noted.
    told: Option<u64>,
    /// What is being cleaned, or is about to be, and since when it is due.
    begun: Option<(u64, Chore)>,
    /// What failed is not tried again before this time.
    not_before: u64,
}

impl Agenda {
    /// What is due is not known: everything is to be looked at, at once. If the database is closed
    /// before that, the deadline is still the one that was `told`.
    pub(crate) fn new(all: Chore, told: u64) -> Self {
        Self {
            state: Mutex::new(AgendaState {
                time: 0,
                chore: all,
                told: Some(told),
                begun: None,
                not_before: 0,
            }),
        }
    }

    /// Notes that something is due at a time.
    pub(crate) fn note(&self, time: u64, chore: Chore) {
        let mut state = self.state.lock();
        state.told = state.told.map(|told| told.min(time));
        state.add(time, chore);
    }

    /// Returns when something is due that is not cleaned yet.
    pub(crate) fn deadline(&self) -> u64 {
        let state = self.state.lock();
        let begun = state.begun.as_ref().map_or(NEVER, |(time, _)| *time);
        state.told.unwrap_or(state.time.min(begun))
    }

    /// Returns when cleaning must begin; never, while it is under way.
    pub(crate) fn next_start(&self) -> u64 {
        let state = self.state.lock();
        match state.begun {
            Some(_) => NEVER,
            None => state.time.max(state.not_before),
        }
    }

    /// Begins to clean. Returns what is to be done.
    pub(crate) fn begin(&self) -> Chore {
        let mut state = self.state.lock();
        let AgendaState { time, chore, .. } = &mut *state;
        let nothing = chore.nothing();
        let all = (
            std::mem::replace(time, NEVER),
            std::mem::replace(chore, nothing),
        );
        let all = match state.begun.take() {
            Some((time, chore)) => (time.min(all.0), chore.or(all.1)),
            None => all,
        };
        state.begun.insert(all).1.clone()
    }

    /// What was begun is done, but for this, which is due then.
    pub(crate) fn finish(&self, time: u64, rest: Chore) {
        let mut state = self.state.lock();
        state.begun = None;
        state.told = None;
        state.not_before = 0;
        state.add(time, rest);
    }

    /// What was begun, if anything, is not done. It is tried again at this time.
    pub(crate) fn give_up(&self, not_before: u64) {
        let mut state = self.state.lock();
        if let Some((time, chore)) = state.begun.take() {
            state.not_before = not_before;
            state.add(time, chore);
        }
    }
}

impl AgendaState {
    fn add(&mut self, time: u64, chore: Chore) {
        self.time = self.time.min(time);
        let nothing = chore.nothing();
        let before = std::mem::replace(&mut self.chore, nothing);
        self.chore = chore.or(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiries(time: u64) -> Chore {
        Chore::Expiries {
            place: ExpiryPlace::at(time),
            replies: time,
        }
    }

    #[test]
    fn what_is_due_stays_known_until_it_is_done() {
        let agenda = Agenda::new(expiries(0), 0);
        assert_eq!((agenda.deadline(), agenda.next_start()), (0, 0));
        assert_eq!(agenda.begin(), expiries(0));
        assert_eq!((agenda.deadline(), agenda.next_start()), (0, NEVER));
        agenda.finish(50, expiries(50));
        assert_eq!((agenda.deadline(), agenda.next_start()), (50, 50));
        assert_eq!(agenda.begin(), expiries(50));
        // It is not begun before the database is closed: the deadline is still known.
        assert_eq!(agenda.deadline(), 50);
        agenda.give_up(70);
        assert_eq!((agenda.deadline(), agenda.next_start()), (50, 70));
        assert_eq!(agenda.begin(), expiries(50));
        agenda.finish(NEVER, expiries(NEVER));
        assert_eq!((agenda.deadline(), agenda.next_start()), (NEVER, NEVER));
    }

    #[test]
    fn what_becomes_due_meanwhile_is_not_lost() {
        let agenda = Agenda::new(expiries(0), 0);
        agenda.begin();
        agenda.note(20, expiries(20));
        agenda.note(30, expiries(30));
        assert_eq!(agenda.deadline(), 0);
        agenda.finish(90, expiries(90));
        assert_eq!(agenda.deadline(), 20);
        assert_eq!(agenda.begin(), expiries(20));
        agenda.note(10, expiries(10));
        assert_eq!(agenda.deadline(), 10);
        assert_eq!(agenda.begin(), expiries(10), "begun again, it is all of it");
        agenda.finish(NEVER, expiries(NEVER));
        assert_eq!(agenda.deadline(), NEVER);
    }

    #[test]
    fn what_nobody_has_looked_at_is_due_as_was_told() {
        let agenda = Agenda::new(expiries(0), NEVER);
        assert_eq!((agenda.deadline(), agenda.next_start()), (NEVER, 0));
        agenda.begin();
        assert_eq!(agenda.deadline(), NEVER);
        agenda.note(40, expiries(40));
        assert_eq!(agenda.deadline(), 40);
        agenda.give_up(5);
        assert_eq!((agenda.deadline(), agenda.next_start()), (40, 5));
        assert_eq!(agenda.begin(), expiries(0));
        agenda.finish(20, expiries(20));
        assert_eq!(agenda.deadline(), 20);
    }
}
