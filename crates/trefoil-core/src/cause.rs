//! What caused an error, kept so that it can be shared.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// The error behind an [`Error`](enum@crate::Error). It is shared by the clones of that error, and is what its
/// [`source`](StdError::source) returns.
#[derive(Clone)]
pub struct Cause(Arc<dyn StdError + Send + Sync>);

impl Cause {
    /// Returns a cause that is any error, or a text.
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }
}

/// An error of the operating system is known by its code, any other by its kind and its text.
impl From<&io::Error> for Cause {
    fn from(error: &io::Error) -> Self {
        Self(Arc::new(match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error.to_string()),
        }))
    }
}

impl Deref for Cause {
    type Target = dyn StdError + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}
