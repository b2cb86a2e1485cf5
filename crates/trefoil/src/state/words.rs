//! Commands on the state written as words: `cmd!(db, "HSET", key, "guest", 7)`.

use bytes::Bytes;
use trefoil_core::{Error, Result};
use trefoil_state::{Call, CommandError};

use crate::Database;

/// Something that can be a word of a command: text, bytes or a number.
pub trait Word {
    /// Returns the bytes of the word.
    fn into_word(self) -> Bytes;
}

macro_rules! words_of_bytes {
    ($($kind:ty),*) => {$(
        impl Word for $kind {
            fn into_word(self) -> Bytes {
                Bytes::from(self)
            }
        }
    )*};
}

macro_rules! words_of_borrowed_bytes {
    ($($kind:ty),*) => {$(
        impl Word for $kind {
            fn into_word(self) -> Bytes {
                Bytes::copy_from_slice(self.as_ref())
            }
        }
    )*};
}

macro_rules! words_of_numbers {
    ($($kind:ty),*) => {$(
        impl Word for $kind {
            fn into_word(self) -> Bytes {
                Bytes::from(self.to_string())
            }
        }
    )*};
}

words_of_bytes!(Bytes, String, Vec<u8>);
words_of_borrowed_bytes!(&str, &String, &[u8], &Bytes);
words_of_numbers!(i32, i64, u32, u64, usize, f64);

impl Database {
    /// Returns the command that these words say, its name first, to be executed by
    /// [`Self::transact`] or, if it only reads, by [`Self::look`]. [`cmd!`](crate::cmd) is a shorter
    /// way to write it.
    pub fn call(&self, words: Vec<Bytes>) -> Result<Call> {
        let unknown = |words: &[Bytes]| {
            let name = words.first().map(|name| String::from_utf8_lossy(name));
            Error::invalid(format!("unknown command '{}'", name.unwrap_or_default()))
        };
        let Some(spec) = words.first().and_then(|name| self.commands().find(name)) else {
            return Err(unknown(&words));
        };
        spec.call(words).map_err(|failure| match failure {
            CommandError::Refused(text) => Error::invalid(text),
            CommandError::Engine(error) => error,
        })
    }
}

/// Returns a command on the state, or an error if its name or the number of its words is wrong.
///
/// ```
/// use trefoil::{Database, Options, Transaction, cmd};
///
/// # fn main() -> trefoil::Result<()> {
/// let db = Database::in_memory(&Options::default())?;
/// let key = format!("seat:{}", 7);
/// let booked = Transaction::new()
///     .call(cmd!(db, "HSET", &key, "guest", "ada")?)
///     .call(cmd!(db, "INCRBY", "sold", 1)?);
/// let executed = db.transact(booked)?;
/// assert_eq!(executed.replies[1].as_int(), Some(1));
///
/// let replies = db.look(&[cmd!(db, "HGET", &key, "guest")?])?;
/// assert_eq!(replies[0].as_str(), Some("ada"));
///
/// assert!(cmd!(db, "GET").is_err());
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! cmd {
    ($database:expr, $($word:expr),+ $(,)?) => {
        $database.call(vec![$($crate::Word::into_word($word)),+])
    };
}
