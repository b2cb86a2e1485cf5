//! Requests out of bytes: `*N` and N bulk strings, or a line of words.
//!
//! The parser remembers how far it has come, so that a request may arrive in any pieces and no byte
//! is looked at twice. A request's words are slices of one piece of memory: of the bytes it came in,
//! or of a copy if it is small, so that keeping a word does not keep a whole buffer.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;
use trefoil::limits::REQUEST_BYTES_MAX;
use trefoil::redis::parse_integer;

use super::inline::split_words;
use crate::limits::{
    RESP_COPIED_REQUEST_BYTES_MAX, RESP_LINE_BYTES_MAX, RESP_REQUEST_BYTES_MAX,
    RESP_STRANGER_REQUEST_BYTES_MAX, RESP_STRANGER_WORD_BYTES_MAX, RESP_STRANGER_WORDS_MAX,
};

/// Whether the sender has shown who it is: strangers may send little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Stranger,
    Known,
}

/// What the bytes do wrong, as their sender is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation(pub(super) String);

impl Violation {
    fn new(what: &str) -> Self {
        Self(format!("ERR Protocol error: {what}"))
    }
}

/// Where a request's words are. Requests are much shorter than four gigabytes.
type WordSpan = (u32, u32);

/// What a word takes besides its bytes: its place while the request arrives, and itself when it is
/// taken; a list that grows by doubling may have room for twice as many.
const WORD_BYTES: usize = 2 * size_of::<WordSpan>() + size_of::<Bytes>();

/// How long a word without bytes is: `$0` and an end of a line, twice.
const EMPTY_WORD_BYTES: usize = 6;

/// Offsets are forgotten with their memory after a request of more words than this.
const KEPT_SPANS: usize = 64;

/// The most words in a request, as Redis has it.
const WORDS_MAX: i64 = i32::MAX as i64;

/// How far the request that is arriving has been understood.
#[derive(Debug, Default)]
pub(super) struct Parser {
    /// Up to where in the buffer.
    position: usize,
    /// How many of its words are still to come; 0 between requests.
    words_left: usize,
    /// The length of the word that comes next, if that is known.
    word_length: Option<usize>,
    words: Vec<WordSpan>,
}

