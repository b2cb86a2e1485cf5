//! Reading several items at once into one piece of memory, which costs less than one for each.

use bytes::Bytes;
use trefoil_core::Result;

use crate::StoredItem;

use super::segments::Found;

/// Items that are more than this together get memory of their own, so that whoever keeps one of
/// them keeps little else.
const TOGETHER_BYTES_MAX: usize = 16 * 1024;

/// Hands items that were looked up to `visit`.
pub(super) fn read(some: &[Found<'_>], visit: &mut dyn FnMut(StoredItem)) -> Result<()> {
    let n_bytes = some.iter().map(Found::n_bytes).sum();
    let are_plain = some.iter().all(Found::is_plain);
    if are_plain && some.len() > 1 && n_bytes <= TOGETHER_BYTES_MAX {
        return read_together(some, n_bytes, visit);
    }
    some.iter().try_for_each(|found| {
        visit(found.item()?);
        Ok(())
    })
}

/// Hands items of plain segments, of about `n_bytes` bytes, to `visit`.
fn read_together(
    some: &[Found<'_>],
    n_bytes: usize,
    visit: &mut dyn FnMut(StoredItem),
) -> Result<()> {
    let mut bytes = Vec::with_capacity(n_bytes);
    let mut ends = Vec::with_capacity(some.len());
    for found in some {
        let label = found.copy_to(&mut bytes)?;
        ends.push((label, bytes.len()));
    }
    let bytes = Bytes::from(bytes);
    let mut start = 0;
    for (found, (label, end)) in some.iter().zip(ends) {
        visit(StoredItem {
            position: found.position,
            label,
            bytes: bytes.slice(start..end),
        });
        start = end;
    }
    Ok(())
}
