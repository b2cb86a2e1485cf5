//! Server-sent events: frames of lines, ended by an empty one.

use std::io::{BufRead, BufReader, Read};

/// What a frame says that we use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// The frames of a body that carry data. An unfinished one at the end is dropped: it was cut off.
#[derive(Debug)]
pub(crate) struct SseFrames<R> {
    lines: BufReader<R>,
}

impl<R: Read> SseFrames<R> {
    pub(crate) fn new(body: R) -> Self {
        Self {
            lines: BufReader::new(body),
        }
    }

    fn read(&mut self) -> std::io::Result<Option<Frame>> {
        let mut frame = Frame::default();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                return Ok(None);
            }
            let line = line.trim_end_matches(['\n', '\r']);
            match line.split_once(':').unwrap_or((line, "")) {
                ("", "") if !frame.data.is_empty() => return Ok(Some(frame)),
                // A comment alone, or a frame without data, means nothing.
                ("", "") => frame = Frame::default(),
                ("id", value) => frame.id = Some(field(value).to_owned()),
                ("data", value) => frame.data.push_str(field(value)),
                _ => {}
            }
        }
    }
}

fn field(value: &str) -> &str {
    value.strip_prefix(' ').unwrap_or(value)
}

impl<R: Read> Iterator for SseFrames<R> {
    type Item = std::io::Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_and_comments_skipped() {
        let body = ": ready\n\nid: 7\nevent: event\ndata: [1]\n\n: alive\n\ndata:{}\r\n\r\nid: 8\ndata: cut";
        let frames: Vec<Frame> = SseFrames::new(body.as_bytes())
            .map(Result::unwrap)
            .collect();
        let frame = |id: Option<&str>, data: &str| Frame {
            id: id.map(str::to_owned),
            data: data.to_owned(),
        };
        assert_eq!(frames, [frame(Some("7"), "[1]"), frame(None, "{}")]);
    }
}
