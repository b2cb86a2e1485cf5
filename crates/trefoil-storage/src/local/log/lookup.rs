//! From positions to the places of their items, those of many at a time.

use trefoil_core::Result;

use crate::local::reading::FileAccess;
use crate::local::reading::file::ReadPatience;
use crate::local::reading::gather::{BlockGather, GatheredRange};

use super::index::{ItemPlace, Located};
use super::segments::{Segment, Segments};

/// An item that was looked up and not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundItem<'a> {
    pub(super) segment: &'a Segment,
    pub(super) position: u64,
    pub(super) place: ItemPlace,
}

/// An item whose place is in an index in a file.
struct UnplacedItem {
    /// Its number among those that were found.
    found: usize,
    ordinal: usize,
    gathered: GatheredRange,
}

impl Segments {
    /// Looks up the items at all these positions, as far as there are any. `None` if that would have to
    /// be waited for.
    pub(super) fn find<'a>(
        &'a self,
        positions: &[u64],
        access: &FileAccess,
        patience: ReadPatience,
    ) -> Result<Option<Vec<FoundItem<'a>>>> {
        let mut found = Vec::with_capacity(positions.len());
        let (mut unplaced, mut gather) = (Vec::new(), BlockGather::default());
        let mut rest = positions;
        while let [first, ..] = rest {
            let mut n_located = 0;
            if let Some(segment) = self.holding(*first) {
                let is_located =
                    segment.locate(rest, (access, patience), |position, located| {
                        n_located += 1;
                        let place = match located {
                            Located::At(place) => place,
                            Located::Ordinal(ordinal) => {
                                unplaced.push((found.len(), ordinal));
                                ItemPlace { start: 0, end: 0 }
                            }
                        };
                        found.push(FoundItem {
                            segment,
                            position,
                            place,
                        });
                    })?;
                if !is_located {
                    return Ok(None);
                }
            }
            // If the first was not located, there is nothing at its position.
            rest = &rest[n_located.max(1)..];
        }
        let unplaced = unplaced.into_iter().filter_map(|(at, ordinal)| {
            let item: &FoundItem<'a> = &found[at];
            let (index, _) = item.segment.stored_index()?;
            let gathered = gather.need(index.file(), index.ends_place(ordinal));
            Some(UnplacedItem {
                found: at,
                ordinal,
                gathered,
            })
        });
        let unplaced: Vec<UnplacedItem> = unplaced.collect();
        if !gather.fetch(patience)? {
            return Ok(None);
        }
        let ends = unplaced.iter().filter_map(|item| {
            let (index, _) = found[item.found].segment.stored_index()?;
            Some((item.gathered, index.ends_place(item.ordinal)))
        });
        gather.touch(ends);
        for UnplacedItem {
            found: at,
            ordinal,
            gathered,
        } in unplaced
        {
            let item = &mut found[at];
            let Some((index, base)) = item.segment.stored_index() else {
                continue;
            };
            let place = index.ends_place(ordinal);
            let Some(ends) = gather.bytes(gathered, place.clone()) else {
                let what = "an item is not in the index";
                return Err(index.file().damage(place.start, what));
            };
            item.place = index.place(&ends, base);
        }
        found.retain(|item| !item.place.is_dropped());
        Ok(Some(found))
    }
}
