//! Bitmaps, which are strings: the first bit is the most significant one of the first byte.

mod bit;
mod field;
mod operation;
mod range;
mod walk;

use super::{Access, Keys, Spec};

/// The commands of this family.
pub(super) const COMMANDS: &[Spec] = &[
    Spec::new("setbit", 4, Access::Write, Keys::ONE, bit::setbit),
    Spec::new("getbit", 3, Access::FastRead, Keys::ONE, bit::getbit),
    Spec::new("bitcount", -2, Access::Read, Keys::ONE, walk::bitcount),
    Spec::new("bitpos", -3, Access::Read, Keys::ONE, walk::bitpos),
    Spec::new(
        "bitop",
        -4,
        Access::Write,
        Keys::at(2, -1, 1),
        operation::bitop,
    ),
    Spec::new("bitfield", -2, Access::Write, Keys::ONE, field::bitfield),
    Spec::new(
        "bitfield_ro",
        -2,
        Access::FastRead,
        Keys::ONE,
        field::bitfield_ro,
    ),
];

#[cfg(test)]
mod tests;
