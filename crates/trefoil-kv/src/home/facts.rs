//! The small facts beside the log of a namespace, in one object. Whoever claims a namespace writes its
//! epoch there first, so that one who had it before can change nothing any more.

use serde::{Deserialize, Serialize};
use trefoil::home::{FIRST_GENERATION, Incarnation};
use trefoil_core::{Error, Result};

use super::objects::failed;
use super::{names, small};
use crate::contract::{KvObjects, ObjectVersion};

/// How often a change is tried, when somebody else changes something.
const ATTEMPTS: usize = 8;

/// What is known of a namespace besides its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamespaceFacts {
    /// The generation that counts.
    pub(super) generation: u64,
    /// Whether the first one has been made.
    pub(super) is_made: bool,
    /// When something is due, in milliseconds since 1970.
    pub(super) due: Option<u64>,
    /// The epoch of the last claim.
    pub(super) epoch: u64,
}

impl NamespaceFacts {
    fn new(epoch: u64) -> Self {
        Self {
            generation: FIRST_GENERATION,
            is_made: false,
            due: None,
            epoch,
        }
    }
}

/// Returns the facts of a namespace; `None` if nobody has claimed it yet.
pub(super) fn read(
    objects: &dyn KvObjects,
    incarnation: Incarnation,
) -> Result<Option<NamespaceFacts>> {
    Ok(find(objects, incarnation)?.map(|(facts, _)| facts))
}

fn find(
    objects: &dyn KvObjects,
    incarnation: Incarnation,
) -> Result<Option<(NamespaceFacts, ObjectVersion)>> {
    let name = names::facts(incarnation);
    let found = objects.get(&name);
    let Some((bytes, version)) = found.map_err(failed("reading the facts of a namespace"))? else {
        return Ok(None);
    };
    let (facts, _) = small::decode(&name, &bytes)?;
    Ok(Some((facts, version)))
}

/// Changes the facts of a namespace for the claim of this epoch. Returns what they are then. A claim
/// of an earlier epoch is told that it was lost.
pub(super) fn change(
    objects: &dyn KvObjects,
    incarnation: Incarnation,
    epoch: u64,
    change: impl Fn(&mut NamespaceFacts),
) -> Result<NamespaceFacts> {
    let name = names::facts(incarnation);
    for _ in 0..ATTEMPTS {
        let found = find(objects, incarnation)?;
        let mut facts = match &found {
            Some((facts, _)) => *facts,
            None => NamespaceFacts::new(epoch),
        };
        if facts.epoch > epoch {
            return Err(lost());
        }
        facts.epoch = epoch;
        change(&mut facts);
        if found.as_ref().is_some_and(|(before, _)| *before == facts) {
            return Ok(facts);
        }
        let bytes = small::encode(&facts, b"")?;
        let changed = match &found {
            Some((_, version)) => objects.replace(&name, version, bytes),
            None => objects.create(&name, bytes),
        };
        let changed = changed.map_err(failed("changing the facts of a namespace"))?;
        if changed.is_some() {
            return Ok(facts);
        }
    }
    Err(Error::Overloaded(
        "the facts of the namespace change all the time".to_owned(),
    ))
}

/// Returns the error of a claim that another one has taken the place of.
pub(super) fn lost() -> Error {
    Error::Closed("the namespace was claimed by another node".to_owned())
}
