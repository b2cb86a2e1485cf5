//! As much of an HTTP/1.1 response as the benchmark needs: where it ends and whether it is good.

use anyhow::{Context, Result, bail};

/// How the end of the body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Known(usize),
    Chunked,
}

/// A response of which all bytes are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    /// The body as it came, with chunk headers if there are any.
    pub(crate) body: &'a [u8],
    length: Length,
}

impl Response<'_> {
    /// The body without chunk headers.
    pub(crate) fn content(&self) -> Result<Vec<u8>> {
        if self.length != Length::Chunked {
            return Ok(self.body.to_vec());
        }
        let (mut content, mut rest) = (Vec::new(), self.body);
        loop {
            let end = find(rest, b"\r\n").context("a chunk has no header")?;
            let size = std::str::from_utf8(&rest[..end])?;
            let size = usize::from_str_radix(size, 16).context("a chunk has no size")?;
            if size == 0 {
                return Ok(content);
            }
            content.extend_from_slice(
                rest.get(end + 2..end + 2 + size)
                    .context("a chunk is cut")?,
            );
            rest = rest.get(end + 2 + size + 2..).context("a chunk is cut")?;
        }
    }
}

/// Reads a response; `None` if more bytes must come.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Response<'_>>> {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end]).context("the head of a response is not text")?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.context("a response has no status")?;
    let body = &bytes[end + 4..];
    let length = length(lines)?;
    let complete = match length {
        Length::Known(length) => body.len() >= length,
        // JSON has no bare line ends, so this cannot be part of a chunk.
        Length::Chunked => body.ends_with(b"0\r\n\r\n"),
    };
    Ok(complete.then_some(Response {
        status,
        body,
        length,
    }))
}

fn length<'a>(headers: impl Iterator<Item = &'a str>) -> Result<Length> {
    for header in headers {
        let Some((name, value)) = header.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            return Ok(Length::Known(
                value.trim().parse().context("bad content-length")?,
            ));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Ok(Length::Chunked);
        }
    }
    bail!("a response does not say where it ends")
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &str, expected: Option<(u16, &str)>) {
        let parsed = parse(bytes.as_bytes()).unwrap();
        let parsed = parsed.map(|response| (response.status, response.content().unwrap()));
        let expected = expected.map(|(status, body)| (status, body.as_bytes().to_vec()));
        assert_eq!(parsed, expected, "{bytes}");
    }

    #[test]
    fn a_response_is_complete_when_its_body_is() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        check(whole, Some((200, "abc")));
        for length in 0..whole.len() {
            check(&whole[..length], None);
        }
        check(
            "HTTP/1.1 404 No\r\ncontent-length: 0\r\nx: y\r\n\r\n",
            Some((404, "")),
        );
    }

    #[test]
    fn chunks_end_with_an_empty_one() {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
        check(head, None);
        check(&format!("{head}0\r\n\r\n"), Some((200, "abc")));
    }

    #[test]
    fn a_response_without_a_length_is_an_error() {
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
