//! Entries that a group of commits is to change, by their names.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;
use hashbrown::HashMap;

/// An entry that is to change.
#[derive(Debug)]
pub(super) struct StagedEntry {
    /// `None` if it is to be removed.
    pub(super) value: Option<Bytes>,
    /// The command that changed it last.
    pub(super) command: u64,
}

/// The entries that are to change. Each command looks for several of them, and few walk over them in
/// order.
#[derive(Debug, Default)]
pub(super) struct StagedEntries {
    entries: HashMap<Bytes, StagedEntry>,
    /// Their names in order, once they were walked over.
    ordered: OnceCell<BTreeSet<Bytes>>,
}

impl StagedEntries {
    pub(super) fn get(&self, name: &[u8]) -> Option<&StagedEntry> {
        self.entries.get(name)
    }

    /// Stages an entry. Returns how it was staged before.
    pub(super) fn insert(&mut self, name: Bytes, entry: StagedEntry) -> Option<StagedEntry> {
        if let Some(ordered) = self.ordered.get_mut() {
            ordered.insert(name.clone());
        }
        self.entries.insert(name, entry)
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(ordered) = self.ordered.get_mut() {
            ordered.remove(name);
        }
        self.entries.remove(name);
    }

    /// Returns the names and values with `from <= name < to`, where `from < to`, in order.
    pub(super) fn range<'s>(
        &'s self,
        from: &[u8],
        to: &[u8],
    ) -> impl DoubleEndedIterator<Item = (&'s Bytes, &'s Option<Bytes>)> + use<'s> {
        let ordered = self
            .ordered
            .get_or_init(|| self.entries.keys().cloned().collect());
        let range = (Bound::Included(from), Bound::Excluded(to));
        let names = ordered.range::<[u8], _>(range);
        names.filter_map(|name| Some((name, &self.get(name)?.value)))
    }

    /// Returns all names and values, in no order.
    pub(super) fn into_all(self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> {
        let entries = self.entries.into_iter();
        entries.map(|(name, entry)| (name, entry.value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_walk_sees_what_was_staged_before_it_and_after_the_first_one() {
        let (mut staged, mut model) = (StagedEntries::default(), BTreeMap::new());
        let mut random = fastrand::Rng::with_seed(3);
        for round in 0..300 {
            let name = Bytes::from(random.u8(..20).to_string());
            let value = random.bool().then(|| Bytes::from(round.to_string()));
            match random.u8(..3) {
                0 => {
                    staged.remove(&name);
                    model.remove(&name);
                }
                _ => {
                    let entry = StagedEntry {
                        value: value.clone(),
                        command: round,
                    };
                    let before = staged.insert(name.clone(), entry);
                    let before = before.map(|before| before.value);
                    assert_eq!(before, model.insert(name, value));
                }
            }
            // At first nobody walks.
            if round < 20 {
                continue;
            }
            let walked: Vec<_> = staged.range(b"1", b"5").rev().collect();
            let range = model.range(Bytes::from("1")..Bytes::from("5"));
            assert_eq!(walked, range.rev().collect::<Vec<_>>());
        }
        let all: BTreeMap<_, _> = staged.into_all().collect();
        assert_eq!(all, model);
    }
}
