//! Reading several items at once into one piece of memory, which costs less than one for each.

use std::ops::ControlFlow;

use bytes::Bytes;
use trefoil_core::Result;

use crate::{StoredItem, VisitItem};

use super::segments::FoundItem;

/// Items that are more than this together get memory of their own, so that whoever keeps one of
/// them keeps little else.
const TOGETHER_BYTES_MAX: usize = 16 * 1024;

/// Hands items that were looked up to `visit`. Returns whether it has seen enough.
pub(super) fn read(some: &[FoundItem<'_>], visit: &mut VisitItem<'_>) -> Result<ControlFlow<()>> {
    let n_bytes = some.iter().map(FoundItem::n_bytes).sum();
    let are_plain = some.iter().all(FoundItem::is_plain);
    if are_plain && some.len() > 1 && n_bytes <= TOGETHER_BYTES_MAX {
        return read_together(some, n_bytes, visit);
    }
    for found in some {
        if visit(found.item()?).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Hands items of plain segments, of about `n_bytes` bytes, to `visit`.
fn read_together(
    some: &[FoundItem<'_>],
    n_bytes: usize,
    visit: &mut VisitItem<'_>,
) -> Result<ControlFlow<()>> {
    let mut bytes = Vec::with_capacity(n_bytes);
    let mut ends = Vec::with_capacity(some.len());
    for found in some {
        let label = found.copy_to(&mut bytes)?;
        ends.push((label, bytes.len()));
    }
    let bytes = Bytes::from(bytes);
    let mut start = 0;
    for (found, (label, end)) in some.iter().zip(ends) {
        let item = StoredItem {
            position: found.position,
            label,
            bytes: bytes.slice(start..end),
        };
        if visit(item).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        start = end;
    }
    Ok(ControlFlow::Continue(()))
}
