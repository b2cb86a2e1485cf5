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
    CommandAccess::{FastRead, Read, Write},
    CommandSpec, Keys,
};

mod book;
mod open;
mod options;
mod replies;
mod show;

#[cfg(test)]
mod tests;

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("seats.init", -7, Write, Keys::NONE, open::init),
    CommandSpec::new("seats.sections", -2, Read, Keys::NONE, open::sections),
    CommandSpec::new("seats.stats", -2, FastRead, Keys::NONE, open::stats),
    CommandSpec::new("seats.map", -3, Read, Keys::NONE, show::map),
    CommandSpec::new("seats.check", -2, Read, Keys::NONE, show::check),
    CommandSpec::new("seats.reserve", -7, Write, Keys::NONE, book::reserve),
    CommandSpec::new("seats.finalize", -3, Write, Keys::NONE, book::finalize),
    CommandSpec::new("seats.release", -3, Write, Keys::NONE, book::release),
    CommandSpec::new("seats.booking", -2, FastRead, Keys::NONE, book::booking),
];
