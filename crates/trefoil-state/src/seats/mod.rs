//! Seats of sections: reserved, held, sold and released, each change with its event.
//!
//! ```text
//! names      ids, and what keys, streams and tags are made of them
//! seat       a seat of a section, and the states it can be in
//! best       the best of the seats that are available
//! map        the states of all seats of a section, two bits each
//! counts     how many seats are in which state
//! hashes     fields of hashes, read and written by name; json: values as JSON
//! section    a section: its configuration, its map, its counts
//! listing    the seats of a section, to be shown
//! owners     who has a seat, and how many seats somebody has
//! booking    what is remembered of a booking
//! events     what the events say
//! open       opening and changing a section
//! reserve    reserving seats; settle: selling, releasing; holds: ending what ran out
//! check      whether everything agrees, and replay: the keys that events lead to
//! refusal    why a command on seats is refused
//! ```
//!
//! The keys are read and written as the plain commands do, so plain commands read the same data.
//! Whatever changes seats first reads and checks all that it is going to change: after that it
//! cannot be refused any more.

mod best;
mod booking;
mod check;
mod counts;
mod events;
mod hashes;
mod holds;
mod json;
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
pub(crate) use counts::{Counted, Counts};
pub(crate) use holds::end_hold;
pub(crate) use listing::MappedSeat;
pub(crate) use names::{EventNames, SectionNames, check_id, check_prefix};
pub(crate) use open::{Opening, open};
pub use replay::{SeatValue, replay_seats};
pub(crate) use reserve::{Choice, Request, reserve};
pub(crate) use seat::Seat;
pub(crate) use section::{Section, sections};
pub(crate) use settle::{finalize, release};
