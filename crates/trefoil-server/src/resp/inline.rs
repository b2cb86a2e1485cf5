//! A line as people type it: words between spaces, with quotes around what has spaces in it.
//!
//! In double quotes, a backslash makes the next character special: `\n`, `\r`, `\t`, `\b`, `\a` and
//! `\xHH`. In single quotes it does so for a single quote only.

use bytes::Bytes;

/// The words of a line; `None` if a quote is not closed, or closed in the middle of a word.
pub(super) fn split_words(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = take_word(rest, &mut word)?.trim_ascii_start();
        words.push(word.into());
    }
    Some(words)
}

/// Appends the first word to `word` and answers what follows it.
fn take_word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [b' ' | b'\t' | b'\r' | b'\n' | 0, ..] => return Some(skip_zero(rest)),
            [b'"', quoted @ ..] => return take_double_quoted(quoted, word),
            [b'\'', quoted @ ..] => return take_single_quoted(quoted, word),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// A zero byte ends a word as a space does.
fn skip_zero(rest: &[u8]) -> &[u8] {
    rest.strip_prefix(&[0]).unwrap_or(rest)
}

/// The value of a digit that is known to be hexadecimal.
fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn take_double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', after @ ..] => return after_quote(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex_digit(*high) << 4 | hex_digit(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

fn take_single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', after @ ..] => return after_quote(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

/// A closing quote must end the word.
fn after_quote(rest: &[u8]) -> Option<&[u8]> {
    let ends = rest.first().is_none_or(u8::is_ascii_whitespace);
    ends.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        let cases: [(&[u8], &[&[u8]]); 8] = [
            (b"", &[]),
            (b" \t ", &[]),
            (b" SET  key value ", &[b"SET", b"key", b"value"]),
            (b"\"a b\" 'c d'", &[b"a b", b"c d"]),
            (b"\"\\x00\\xfF\\n\\q\\\"\" ''", &[b"\0\xff\nq\"", b""]),
            (b"'\\n\\''", &[b"\\n'"]),
            (b"ab\"cd\" x", &[b"abcd", b"x"]),
            (b"\"\\xzz\"", &[b"xzz"]),
        ];
        for (line, expected) in cases {
            assert_eq!(split_words(line).unwrap(), expected);
        }
    }

    #[test]
    fn quotes_that_do_not_end_a_word() {
        for line in [&b"\"a"[..], b"'a", b"\"a\"b", b"'a'b", b"\"a\\", b"'a\\'"] {
            assert_eq!(split_words(line), None);
        }
    }
}