impl Parser {
    /// Takes the next request from the buffer; `None` if it is not all there. After a violation
    /// there is no telling where the next request would begin.
    pub(super) fn next(
        &mut self,
        buffer: &mut BytesMut,
        trust: Trust,
    ) -> Result<Option<Vec<Bytes>>, Violation> {
        while self.words_left == 0 {
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {
                    if !self.begin(buffer, trust)? {
                        return Ok(None);
                    }
                }
                Some(_) => match inline(buffer)? {
                    None => return Ok(None),
                    // An empty line asks for nothing.
                    Some(words) if words.is_empty() => {}
                    Some(words) => return Ok(Some(words)),
                },
            }
        }
        while self.words_left > 0 {
            if !self.word(buffer, trust)? {
                return Ok(None);
            }
        }
        Ok(Some(self.take(buffer)))
    }

    /// Returns how many bytes the request needs at least before it makes sense to look at it again.
    pub(super) fn bytes_wanted(&self, buffer: &BytesMut) -> usize {
        let whole = self
            .word_length
            .map_or(0, |length| self.position + length + 2);
        whole.saturating_sub(buffer.len())
    }

    /// How much memory the words of the request take besides its bytes when so many bytes more have
    /// come, which are words of no bytes at worst.
    pub(super) fn words_bytes_after(&self, bytes: usize) -> usize {
        let to_come = match self.word_length {
            // They are of one word.
            Some(_) => 1,
            None => self.words_left.min(bytes / EMPTY_WORD_BYTES + 1),
        };
        (self.words.len() + to_come) * WORD_BYTES
    }

    /// Reads `*N`; false if the line is not all there.
    fn begin(&mut self, buffer: &mut BytesMut, trust: Trust) -> Result<bool, Violation> {
        let (count, end) = match plain_number(buffer, 1) {
            Some(number) => number,
            None => match count(buffer)? {
                Some(number) => number,
                None => return Ok(false),
            },
        };
        if trust == Trust::Stranger && count > RESP_STRANGER_WORDS_MAX {
            return Err(Violation::new("unauthenticated multibulk length"));
        }
        if count == 0 {
            buffer.advance(end);
        } else {
            self.position = end;
            self.words_left = count;
        }
        Ok(true)
    }

    /// Reads one bulk string; false if it is not all there.
    fn word(&mut self, buffer: &BytesMut, trust: Trust) -> Result<bool, Violation> {
        let length = match self.word_length {
            Some(length) => length,
            None => match self.word_header(buffer, trust)? {
                Some(length) => length,
                None => return Ok(false),
            },
        };
        let end = self.position + length;
        if buffer.len() < end + 2 {
            return Ok(false);
        }
        self.words.push((self.position as u32, end as u32));
        self.position = end + 2;
        self.word_length = None;
        self.words_left -= 1;
        Ok(true)
    }

    /// Reads `$N`; `None` if the line is not all there.
    fn word_header(&mut self, buffer: &BytesMut, trust: Trust) -> Result<Option<usize>, Violation> {
        let start = self.position;
        let plain = match buffer.get(start) {
            Some(b'$') => plain_number(buffer, start + 1),
            _ => None,
        };
        let (length, end) = match plain {
            Some(number) => number,
            None => match length(buffer, start)? {
                Some(number) => number,
                None => return Ok(None),
            },
        };
        let is_stranger = trust == Trust::Stranger;
        if is_stranger && length > RESP_STRANGER_WORD_BYTES_MAX {
            return Err(Violation::new("unauthenticated bulk length"));
        }
        let bytes_max = match trust {
            Trust::Stranger => RESP_STRANGER_REQUEST_BYTES_MAX,
            Trust::Known => RESP_REQUEST_BYTES_MAX,
        };
        if end + length > bytes_max {
            let text = format!("a request may have {bytes_max} bytes");
            return Err(Violation::new(&text));
        }
        self.position = end;
        self.word_length = Some(length);
        Ok(Some(length))
    }

    /// Takes the whole request out of the buffer.
    fn take(&mut self, buffer: &mut BytesMut) -> Vec<Bytes> {
        let bytes = if self.position <= RESP_COPIED_REQUEST_BYTES_MAX {
            let bytes = Bytes::copy_from_slice(&buffer[..self.position]);
            buffer.advance(self.position);
            bytes
        } else {
            buffer.split_to(self.position).freeze()
        };
        let words = self.words.iter();
        let word = |(start, end): &WordSpan| bytes.slice(*start as usize..*end as usize);
        let words = words.map(word).collect();
        self.position = 0;
        self.words.clear();
        self.words.shrink_to(KEPT_SPANS);
        words
    }
}

/// The digits of numbers that are read at once.
const PLAIN_DIGITS_MAX: usize = 7;

/// Reads a number that is written as nearly all are: a few digits, and the end of the line. Returns it
/// and where the next line begins; `None` if it has to be looked at more closely.
fn plain_number(buffer: &[u8], start: usize) -> Option<(usize, usize)> {
    let mut number = 0;
    for n_digits in 0..=PLAIN_DIGITS_MAX {
        match *buffer.get(start + n_digits)? {
            digit @ b'0'..=b'9' if n_digits == 0 || number > 0 => {
                number = number * 10 + usize::from(digit - b'0');
            }
            b'\r' if n_digits > 0 => {
                let end = start + n_digits + 2;
                return (end <= buffer.len()).then_some((number, end));
            }
            _ => return None,
        }
    }
    None
}

