//! Time: the clock, what is due when, and who is woken for it.

pub(crate) mod agenda;
pub(crate) mod alarm;
pub(crate) mod clock;
pub(crate) mod due;
pub(crate) mod wake;
