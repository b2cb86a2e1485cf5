//! Seats: sections of an event, reservations, and what becomes of them.
//!
//! ```text
//! open       sections: to open, to list, to count
//! book       bookings: to make, to sell, to release, to look up
//! show       the map of a section, and whether everything agrees
//! options    ids, numbers and the prefix among the arguments
//! replies    the replies about bookings and counts
//! ```

use trefoil_state::{
    Access::{FastRead, Read, Write},
    Keys, Spec,
};

mod book;
mod open;
mod options;
mod replies;
mod show;

#[cfg(test)]
mod tests;

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("seats.init", -7, Write, Keys::NONE, open::init),
    Spec::new("seats.sections", -2, Read, Keys::NONE, open::sections),
    Spec::new("seats.stats", -2, FastRead, Keys::NONE, open::stats),
    Spec::new("seats.map", -3, Read, Keys::NONE, show::map),
    Spec::new("seats.check", -2, Read, Keys::NONE, show::check),
    Spec::new("seats.reserve", -7, Write, Keys::NONE, book::reserve),
    Spec::new("seats.finalize", -3, Write, Keys::NONE, book::finalize),
    Spec::new("seats.release", -3, Write, Keys::NONE, book::release),
    Spec::new("seats.booking", -2, FastRead, Keys::NONE, book::booking),
];
