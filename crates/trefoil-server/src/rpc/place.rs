//! Where in a commit a failure lies, as the caller wrote it: `conditions[2]`, `events[0]`,
//! `state[1]`, `tracking`. Errors of the database count otherwise: conditions on the log and on the
//! state apart, and events and commands together.

use std::fmt;

use trefoil::Error;

use super::commit::ParsedCommit;
use crate::error::Failure;

/// A part of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceInCommit {
    Condition(usize),
    Event(usize),
    Command(usize),
    Tracking,
}

impl fmt::Display for PlaceInCommit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(index) => write!(formatter, "conditions[{index}]"),
            Self::Event(index) => write!(formatter, "events[{index}]"),
            Self::Command(index) => write!(formatter, "state[{index}]"),
            Self::Tracking => formatter.write_str("tracking"),
        }
    }
}

impl PlaceInCommit {
    /// Adds the place to a failure.
    pub(super) fn of(self, failure: Failure) -> Failure {
        failure.with_text("place", &self.to_string())
    }
}

/// Tells why a commit failed, and where. An event may have `data_bytes_max` bytes of data.
pub(super) fn failure(error: Error, request: &ParsedCommit, data_bytes_max: usize) -> Failure {
    let place = find(&error, request, data_bytes_max);
    let is_version = matches!(error, Error::VersionConflict { .. });
    let failure = Failure::from(as_written(error, place)).while_doing("Failed to commit");
    let failure = match place {
        Some(PlaceInCommit::Condition(index)) if is_version => {
            failure.with_number("condition", index as u64)
        }
        _ => failure,
    };
    match place {
        Some(place) => place.of(failure),
        None => failure,
    }
}

/// The error with the index that the caller wrote.
fn as_written(error: Error, place: Option<PlaceInCommit>) -> Error {
    match (error, place) {
        (Error::ConditionFailed { position, .. }, Some(PlaceInCommit::Condition(condition))) => {
            Error::ConditionFailed {
                condition,
                position,
            }
        }
        (Error::GuardFailed { .. }, Some(PlaceInCommit::Condition(guard))) => {
            Error::GuardFailed { guard }
        }
        (Error::CommandFailed { text, .. }, Some(PlaceInCommit::Command(index))) => {
            Error::CommandFailed { index, text }
        }
        (error, _) => error,
    }
}

fn find(error: &Error, request: &ParsedCommit, data_bytes_max: usize) -> Option<PlaceInCommit> {
    let ParsedCommit { commit, places, .. } = request;
    match error {
        Error::VersionConflict { condition, .. } | Error::ConditionFailed { condition, .. } => {
            let index = places.conditions.get(*condition)?;
            Some(PlaceInCommit::Condition(*index))
        }
        Error::GuardFailed { guard } => places
            .guards
            .get(*guard)
            .copied()
            .map(PlaceInCommit::Condition),
        Error::CommandFailed { index, .. } => {
            let index = index.checked_sub(commit.events.len())?;
            Some(PlaceInCommit::Command(index))
        }
        Error::DuplicateId { id, .. } | Error::RepeatedId(id) => {
            // Where an id is there twice, the later one is too many.
            let is_taken = |event: &trefoil::NewEvent| event.id == Some(*id);
            commit
                .events
                .iter()
                .rposition(is_taken)
                .map(PlaceInCommit::Event)
        }
        Error::TrackingConflict { .. } => Some(PlaceInCommit::Tracking),
        Error::Invalid(_) | Error::DataTooLarge { .. } => find_invalid(request, data_bytes_max),
        _ => None,
    }
}

/// The first part that breaks a rule or a limit by itself.
fn find_invalid(request: &ParsedCommit, data_bytes_max: usize) -> Option<PlaceInCommit> {
    let ParsedCommit { commit, places, .. } = request;
    let condition =
        { commit.conditions.iter() }.position(|condition| condition.validate().is_err());
    if let Some(index) = condition.and_then(|index| places.conditions.get(index)) {
        return Some(PlaceInCommit::Condition(*index));
    }
    if { commit.tracking.iter() }.any(|tracking| tracking.validate().is_err()) {
        return Some(PlaceInCommit::Tracking);
    }
    let is_invalid = |event: &trefoil::NewEvent| event.validate(data_bytes_max).is_err();
    commit
        .events
        .iter()
        .position(is_invalid)
        .map(PlaceInCommit::Event)
}
