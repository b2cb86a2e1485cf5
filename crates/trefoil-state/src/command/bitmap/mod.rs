//! Bitmaps, which are strings: the first bit is the most significant one of the first byte.

mod bit;
mod field;
mod operation;
mod range;
mod walk;

use super::{CommandAccess, CommandSpec, Keys};

/// The commands of this family.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::new("setbit", 4, CommandAccess::Write, Keys::ONE, bit::setbit),
    CommandSpec::new("getbit", 3, CommandAccess::FastRead, Keys::ONE, bit::getbit),
    CommandSpec::new(
        "bitcount",
        -2,
        CommandAccess::Read,
        Keys::ONE,
        walk::bitcount,
    ),
    CommandSpec::new("bitpos", -3, CommandAccess::Read, Keys::ONE, walk::bitpos),
    CommandSpec::new(
        "bitop",
        -4,
        CommandAccess::Write,
        Keys::at(2, -1, 1),
        operation::bitop,
    ),
    CommandSpec::new(
        "bitfield",
        -2,
        CommandAccess::Write,
        Keys::ONE,
        field::bitfield,
    ),
    CommandSpec::new(
        "bitfield_ro",
        -2,
        CommandAccess::FastRead,
        Keys::ONE,
        field::bitfield_ro,
    ),
];

#[cfg(test)]
mod tests;
