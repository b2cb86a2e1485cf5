//! The beginning of a request, in case it turns out to be slow.
//!
//! It is copied into memory that the connection keeps: what is kept of a request is little, and the
//! buffer that it arrived in is free for the next one.

use bytes::Bytes;

/// So many words of a request are shown, as in Redis ...
const WORDS_MAX: usize = 32;
/// ... and so many bytes of each.
const WORD_BYTES_MAX: usize = 128;
/// Memory beyond this is given back.
const KEPT_BYTES: usize = 256;

/// What stands for the words of a request that says who its client is.
const REDACTED: &str = "(redacted)";

/// The beginning of the first of the requests that arrived together.
#[derive(Debug, Default)]
pub(super) struct RememberedRequest {
    /// Its command.
    pub(super) command: &'static str,
    bytes: Vec<u8>,
    /// How many bytes the words have, of which at most the first are in `bytes`.
    lengths: Vec<usize>,
    n_words: usize,
}

impl RememberedRequest {
    /// Remembers a request instead of the one before.
    pub(super) fn set(&mut self, command: &'static str, words: &[Bytes], is_secret: bool) {
        self.bytes.clear();
        self.lengths.clear();
        if self.bytes.capacity() > KEPT_BYTES {
            *self = Self::default();
        }
        self.command = command;
        let words = if is_secret { &words[..1] } else { words };
        self.n_words = words.len();
        let n_shown = if words.len() > WORDS_MAX {
            WORDS_MAX - 1
        } else {
            words.len()
        };
        for word in &words[..n_shown] {
            self.lengths.push(word.len());
            let shown = &word[..word.len().min(WORD_BYTES_MAX)];
            self.bytes.extend_from_slice(shown);
        }
        if is_secret {
            self.n_words += 1;
            self.lengths.push(REDACTED.len());
            self.bytes.extend_from_slice(REDACTED.as_bytes());
        }
    }

    /// Returns the words as `SLOWLOG` shows them, of one of so many requests.
    pub(super) fn shown(&self, n_requests: usize) -> Vec<Bytes> {
        let mut rest = self.bytes.as_slice();
        let mut words: Vec<Bytes> = Vec::with_capacity(self.lengths.len() + 2);
        for &length in &self.lengths {
            let (shown, after) = rest.split_at(length.min(WORD_BYTES_MAX));
            rest = after;
            let mut word = shown.to_vec();
            if length > WORD_BYTES_MAX {
                let n_more = length - WORD_BYTES_MAX;
                word.extend_from_slice(format!("... ({n_more} more bytes)").as_bytes());
            }
            words.push(word.into());
        }
        let n_more = self.n_words - self.lengths.len();
        if n_more > 0 {
            words.push(format!("... ({n_more} more arguments)").into());
        }
        if n_requests > 1 {
            let n_more = n_requests - 1;
            words.push(format!("... ({n_more} more requests)").into());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str], is_secret: bool, n_requests: usize) -> Vec<String> {
        let words: Vec<Bytes> = { words.iter() }
            .map(|word| Bytes::copy_from_slice(word.as_bytes()))
            .collect();
        let mut remembered = RememberedRequest::default();
        remembered.set("get", &[Bytes::from(vec![b'x'; 1000])], false);
        remembered.set("get", &words, is_secret);
        let shown = remembered.shown(n_requests).into_iter();
        shown
            .map(|word| String::from_utf8(word.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn long_requests_are_cut_as_redis_cuts_them() {
        assert_eq!(shown(&["GET", "a"], false, 1), ["GET", "a"]);
        let long = "x".repeat(200);
        let cut = format!("{}... (72 more bytes)", "x".repeat(128));
        assert_eq!(shown(&["SET", "a", &long], false, 1), ["SET", "a", &cut]);
        let many = vec!["w"; 32];
        assert_eq!(shown(&many, false, 1), many);
        let more = shown(&["w"; 40], false, 1);
        assert_eq!(
            (more.len(), more[31].as_str()),
            (32, "... (9 more arguments)")
        );
        assert_eq!(
            shown(&["PING"], false, 3),
            ["PING", "... (2 more requests)"]
        );
    }

    #[test]
    fn no_secret_is_remembered() {
        assert_eq!(shown(&["AUTH", "secret"], true, 1), ["AUTH", "(redacted)"]);
    }
}
