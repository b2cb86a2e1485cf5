//! The words of a request, taken one after the other.

use bytes::Bytes;
use trefoil::Reply;
use trefoil::redis::parse_integer;

/// What a command answers, or the error it answers with.
pub(super) type ReplyResult<T = Reply> = Result<T, Reply>;

/// An error with this text.
pub(super) fn error(text: impl Into<std::borrow::Cow<'static, str>>) -> Reply {
    Reply::Error(text.into())
}

/// The options of a command make no sense.
pub(super) fn syntax_error() -> Reply {
    error("ERR syntax error")
}

/// An argument should be an integer.
pub(super) fn not_an_integer() -> Reply {
    error("ERR value is not an integer or out of range")
}

/// The words that are still to be understood.
#[derive(Debug, Clone)]
pub(super) struct Words<'a>(&'a [Bytes]);

impl<'a> Words<'a> {
    /// The words after the first `skipped`.
    pub(super) fn after(words: &'a [Bytes], skipped: usize) -> Self {
        Self(words.get(skipped..).unwrap_or_default())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next word, which may be missing.
    pub(super) fn next(&mut self) -> Option<&'a Bytes> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next word, which must be there.
    pub(super) fn word(&mut self) -> ReplyResult<&'a Bytes> {
        self.next().ok_or_else(syntax_error)
    }

    /// Takes the next word if it is this one, in any case.
    pub(super) fn take(&mut self, keyword: &str) -> bool {
        let is_next = self.0.first().is_some_and(|word| is(word, keyword));
        if is_next {
            self.0 = &self.0[1..];
        }
        is_next
    }

    /// The next word as text.
    pub(super) fn text(&mut self) -> ReplyResult<&'a str> {
        text(self.word()?)
    }

    /// The next word as an integer.
    pub(super) fn integer(&mut self) -> ReplyResult<i64> {
        integer(self.word()?)
    }

    /// The next word as a number from 0.
    pub(super) fn number(&mut self) -> ReplyResult<u64> {
        u64::try_from(self.integer()?)
            .map_err(|_| error("ERR value is out of range, must be positive"))
    }
}

/// Returns whether a word is this one, in any case.
pub(super) fn is(word: &[u8], keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword.as_bytes())
}

/// Returns whether a line is the beginning of an HTTP request, which a web page may have been made
/// to send: nothing after it is to be taken for commands.
pub(super) fn is_http(word: &[u8]) -> bool {
    is(word, "post") || is(word, "host:")
}

/// A word as an integer.
pub(super) fn integer(word: &[u8]) -> ReplyResult<i64> {
    parse_integer(word).ok_or_else(not_an_integer)
}

/// A word as text.
pub(super) fn text(word: &[u8]) -> ReplyResult<&str> {
    std::str::from_utf8(word).map_err(|_| error("ERR value is not valid UTF-8"))
}
