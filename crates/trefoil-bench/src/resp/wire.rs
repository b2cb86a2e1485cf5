//! As much of RESP2 as the benchmarks need: commands into bytes, and bytes into replies.

use anyhow::{Context, Result, bail, ensure};

/// Appends a command to `out`.
pub(crate) fn put_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    put_head(out, b'*', words.len());
    for word in words {
        put_head(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn put_head(out: &mut Vec<u8>, mark: u8, length: usize) {
    out.push(mark);
    out.extend_from_slice(length.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A reply, still where it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    /// No string, or no array: a transaction that was not carried out.
    Nil,
    Array(Vec<Reply<'a>>),
}

impl Reply<'_> {
    /// Makes an error of a reply that is one, or that has one in it.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Error(text) => bail!("the server answered: {}", String::from_utf8_lossy(text)),
            Self::Array(items) => items.iter().try_for_each(Self::check),
            _ => Ok(()),
        }
    }
}

/// Reads a reply and says how many bytes it has; `None` if more must come.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>> {
    let mut rest = bytes;
    let reply = take(&mut rest)?;
    Ok(reply.map(|reply| (reply, bytes.len() - rest.len())))
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<Option<Reply<'a>>> {
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let line = rest[..end].strip_suffix(b"\r");
    let line = line.context("a line of a reply ends without a carriage return")?;
    let (mark, line) = line.split_first().context("a line of a reply is empty")?;
    *rest = &rest[end + 1..];
    Ok(match mark {
        b'+' => Some(Reply::Simple(line)),
        b'-' => Some(Reply::Error(line)),
        b':' => Some(Reply::Integer(number(line)?)),
        b'$' => take_bulk(rest, number(line)?)?,
        b'*' => take_array(rest, number(line)?)?,
        other => bail!("a reply begins with {:?}", char::from(*other)),
    })
}

fn take_bulk<'a>(rest: &mut &'a [u8], length: i64) -> Result<Option<Reply<'a>>> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(Some(Reply::Nil));
    };
    if rest.len() < length + 2 {
        return Ok(None);
    }
    let (bytes, after) = rest.split_at(length);
    ensure!(
        after.starts_with(b"\r\n"),
        "a string is longer than it says"
    );
    *rest = &after[2..];
    Ok(Some(Reply::Bulk(bytes)))
}

fn take_array<'a>(rest: &mut &'a [u8], length: i64) -> Result<Option<Reply<'a>>> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(Some(Reply::Nil));
    };
    let mut items = Vec::new();
    for _ in 0..length {
        match take(rest)? {
            Some(item) => items.push(item),
            None => return Ok(None),
        }
    }
    Ok(Some(Reply::Array(items)))
}

fn number(digits: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(digits)?;
    text.parse()
        .with_context(|| format!("{text:?} is no number"))
}

/// Replies that are on their way.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// The beginning of a reply whose end has not come.
    begun: Vec<u8>,
}

impl Incoming {
    /// Takes bytes that have arrived, and shows all replies that are complete.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut show: impl FnMut(Reply<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut joined = std::mem::take(&mut self.begun);
        let mut rest = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        while let Some((reply, length)) = parse(rest)? {
            show(reply)?;
            rest = &rest[length..];
        }
        self.begun = rest.to_vec();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut out = Vec::new();
        put_command(&mut out, &[b"SET", b"key", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n");
    }

    #[test]
    fn replies_are_read_however_they_are_cut() {
        let bytes = b"+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n*1\r\n:1\r\n$1\r\nb\r\n*-1\r\n";
        let inner = Reply::Array(vec![Reply::Integer(1)]);
        let expected = [
            Reply::Simple(b"OK"),
            Reply::Integer(-7),
            Reply::Bulk(b"a\r\n"),
            Reply::Nil,
            Reply::Array(vec![inner, Reply::Bulk(b"b")]),
            Reply::Nil,
        ];
        for cut in 0..bytes.len() {
            let (mut incoming, mut count) = (Incoming::default(), 0);
            for part in [&bytes[..cut], &bytes[cut..]] {
                let show = |reply: Reply<'_>| {
                    assert_eq!(reply, expected[count], "{cut}");
                    count += 1;
                    Ok(())
                };
                incoming.take(part, show).unwrap();
            }
            assert_eq!(count, expected.len(), "{cut}");
        }
    }

    #[test]
    fn errors_are_found_wherever_they_are() {
        let (reply, _) = parse(b"*2\r\n:1\r\n*1\r\n-ERR no\r\n").unwrap().unwrap();
        assert!(reply.check().unwrap_err().to_string().contains("ERR no"));
        assert!(parse(b"*1\r\n:1\r\n").unwrap().unwrap().0.check().is_ok());
        assert!(parse(b"HTTP/1.1 400\r\n").is_err());
        assert!(parse(b"$x\r\n").is_err());
    }
}
