//! Why a command did not do what it was asked to.

use std::borrow::Cow;

use trefoil_core::Error;

use crate::keyspace::damaged;

/// What a command replies, or why it does not.
pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

/// Why a command did not do what it was asked to.
#[derive(Debug, Clone)]
pub enum CommandError {
    /// The command itself is at fault; the text is Redis' own, with its code.
    Refused(Cow<'static, str>),
    /// The database is.
    Engine(Error),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl CommandError {
    /// Returns a refusal: the command itself is at fault.
    pub const fn refused(text: &'static str) -> Self {
        Self::Refused(Cow::Borrowed(text))
    }

    /// Returns a refusal with a text that was made for it.
    pub const fn because(text: String) -> Self {
        Self::Refused(Cow::Owned(text))
    }

    /// Returns what is wrong where no command can be at fault.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Engine(error) => error,
            Self::Refused(text) => damaged(&text),
        }
    }
}

/// The key holds something of another type.
pub(crate) const WRONG_TYPE: CommandError =
    CommandError::refused("WRONGTYPE Operation against a key holding the wrong kind of value");
/// The options of the command make no sense.
pub const SYNTAX: CommandError = CommandError::refused("ERR syntax error");
/// An argument should be an integer.
pub(crate) const NOT_INTEGER: CommandError =
    CommandError::refused("ERR value is not an integer or out of range");
/// An argument should be a number.
pub(crate) const NOT_FLOAT: CommandError = CommandError::refused("ERR value is not a valid float");
/// The key should be there.
pub(crate) const NO_SUCH_KEY: CommandError = CommandError::refused("ERR no such key");
/// An index is not one of the value's.
pub(crate) const OUT_OF_RANGE: CommandError = CommandError::refused("ERR index out of range");
/// The result of adding integers does not fit.
pub(crate) const OVERFLOW: CommandError =
    CommandError::refused("ERR increment or decrement would overflow");
