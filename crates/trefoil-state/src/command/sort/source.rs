//! What `SORT` takes its elements from.

use std::ops::Range;

use bytes::Bytes;
use trefoil_core::Direction;

use crate::command::arguments::from_end;
use crate::command::list::ListRow;
use crate::command::zset::Scores;
use crate::error::{Result, WRONG_TYPE};
use crate::keyspace::Keyspace;
use crate::meta::ValueKind;

#[derive(Debug)]
pub(super) enum SortSource {
    List(ListRow),
    Set { id: u64, len: u64 },
    SortedSet(Scores),
}

impl SortSource {
    pub(super) fn find(keyspace: &Keyspace<'_>, key: &[u8]) -> Result<Option<Self>> {
        Ok(match keyspace.find(key)?.map(|meta| meta.kind()) {
            None => None,
            Some(ValueKind::List) => ListRow::find(keyspace, key)?.map(Self::List),
            Some(ValueKind::SortedSet) => Scores::find(keyspace, key)?.map(Self::SortedSet),
            Some(ValueKind::Set) => {
                let found = keyspace.collection(key, ValueKind::Set)?;
                let collection = found.map(|found| found.collection);
                collection.map(|collection| Self::Set {
                    id: collection.id,
                    len: collection.len,
                })
            }
            Some(ValueKind::String | ValueKind::Hash) => return Err(WRONG_TYPE),
        })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::List(row) => row.len(),
            Self::Set { len, .. } => *len,
            Self::SortedSet(scores) => scores.len(),
        }
    }

    /// Returns a range of the elements, counted from the end at which the direction begins; those
    /// of a set are in no order.
    pub(super) fn elements(
        &self,
        keyspace: &Keyspace<'_>,
        range: Range<u64>,
        direction: Direction,
    ) -> Result<Vec<Bytes>> {
        let (n_skipped, n) = (range.start, range.end - range.start);
        match self {
            Self::List(row) => {
                let range = from_end(range, row.len(), direction);
                row.elements(keyspace, range, direction).collect()
            }
            Self::Set { id, .. } => {
                let members = keyspace.all_named(*id);
                let members = members.skip(n_skipped as usize).take(n as usize);
                members.map(|member| Ok(member?.0)).collect()
            }
            Self::SortedSet(scores) => {
                let ranks = from_end(range, scores.len(), direction);
                let members = scores.members(keyspace, ranks, direction);
                members.map(|member| Ok(member?.0)).collect()
            }
        }
    }
}
