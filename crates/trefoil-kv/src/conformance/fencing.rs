//! A store has one writer, and a later one ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::{PATIENCE, batch, bytes, commit, get, put};
use crate::contract::{Kv, KvEngine, KvError};

/// `here` and `there` are two nodes.
pub(super) fn check(here: &dyn KvEngine, there: &dyn KvEngine) {
    a_later_writer_ends_the_earlier_one(here, there);
    epochs_may_skip_numbers(here, there);
    a_stale_opener_disturbs_nobody(here, there);
    the_highest_of_many_wins(here, there);
    nothing_acknowledged_is_lost_in_a_race(here, there);
}

fn a_later_writer_ends_the_earlier_one(here: &dyn KvEngine, there: &dyn KvEngine) {
    let old = here.open("fencing/later", 1).unwrap();
    put(&*old, &[("a", "old")]);
    let (sender, lost) = channel();
    old.on_lost(Box::new(move || sender.send(()).unwrap()));
    let new = there.open("fencing/later", 2).unwrap();
    assert_eq!(get(&*new, "a"), Some(bytes("old")));
    let refused = commit(&*old, batch(&[("a", Some("late")), ("b", Some("late"))]));
    assert!(
        matches!(refused, Err(KvError::Fenced | KvError::Unknown(_))),
        "{refused:?}"
    );
    lost.recv_timeout(PATIENCE).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    old.on_lost(Box::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    assert_eq!(calls.load(Ordering::SeqCst), 1, "it was lost before");
    assert!(commit(&*old, batch(&[("c", Some("later"))])).is_err());
    put(&*new, &[("d", "new")]);
    for key in ["b", "c"] {
        assert_eq!(get(&*new, key), None);
    }
    assert_eq!(get(&*new, "a"), Some(bytes("old")));
    assert_eq!(get(&*new, "d"), Some(bytes("new")));
    old.close().unwrap();
    put(&*new, &[("e", "new")]);
    new.close().unwrap();
}

fn epochs_may_skip_numbers(here: &dyn KvEngine, there: &dyn KvEngine) {
    let first = here.open("fencing/skips", 5).unwrap();
    put(&*first, &[("a", "5")]);
    let second = there.open("fencing/skips", 1000).unwrap();
    assert_eq!(get(&*second, "a"), Some(bytes("5")));
    put(&*second, &[("a", "1000")]);
    assert!(commit(&*first, batch(&[("a", Some("5 again"))])).is_err());
    second.close().unwrap();
    assert_eq!(here.open("fencing/skips", 999).err(), Some(KvError::Fenced));
    let third = here.open("fencing/skips", 1001).unwrap();
    assert_eq!(get(&*third, "a"), Some(bytes("1000")));
}

fn a_stale_opener_disturbs_nobody(here: &dyn KvEngine, there: &dyn KvEngine) {
    let live = here.open("fencing/stale", 3).unwrap();
    let (sender, lost) = channel();
    live.on_lost(Box::new(move || sender.send(()).unwrap()));
    for stale in [1, 2, 3] {
        let refused = there.open("fencing/stale", stale);
        assert_eq!(refused.err(), Some(KvError::Fenced), "epoch {stale}");
        put(&*live, &[("a", "live")]);
    }
    live.close().unwrap();
    assert!(lost.try_recv().is_err(), "it was not lost");
    let refused = there.open("fencing/stale", 3);
    assert_eq!(refused.err(), Some(KvError::Fenced), "it was there before");
}

/// Several open at the same time, a new store and then one that is there. One with the highest epoch can
/// write then, and no other.
fn the_highest_of_many_wins(here: &dyn KvEngine, there: &dyn KvEngine) {
    for round in 0..5 {
        race(here, there, 5 * round);
    }
}

fn race(here: &dyn KvEngine, there: &dyn KvEngine, before: u64) {
    let highest = before + 4;
    let opened: Vec<(u64, Arc<dyn Kv>)> = std::thread::scope(|scope| {
        let openers: Vec<_> = (before + 1..=highest)
            .map(|epoch| {
                let engine = if epoch % 2 == 0 { here } else { there };
                scope.spawn(move || (epoch, engine.open("fencing/race", epoch)))
            })
            .collect();
        let opened = openers.into_iter().map(|opener| opener.join().unwrap());
        opened
            .filter_map(|(epoch, opened)| match opened {
                Ok(kv) => Some((epoch, kv)),
                Err(KvError::Fenced) => None,
                Err(error) => panic!("epoch {epoch}: {error:?}"),
            })
            .collect()
    });
    assert_eq!(opened.last().map(|(epoch, _)| *epoch), Some(highest));
    for (epoch, kv) in &opened {
        let written = commit(&**kv, batch(&[("winner", Some(&epoch.to_string()))]));
        assert_eq!(
            written.is_ok(),
            *epoch == highest,
            "epoch {epoch}: {written:?}"
        );
    }
    let after = here.open("fencing/race", highest + 1).unwrap();
    assert_eq!(get(&*after, "winner"), Some(bytes(&highest.to_string())));
}

/// One writes as fast as it can while another takes the store away.
fn nothing_acknowledged_is_lost_in_a_race(here: &dyn KvEngine, there: &dyn KvEngine) {
    for round in 0..5_u64 {
        let old = here.open("fencing/taken", round * 2 + 1).unwrap();
        let (sender, acknowledged) = channel();
        let new = std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0.. {
                    let key = format!("{round}/{number:06}");
                    if commit(&*old, batch(&[(&key, Some("x"))])).is_err() {
                        break;
                    }
                    sender.send(key).unwrap();
                }
            });
            // The first ones are there before the store is taken.
            let first: Vec<String> = acknowledged.iter().take(3).collect();
            let new = there.open("fencing/taken", round * 2 + 2).unwrap();
            for key in first {
                assert!(get(&*new, &key).is_some(), "{key} is lost");
            }
            new
        });
        drop(sender);
        for key in acknowledged {
            assert!(get(&*new, &key).is_some(), "{key} is lost");
        }
        new.close().unwrap();
    }
}
