//! Tracked positions: written with their commit or not at all, never going back, never lost.

use trefoil::{Commit, Database, Error, NewEvent, Options, Query, QueryItem, Tracking};

use crate::claim;

fn event(number: u64) -> NewEvent {
    NewEvent::new("copy-1", "Copied", format!("{{\"n\":{number}}}")).with_tag("copied")
}

fn tiny() -> Options {
    Options::default().with_tail_events_max(8)
}

#[test]
fn a_tracked_position_is_written_with_its_commit_and_survives() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..10_u64 {
        let db = Database::open(directory.path(), &tiny()).unwrap();
        assert_eq!(db.tracking("upstream").unwrap(), round.checked_sub(1));
        let commit = Commit::new([event(round)]).with_tracking(Tracking::new("upstream", round));
        db.commit(commit.clone()).unwrap();
        assert_eq!(db.tracking("upstream").unwrap(), Some(round));
        let again = db.commit(commit).unwrap_err();
        assert!(matches!(again, Error::TrackingConflict { recorded, .. } if recorded == round));
        assert_eq!(db.head().unwrap(), round + 1);
        let last = db.last("copy-1", None).unwrap().unwrap();
        assert_eq!(last.tracking(), Some(Tracking::new("upstream", round)));
        if round % 3 == 0 {
            db.checkpoint().unwrap();
        }
        db.close().unwrap();
    }
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    trefoil::tools::repair(claim(directory.path()), &tiny()).unwrap();
    let db = Database::open(directory.path(), &tiny()).unwrap();
    assert_eq!(db.tracking("upstream").unwrap(), Some(9));
}

#[test]
fn a_commit_may_have_a_tracked_position_and_no_events() {
    let directory = tempfile::tempdir().unwrap();
    let n_commits = 100;
    {
        let db = Database::open(directory.path(), &tiny()).unwrap();
        for position in 1..=n_commits {
            let commit = Commit::new([]).with_tracking(Tracking::new("quiet", position));
            let committed = db.commit(commit).unwrap();
            assert_eq!((committed.commit, committed.position), (position, 0));
            assert!(committed.events.is_empty());
        }
        let stale = Commit::new([]).with_tracking(Tracking::new("quiet", 7));
        assert!(matches!(
            db.commit(stale),
            Err(Error::TrackingConflict { .. })
        ));
        assert!(matches!(db.commit(Commit::new([])), Err(Error::Invalid(_))));
    }
    let db = Database::open(directory.path(), &tiny()).unwrap();
    // Most of them were moved to disk on the way, so little had to be read again.
    assert_eq!(db.recovery().replayed_events, 0);
    assert_eq!(db.tracking("quiet").unwrap(), Some(n_commits));
    assert_eq!(db.tracking("other").unwrap(), None);
    assert_eq!(db.commit(Commit::new([event(1)])).unwrap().position, 1);
    db.checkpoint().unwrap();
    db.close().unwrap();
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.commits, n_commits + 1);
}

#[test]
fn a_commit_that_fails_its_condition_tracks_nothing() {
    let db = Database::in_memory(&Options::default()).unwrap();
    db.commit(Commit::new([event(1)])).unwrap();
    let copied = Query::from(QueryItem::any().tagged("copied"));
    let guarded = Commit::new([event(2)])
        .fail_if_any(copied)
        .with_tracking(Tracking::new("upstream", 5));
    assert!(matches!(
        db.commit(guarded),
        Err(Error::ConditionFailed {
            condition: 0,
            position: 1
        })
    ));
    assert_eq!(db.tracking("upstream").unwrap(), None);
}
