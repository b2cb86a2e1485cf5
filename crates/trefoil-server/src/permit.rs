//! What a request consists of, compared with what its token permits.

use trefoil::{Condition, Grant, Guard, NewEvent, Result, Scope};

/// Refuses events that may not be appended.
pub(crate) fn events<'a>(
    grant: &Grant,
    events: impl IntoIterator<Item = &'a NewEvent>,
) -> Result<()> {
    for event in events {
        grant.require(Scope::Write)?;
        grant.require_stream(event.stream.as_deref())?;
    }
    Ok(())
}

/// Refuses conditions on the log that may not be asked for.
pub(crate) fn conditions(grant: &Grant, conditions: &[Condition]) -> Result<()> {
    for condition in conditions {
        grant.require(Scope::Write)?;
        match condition {
            Condition::StreamVersion { stream, .. } => grant.require_stream(Some(stream))?,
            Condition::NoMatch { source, .. } => grant.require_source(source)?,
            // What is not known here may look anywhere.
            _ => grant.require_unconfined()?,
        }
    }
    Ok(())
}

/// Refuses conditions on keys that may not be asked for.
pub(crate) fn guards(grant: &Grant, guards: &[Guard]) -> Result<()> {
    for guard in guards {
        grant.require(Scope::State)?;
        grant.require_key(&guard.key)?;
    }
    Ok(())
}
