//! A field's value and when it expires, as they are stored.
//!
//! ```text
//! 0 value          a field that does not expire
//! 1 time value     one that does: 8 bytes, most significant first
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::Result;
use crate::keyspace::damaged;

const PLAIN: u8 = 0;
const EXPIRES: u8 = 1;

/// A field's value and when it expires, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HashField {
    pub(crate) value: Bytes,
    pub(crate) expires: Option<u64>,
}

impl HashField {
    /// Returns one that does not expire.
    pub(crate) fn plain(value: Bytes) -> Self {
        let expires = None;
        Self { value, expires }
    }

    pub(crate) fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(9 + self.value.len());
        match self.expires {
            Some(expires) => {
                out.put_u8(EXPIRES);
                out.put_u64(expires);
            }
            None => out.put_u8(PLAIN),
        }
        out.put_slice(&self.value);
        out.freeze()
    }

    pub(crate) fn decode(mut stored: Bytes) -> Result<Self> {
        let expires = match stored.try_get_u8() {
            Ok(PLAIN) => None,
            Ok(EXPIRES) => Some(stored.try_get_u64().map_err(|_| damaged("a field"))?),
            _ => return Err(damaged("a field").into()),
        };
        let value = stored;
        Ok(Self { value, expires })
    }
}
