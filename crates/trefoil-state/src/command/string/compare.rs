//! Conditions on the bytes of a string, and the digest by which long ones are compared.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::command::arguments::{ArgumentReader, is_word};
use crate::error::{CommandError, Result, SYNTAX};
use crate::keyspace::Keyspace;
use crate::reply::Reply;
use crate::string::StoredString;

/// Bytes of a digest as text.
const DIGEST_BYTES: usize = 16;

/// What a string is compared with, and whether it is to be that or anything else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StringComparison<'a> {
    with: &'a Bytes,
    is_digest: bool,
    is_equal: bool,
}

impl<'a> StringComparison<'a> {
    /// `IFEQ value`, `IFNE value`, `IFDEQ digest` or `IFDNE digest`; `None` if it is another word.
    pub(crate) fn take(word: &[u8], rest: &mut ArgumentReader<'a>) -> Result<Option<Self>> {
        const WORDS: [(&str, bool, bool); 4] = [
            ("IFEQ", false, true),
            ("IFNE", false, false),
            ("IFDEQ", true, true),
            ("IFDNE", true, false),
        ];
        let found = WORDS.iter().find(|(name, ..)| is_word(word, name));
        let Some((_, is_digest, is_equal)) = found else {
            return Ok(None);
        };
        let with = rest.word().ok_or(SYNTAX)?;
        let is_digest_text = with.len() == DIGEST_BYTES && with.iter().all(u8::is_ascii_hexdigit);
        if *is_digest && !is_digest_text {
            return Err(CommandError::refused(
                "ERR a digest must be exactly 16 hexadecimal characters",
            ));
        }
        Ok(Some(Self {
            with,
            is_digest: *is_digest,
            is_equal: *is_equal,
        }))
    }

    /// Returns whether a string is as it is to be. One that is not there equals nothing.
    pub(crate) fn is_met(
        &self,
        keyspace: &Keyspace<'_>,
        text: Option<&StoredString>,
    ) -> Result<bool> {
        let Some(text) = text else {
            return Ok(!self.is_equal);
        };
        let is_equal = if self.is_digest {
            digest(keyspace, text)?.eq_ignore_ascii_case(self.with)
        } else {
            text.len() == self.with.len() as u64 && keyspace.read(text)? == self.with
        };
        Ok(is_equal == self.is_equal)
    }
}

/// Returns the digest of a string: its XXH3, as text.
fn digest(keyspace: &Keyspace<'_>, text: &StoredString) -> Result<Bytes> {
    let hash = xxh3_64(&keyspace.read(text)?);
    Ok(format!("{hash:016x}").into())
}

/// `DIGEST key`
pub(super) fn digest_command(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let Some(text) = keyspace.string(&arguments[1])? else {
        return Ok(Reply::Nil);
    };
    Ok(Reply::Bulk(digest(keyspace, &text)?))
}