/// Reads `*N`: how many words follow, and where. `None` if the line is not all there.
fn count(buffer: &[u8]) -> Result<Option<(usize, usize)>, Violation> {
    let Some(line) = line(buffer, 0, "too big mbulk count string")? else {
        return Ok(None);
    };
    let count = parse_integer(&buffer[1..line.0]);
    let count = count.filter(|count| *count <= WORDS_MAX);
    let count = count.ok_or_else(|| Violation::new("invalid multibulk length"))?;
    // None, or less than none, asks for nothing.
    Ok(Some((usize::try_from(count).unwrap_or(0), line.1)))
}

/// Reads `$N`: how long the next word is, and where it begins. `None` if the line is not all there.
fn length(buffer: &[u8], start: usize) -> Result<Option<(usize, usize)>, Violation> {
    let Some(line) = line(buffer, start, "too big bulk count string")? else {
        return Ok(None);
    };
    let marker = buffer[start];
    if marker != b'$' {
        let marker = char::from(marker);
        return Err(Violation::new(&format!("expected '$', got '{marker}'")));
    }
    let length = parse_integer(&buffer[start + 1..line.0]);
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= REQUEST_BYTES_MAX);
    let length = length.ok_or_else(|| Violation::new("invalid bulk length"))?;
    Ok(Some((length, line.1)))
}

/// Finds the end of the line that begins at `start`: where its text ends and where the next line
/// begins. `None` if it is not all there.
fn line(buffer: &[u8], start: usize, too_big: &str) -> Result<Option<(usize, usize)>, Violation> {
    let rest = &buffer[start..];
    match memchr(b'\r', rest) {
        Some(length) if length + 1 < rest.len() => Ok(Some((start + length, start + length + 2))),
        None if rest.len() > RESP_LINE_BYTES_MAX => Err(Violation::new(too_big)),
        _ => Ok(None),
    }
}

