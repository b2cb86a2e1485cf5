//! The limits of seats. What exceeds one is refused with an error that names it.

/// The longest id of an event, a section, a buyer or a booking, in bytes.
pub const SEAT_ID_BYTES_MAX: usize = 128;
/// The longest prefix of the keys, in bytes.
pub const SEAT_PREFIX_BYTES_MAX: usize = 64;
/// The most seats in one section.
pub const SEATS_PER_SECTION_MAX: usize = 1_000_000;
/// The most seats in one booking unless the section says otherwise.
pub const SEATS_PER_BOOKING_DEFAULT: usize = 4;
/// The highest value to which the limit on seats in one booking can be set.
pub const SEATS_PER_BOOKING_MAX: usize = 1000;
/// The highest price of a seat: that of a whole booking is exact as a JSON number as well.
pub const SEAT_PRICE_MAX: i64 = 1_000_000_000_000;
/// The longest hold, in milliseconds: a year.
pub const SEAT_HOLD_MILLIS_MAX: u64 = 365 * 24 * 60 * 60 * 1000;
/// How long a booking is kept after it was sold, released or expired, in milliseconds.
pub const BOOKING_KEPT_MILLIS: u64 = 30 * 24 * 60 * 60 * 1000;
