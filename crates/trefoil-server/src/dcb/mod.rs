//! `/dcb/read` and `/dcb/append`: the small contract that tools of the DCB community drive.
//!
//! It is the same log as everywhere else. What the contract has no word for, such as streams and
//! ids, is there but not shown.

mod append;
mod read;

pub(crate) use append::answer as append;
pub(crate) use read::answer as read;
