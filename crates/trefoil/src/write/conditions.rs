//! The conditions of a commit, checked against the log and against what the group holds already.

use trefoil_core::{Condition, Error, Result};

use super::stage::Stage;
use crate::read::Matcher;
use crate::read::condition::CheckedConditions;

impl Stage<'_> {
    pub(super) fn check_conditions(
        &mut self,
        conditions: &[Condition],
        checked: &CheckedConditions,
    ) -> Result<()> {
        for (condition, wanted) in conditions.iter().enumerate() {
            if let Some((matcher, after)) = Matcher::of_condition(wanted) {
                let known = checked.match_of(condition);
                let found = known.map_or_else(
                    || self.find_new(matcher, after, checked.up_to),
                    |known| Ok(Some(known)),
                )?;
                if let Some(position) = found {
                    return Err(Error::ConditionFailed {
                        condition,
                        position,
                    });
                }
            }
            if let Condition::StreamVersion { stream, expected } = wanted {
                let actual = self.last_ordinal(stream)?;
                check_version(condition, stream, *expected, actual)?;
            }
        }
        Ok(())
    }

    /// The position of a selected event after `after` that was written after `checked`, or that is
    /// in this group.
    fn find_new(&mut self, matcher: Matcher<'_>, after: u64, checked: u64) -> Result<Option<u64>> {
        let from = after.max(checked).saturating_add(1);
        if let Some(position) = (self.durable.search)(matcher, from, self.base)? {
            return Ok(Some(position));
        }
        Ok(self.overlay.first_match(matcher, after))
    }
}

/// Whether a stream is at the version that a condition wants.
pub(crate) fn check_version(
    condition: usize,
    stream: &str,
    expected: i64,
    last_ordinal: Option<u64>,
) -> Result<()> {
    let actual = last_ordinal.map_or(-1, |ordinal| ordinal as i64);
    if actual == expected {
        return Ok(());
    }
    Err(Error::VersionConflict {
        condition,
        stream: stream.to_owned(),
        expected,
        actual,
    })
}
