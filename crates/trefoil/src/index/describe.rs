//! The entries of a run as text, for people.

use bytes::Bytes;
use trefoil_core::{Timestamp, take_varint};

use super::postings::decode_block;
use super::run::{BLOCK, ID, RunTerm, TERM, TIME, decode_positions};
use super::term::{TermKind, take_name};

/// Returns what a key stands for, and what its value says.
pub(crate) fn describe_entry(key: &[u8], value: &Bytes) -> (String, String) {
    let described = match key.split_first() {
        Some((&TERM, term)) => describe_term(term, value),
        Some((&BLOCK, rest)) => describe_block(rest, value),
        Some((&ID, hash)) => describe_id(hash, value),
        Some((&TIME, time)) => describe_time(time, value),
        _ => None,
    };
    described.unwrap_or_else(|| (format!("unreadable {key:02x?}"), format!("{value:02x?}")))
}

fn kind_and_name(term: &[u8]) -> Option<String> {
    let kind = TermKind::EVERY.get(usize::from(*term.first()?))?;
    Some(format!("{kind:?} {:?}", take_name(term)?))
}

fn describe_term(term: &[u8], value: &Bytes) -> Option<(String, String)> {
    let summary = RunTerm::decode(value)?.summary;
    let text = format!(
        "{} events, positions {} to {}, in stream {} to {}, new streams {}",
        summary.n,
        summary.first_position,
        summary.last_position,
        summary.first_ordinal,
        summary.last_ordinal,
        summary.new_streams
    );
    Some((kind_and_name(term)?, text))
}

fn describe_block(rest: &[u8], value: &Bytes) -> Option<(String, String)> {
    let (term, order) = rest.split_last_chunk::<8>()?;
    let mut postings = Vec::new();
    decode_block(value, &mut postings)?;
    let key = format!(
        "block {} up to {}",
        kind_and_name(term)?,
        u64::from_be_bytes(*order)
    );
    let (first, last) = (postings.first()?, postings.last()?);
    let (n, first, last) = (postings.len(), first.position, last.position);
    Some((key, format!("{n} postings, positions {first} to {last}")))
}

fn describe_id(hash: &[u8], value: &Bytes) -> Option<(String, String)> {
    let mut positions = Vec::new();
    decode_positions(value, &mut positions)?;
    let hash = u64::from_be_bytes(hash.try_into().ok()?);
    Some((
        format!("id hash {hash:016x}"),
        format!("positions {positions:?}"),
    ))
}

fn describe_time(time: &[u8], value: &Bytes) -> Option<(String, String)> {
    let ordered = u64::from_be_bytes(time.try_into().ok()?);
    let time = Timestamp((ordered ^ (1 << 63)) as i64);
    let position = take_varint(&mut &value[..])?;
    Some((
        format!("time {time}"),
        format!("reached from position {position} on"),
    ))
}
