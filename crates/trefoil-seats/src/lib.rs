//! Seats of sections: reserved, held, sold and released, each change with its event.
//!
//! This is an application of Trefoil: the commands `SEATS.*`, and a timer that ends holds. It uses
//! the public interface of `trefoil-state` alone.
//!
//! ```text
//! command    the commands: their arguments and their replies
//! names      ids, and what keys, streams and tags are made of them
//! seat       a seat of a section, and the states it can be in
//! best       the best of the seats that are available
//! map        the states of all seats of a section, two bits each
//! counts     how many seats are in which state
//! fields     fields of hashes, read by name and type; json: values as JSON
//! section    a section: its configuration, its map, its counts
//! listing    the seats of a section, to be shown
//! owners     who has a seat, and how many seats somebody has
//! booking    what is remembered of a booking
//! events     what the events say
//! open       opening and changing a section
//! reserve    reserving seats; settle: selling, releasing; holds: ending what ran out
//! check      whether everything agrees, and replay: the keys that events lead to
//! refusal    why a command on seats is refused; limits: how much there may be of everything
//! ```
//!
//! The keys are read and written as the plain commands do, so plain commands read the same data.
//! Whatever changes seats first reads and checks all that it is going to change: after that it
//! cannot be refused any more.

use trefoil_state::{Application, CommandError};

mod best;
mod booking;
mod check;
mod command;
mod counts;
mod events;
mod fields;
mod holds;
mod json;
pub mod limits;
mod listing;
mod map;
mod names;
mod open;
mod owners;
mod refusal;
mod replay;
mod reserve;
mod seat;
mod section;
mod settle;

pub(crate) use booking::{Booking, Status};
pub(crate) use check::{check_event, check_section};
pub(crate) use counts::{CountedSeats, SeatCounts};
pub(crate) use listing::MappedSeat;
pub(crate) use names::{EventNames, SectionNames, check_id, check_prefix};
pub(crate) use open::{SectionOpening, open};
pub use replay::{SeatValue, replay_seats};
pub(crate) use reserve::{SeatChoice, SeatRequest, reserve};
pub(crate) use seat::Seat;
pub(crate) use section::{Section, sections};
pub(crate) use settle::{finalize, release};

/// What a command on seats comes to, or why it does not.
type Result<T, E = CommandError> = std::result::Result<T, E>;

/// Seats as an application: its commands, and the timer that ends holds.
pub static SEATS: Application = Application::new(
    "seats",
    "See docs/seats.md",
    command::COMMANDS,
    &[&holds::HOLD_ENDS],
);
