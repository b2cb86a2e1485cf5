//! Seats: sections of an event, reservations, and what becomes of them.
//!
//! ```text
//! open       sections: to open, to list, to count
//! book       bookings: to make, to sell, to release, to look up
//! show       the map of a section, and whether everything agrees
//! options    ids, numbers and the prefix among the arguments
//! replies    the replies about bookings and counts
//! ```

use trefoil_core::Scope;
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
    CommandSpec::new("seats.init", -7, Write, Keys::NONE, open::init).described(
        "event section ROWS n SEATS n [PRICE n] [MAXBOOKING n] [MAXBUYER n] [PREFIX prefix]",
        "Opens a section with rows of numbered seats, or changes it",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.sections", -2, Read, Keys::NONE, open::sections).described(
        "event [PREFIX prefix]",
        "Lists the sections of an event",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.stats", -2, FastRead, Keys::NONE, open::stats).described(
        "event [section] [PREFIX prefix]",
        "Counts the seats of an event or a section",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.map", -3, Read, Keys::NONE, show::map).described(
        "event section [ROW n | RANGE first last] [OWNERS] [PREFIX prefix]",
        "Shows the seats of a section, row by row",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.check", -2, Read, Keys::NONE, show::check).described(
        "event [section] [PREFIX prefix]",
        "Compares seat maps, counts and bookings, and lists what differs",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.reserve", -7, Write, Keys::NONE, book::reserve).described(
        "event section booking buyer <SEATS seat... | BEST n> [HOLD seconds | HOLDMS milliseconds] [MAX n] [PREFIX prefix]",
        "Reserves seats, by their numbers or the best ones",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.finalize", -3, Write, Keys::NONE, book::finalize).described(
        "booking buyer [PREFIX prefix]",
        "Sells the seats of a booking",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.release", -3, Write, Keys::NONE, book::release).described(
        "booking buyer [PREFIX prefix]",
        "Gives the seats of a booking back",
    )
    .scoped(Scope::Seats),
    CommandSpec::new("seats.booking", -2, FastRead, Keys::NONE, book::booking).described(
        "booking [PREFIX prefix]",
        "Returns a booking",
    )
    .scoped(Scope::Seats),
];
