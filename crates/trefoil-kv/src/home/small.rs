//! Small objects: a line of JSON that says what they are, and bytes behind it. The line begins with a
//! checksum of everything after it, so that damage is noticed.

use std::path::Path;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use trefoil_core::{Damage, Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// The digits of the checksum and the space after it.
const SUM_BYTES: usize = 17;

/// Returns the bytes of a small object.
pub(super) fn encode(head: &impl Serialize, body: &[u8]) -> Result<Bytes> {
    let head = serde_json::to_vec(head);
    let mut rest = head.map_err(|error| Error::Internal(error.to_string()))?;
    rest.push(b'\n');
    rest.extend_from_slice(body);
    let mut bytes = format!("{:016x} ", xxh3_64(&rest)).into_bytes();
    bytes.append(&mut rest);
    Ok(bytes.into())
}

/// Returns what a small object says, and the bytes behind that.
pub(super) fn decode<H: DeserializeOwned>(name: &str, bytes: &Bytes) -> Result<(H, Bytes)> {
    let damaged = |what: &str| damaged(name, what);
    let (Some(sum), Some(rest)) = (bytes.get(..SUM_BYTES), bytes.get(SUM_BYTES..)) else {
        return Err(damaged("it is cut off"));
    };
    if sum != format!("{:016x} ", xxh3_64(rest)).as_bytes() {
        return Err(damaged("its checksum does not match"));
    }
    let end = rest.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| damaged("it is cut off"))?;
    let head = serde_json::from_slice(&rest[..end]);
    let head = head.map_err(|error| damaged(&error.to_string()))?;
    Ok((head, bytes.slice(SUM_BYTES + end + 1..)))
}

fn damaged(name: &str, what: &str) -> Error {
    Error::Damaged(Box::new(Damage {
        file: Path::new(name).to_owned(),
        offset: 0,
        position: 0,
        what: format!("object ({what})"),
        help: "restore this object from a backup".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = encode(&vec![1, 2], b"body\nof it").unwrap();
        let (head, body): (Vec<u8>, Bytes) = decode("name", &bytes).unwrap();
        assert_eq!((head, body), (vec![1, 2], Bytes::from("body\nof it")));
        for place in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[place] ^= 1;
            let refused = decode::<Vec<u8>>("name", &changed.into());
            assert!(matches!(refused, Err(Error::Damaged(_))), "{place}");
            let cut = decode::<Vec<u8>>("name", &bytes.slice(..place));
            assert!(matches!(cut, Err(Error::Damaged(_))), "{place}");
        }
    }
}