/// Takes a line of words; `None` if it is not all there.
fn inline(buffer: &mut BytesMut) -> Result<Option<Vec<Bytes>>, Violation> {
    let Some(length) = memchr(b'\n', buffer) else {
        if buffer.len() > RESP_LINE_BYTES_MAX {
            return Err(Violation::new("too big inline request"));
        }
        return Ok(None);
    };
    let line = buffer.split_to(length + 1).freeze();
    let line = line.slice(..length);
    let line = line.strip_suffix(b"\r").unwrap_or(&line);
    let words = split_words(line);
    words
        .map(Some)
        .ok_or_else(|| Violation::new("unbalanced quotes in request"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything in `bytes`, which arrive in pieces of these lengths, over and over.
    fn parse(bytes: &[u8], lengths: &[usize], trust: Trust) -> (Vec<Vec<Bytes>>, Option<String>) {
        let (mut parser, mut buffer) = (Parser::default(), BytesMut::new());
        let mut requests = Vec::new();
        let mut rest = bytes;
        for length in lengths.iter().cycle() {
            let (piece, later) =
                rest.split_at((*length).clamp(1, rest.len().max(1)).min(rest.len()));
            buffer.extend_from_slice(piece);
            loop {
                match parser.next(&mut buffer, trust) {
                    Ok(Some(words)) => requests.push(words),
                    Ok(None) => break,
                    Err(Violation(text)) => return (requests, Some(text)),
                }
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        (requests, None)
    }

    fn encode(request: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
        for word in request {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    #[test]
    fn every_split_of_a_pipeline_gives_the_same_requests() {
        let bytes =
            b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n*0\r\n*-1\r\n\r\nPING a\n*1\r\n$4\r\n\r\n\r\n\r\n";
        let (whole, violation) = parse(bytes, &[usize::MAX], Trust::Known);
        assert_eq!(violation, None);
        let expected: [&[&[u8]]; 3] = [&[b"GET", b""], &[b"PING", b"a"], &[b"\r\n\r\n"]];
        assert_eq!(whole, expected);
        for at in 1..bytes.len() {
            assert_eq!(
                parse(bytes, &[at, bytes.len()], Trust::Known).0,
                whole,
                "{at}"
            );
        }
        assert_eq!(parse(bytes, &[1], Trust::Known).0, whole);
    }

    #[track_caller]
    fn check_violation(bytes: &[u8], trust: Trust, expected: &str) {
        let expected = format!("ERR Protocol error: {expected}");
        assert_eq!(parse(bytes, &[usize::MAX], trust).1, Some(expected.clone()));
        assert_eq!(parse(bytes, &[1], trust).1, Some(expected));
    }

    #[test]
    fn what_is_wrong_is_told_as_redis_tells_it() {
        let long = [b'1'; RESP_LINE_BYTES_MAX + 1];
        let with = |start: &[u8]| [start, &long].concat();
        let cases: [(&[u8], &str); 13] = [
            (b"*x\r\n", "invalid multibulk length"),
            (b"*\r\n", "invalid multibulk length"),
            (b"*2147483648\r\n", "invalid multibulk length"),
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*1\r\n$x\r\n", "invalid bulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$104857601\r\n", "invalid bulk length"),
            (b"*1\r\n$01\r\n", "invalid bulk length"),
            (&with(b"*"), "too big mbulk count string"),
            (&with(b"*1\r\n$"), "too big bulk count string"),
            (&with(b""), "too big inline request"),
            (b"SET a \"b\r\n", "unbalanced quotes in request"),
            (b"SET a 'b'c\r\n", "unbalanced quotes in request"),
        ];
        for (bytes, expected) in cases {
            check_violation(bytes, Trust::Known, expected);
        }
        check_violation(
            b"*11\r\n",
            Trust::Stranger,
            "unauthenticated multibulk length",
        );
        check_violation(
            b"*1\r\n$16385\r\n",
            Trust::Stranger,
            "unauthenticated bulk length",
        );
        assert_eq!(parse(b"*10\r\n$16384\r\n", &[3], Trust::Stranger).1, None);
    }

    #[test]
    fn a_request_of_many_large_words_is_refused_before_it_is_here() {
        let (mut parser, mut buffer) = (Parser::default(), BytesMut::new());
        buffer.extend_from_slice(b"*2\r\n$104857600\r\n");
        assert_eq!(parser.next(&mut buffer, Trust::Known), Ok(None));
        assert_eq!(parser.bytes_wanted(&buffer), 104_857_602);
        buffer.resize(buffer.len() + 104_857_602, b'x');
        buffer.extend_from_slice(b"$104857600\r\n");
        let Violation(text) = parser.next(&mut buffer, Trust::Known).unwrap_err();
        assert!(text.contains(&RESP_REQUEST_BYTES_MAX.to_string()), "{text}");
    }

    fn requests() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
        let word = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            proptest::collection::vec(proptest::sample::select(b"*$\r\n0123-".to_vec()), 0..40),
        ];
        proptest::collection::vec(proptest::collection::vec(word, 1..6), 0..12)
    }

    proptest! {
        #[test]
        fn any_split_of_any_requests_gives_them_back(
            requests in requests(),
            lengths in proptest::collection::vec(1_usize..50, 1..8),
        ) {
            let bytes: Vec<u8> = requests.iter().flat_map(|request| encode(request)).collect();
            let (parsed, violation) = parse(&bytes, &lengths, Trust::Known);
            prop_assert_eq!(violation, None);
            prop_assert_eq!(parsed, requests);
        }

        #[test]
        fn no_bytes_make_it_panic_or_answer_differently_by_the_pieces_they_come_in(
            bytes in proptest::collection::vec(
                prop_oneof![
                    any::<u8>(),
                    proptest::sample::select(b"**$$\r\n\r\n0123-\"'\\x ".to_vec()),
                ],
                0..200,
            ),
            lengths in proptest::collection::vec(1_usize..20, 1..8),
        ) {
            let whole = parse(&bytes, &[usize::MAX], Trust::Known);
            prop_assert_eq!(parse(&bytes, &lengths, Trust::Known), whole);
        }
    }
}
