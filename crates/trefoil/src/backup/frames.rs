//! Steps of a backup as bytes, on their way from a server to a client.
//!
//! ```text
//! frame    kind: u8 | first: u64 | last: u64 | length: u32 | SHA-256 of the content | content
//! kind     H head, in JSON | L log | C changes | S state | E end
//! ```
//!
//! Numbers are little-endian. A stream that does not end with an end was cut short.

use std::io::Read;

use sha2::{Digest as _, Sha256};
use trefoil_core::{Error, Result};

use super::part::{BackupPart, PartKind};
use super::source::BackupStep;

const HEADER_BYTES: usize = 1 + 8 + 8 + 4 + 32;
const HEAD: u8 = b'H';
const END: u8 = b'E';
/// The longest content: a part has at least one commit, which is much smaller than this.
const CONTENT_BYTES_MAX: usize = 1024 * 1024 * 1024;

fn letter(kind: PartKind) -> u8 {
    match kind {
        PartKind::Log => b'L',
        PartKind::Changes => b'C',
        PartKind::State => b'S',
    }
}

/// Returns the frame of a step.
pub fn encode_step(step: &BackupStep) -> Result<Vec<u8>> {
    match step {
        BackupStep::Head(head) => {
            let text = serde_json::to_vec(head)
                .map_err(|error| Error::invalid(format!("head of a backup: {error}")))?;
            frame(HEAD, (0, 0), &text)
        }
        BackupStep::Part(part) => frame(letter(part.kind), (part.first, part.last), &part.bytes),
    }
}

/// Returns the frame that comes last.
pub fn encode_end() -> Result<Vec<u8>> {
    frame(END, (0, 0), &[])
}

fn frame(kind: u8, (first, last): (u64, u64), content: &[u8]) -> Result<Vec<u8>> {
    let length = u32::try_from(content.len());
    let length = length.ok().filter(|_| content.len() <= CONTENT_BYTES_MAX);
    let length = length.ok_or_else(|| {
        Error::over_limit(
            "bytes of a part of a backup",
            content.len(),
            CONTENT_BYTES_MAX,
        )
    })?;
    let mut out = Vec::with_capacity(HEADER_BYTES + content.len());
    out.push(kind);
    out.extend_from_slice(&first.to_le_bytes());
    out.extend_from_slice(&last.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&Sha256::digest(content));
    out.extend_from_slice(content);
    Ok(out)
}

/// Reads the next step; `None` at the end.
pub fn read_step(from: &mut dyn Read) -> Result<Option<BackupStep>> {
    let cut = |error: std::io::Error| Error::io("the backup broke off", &error);
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header).map_err(cut)?;
    let (kind, rest) = (header[0], &header[1..]);
    let (first, last) = (u64_at(rest, 0), u64_at(rest, 8));
    let length = u32::from_le_bytes([rest[16], rest[17], rest[18], rest[19]]) as usize;
    if length > CONTENT_BYTES_MAX {
        return Err(garbled());
    }
    let mut bytes = Vec::new();
    let read = from.take(length as u64).read_to_end(&mut bytes);
    if read.map_err(cut)? != length {
        return Err(cut(std::io::ErrorKind::UnexpectedEof.into()));
    }
    if Sha256::digest(&bytes)[..] != rest[20..] {
        return Err(garbled());
    }
    if kind == END {
        return Ok(None);
    }
    if kind == HEAD {
        let head = serde_json::from_slice(&bytes).map_err(|_| garbled())?;
        return Ok(Some(BackupStep::Head(head)));
    }
    let mut kinds = PartKind::EVERY.into_iter();
    let kind = kinds.find(|known| letter(*known) == kind);
    Ok(Some(BackupStep::Part(BackupPart {
        kind: kind.ok_or_else(garbled)?,
        first,
        last,
        bytes,
    })))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

fn garbled() -> Error {
    Error::invalid("this is no backup, or it was garbled on its way")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_or_changed_is_refused() {
        let part = BackupStep::Part(BackupPart {
            kind: PartKind::Changes,
            first: 3,
            last: 7,
            bytes: b"content".to_vec(),
        });
        let frame = encode_step(&part).unwrap();
        let sent = [frame.clone(), encode_end().unwrap()].concat();
        let mut rest = sent.as_slice();
        assert_eq!(read_step(&mut rest).unwrap(), Some(part));
        assert_eq!(read_step(&mut rest).unwrap(), None);
        for end in 0..frame.len() {
            let cut = read_step(&mut &frame[..end]).unwrap_err();
            assert!(cut.to_string().contains("broke off"), "{cut}");
        }
        // The hash is of the content alone: a wrong length is cut, a wrong byte is garbled.
        for at in (0..1).chain(HEADER_BYTES - 32..frame.len()) {
            let mut changed = frame.clone();
            changed[at] ^= 0x55;
            assert!(read_step(&mut changed.as_slice()).is_err(), "{at}");
        }
    }
}
