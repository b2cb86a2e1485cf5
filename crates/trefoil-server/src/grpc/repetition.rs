//! Appends that are sent again, as UmaDB recognises them: the condition fails, every event has an
//! id, and the first events that match the condition have these ids in this order. The answer is
//! that of the first time.

use trefoil::{Commit, Condition, Error, EventId, OpenDatabase, Query, Selection, Tracking};

use super::status::{Result, of_error, of_failure};
use crate::pages::Pages;
use crate::reading::next_events;
use crate::service::Shared;

/// Answers an append whose condition failed because the event at `first`, and none before it,
/// matches.
pub(super) async fn answer(
    shared: &Shared,
    database: OpenDatabase,
    commit: Commit,
    first: u64,
) -> Result<u64> {
    let conflict = || {
        of_error(&Error::ConditionFailed {
            condition: 0,
            position: first,
        })
    };
    let ids: Option<Vec<EventId>> = { commit.events.iter() }
        .map(|event| event.id.filter(|id| !id.is_nil()))
        .collect();
    let query = { commit.conditions.into_iter() }.find_map(|condition| match condition {
        Condition::NoMatch { query, .. } => Some(query),
        _ => None,
    });
    let (ids, query) = ids.zip(query).ok_or_else(conflict)?;
    let last = find_last(&database, query, &ids, first).await?;
    let last = last.ok_or_else(conflict)?;
    if let Some(tracking) = commit.tracking {
        track_again(shared, &database, tracking).await?;
    }
    Ok(last)
}

/// The position of the last event, if the first that match, from `first` on, have these ids.
async fn find_last(
    database: &OpenDatabase,
    query: Query,
    ids: &[EventId],
    first: u64,
) -> Result<Option<u64>> {
    // Most conflicts are no repetitions, which one event tells.
    let read = Selection::all().from_position(first).limit(1);
    let page = database.soon(move |database| database.read_page(&read, 1));
    let page = page.await.map_err(|error| of_error(&error))?;
    if page.events.first().map(trefoil::Event::id).as_ref() != ids.first() {
        return Ok(None);
    }
    let (mut expected, mut last) = (ids.iter(), first);
    let read = Selection::query(query)
        .from_position(first)
        .limit(ids.len());
    let mut pages = Pages::new(database.clone(), read).map_err(of_failure)?;
    while !pages.is_done() {
        let page;
        (pages, page) = next_events(pages).await.map_err(of_failure)?;
        for event in page {
            if expected.next() != Some(&event.id()) {
                return Ok(None);
            }
            last = event.position();
        }
    }
    Ok(expected.next().is_none().then_some(last))
}

/// Records the tracked position of an append that was made before, if it is a new one.
async fn track_again(shared: &Shared, database: &OpenDatabase, tracking: Tracking) -> Result<()> {
    let commit = Commit::default().with_tracking(tracking);
    match database.commit_async(commit).await {
        Ok(committed) => {
            shared.metrics.count_commit(&committed);
            Ok(())
        }
        Err(Error::TrackingConflict { .. }) => Ok(()),
        Err(error) => Err(of_error(&error)),
    }
}
