//! The engine in memory: fencing, faults, and that a seed says everything.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use trefoil_core::Direction;
use trefoil_kv::contract::{Kv, KvBatch, KvEngine, KvError, KvLimits, KvRead, KvResult};
use trefoil_kv::memory::{CutOff, Fate, MemoryEngine, MemoryOptions, SeededFates};

fn put(key: &str, value: &str) -> KvBatch {
    let changes = vec![(
        Bytes::copy_from_slice(key.as_bytes()),
        Some(Bytes::copy_from_slice(value.as_bytes())),
    )];
    KvBatch { changes }
}

/// Sends a batch off. Returns where the answer comes.
fn send(kv: &Arc<dyn Kv>, batch: KvBatch) -> Receiver<KvResult<()>> {
    let (sender, answers) = channel();
    kv.commit(batch, Box::new(move |done| sender.send(done).unwrap()));
    answers
}

fn commit(kv: &Arc<dyn Kv>, batch: KvBatch) -> KvResult<()> {
    send(kv, batch).recv().unwrap()
}

fn get(kv: &(impl KvRead + ?Sized), key: &str) -> Option<Bytes> {
    kv.get(&[key.as_bytes()]).unwrap().remove(0)
}

/// Decides about the next call, and lets all others pass.
fn next_call(engine: &MemoryEngine, fate: Fate) {
    let fates = OneFate(Some(fate));
    engine.set_fates(Some(Box::new(fates)));
}

#[derive(Debug)]
struct OneFate(Option<Fate>);

impl trefoil_kv::memory::Fates for OneFate {
    fn next(&mut self, _call: trefoil_kv::memory::EngineCall) -> Fate {
        self.0.take().unwrap_or(Fate::Done)
    }
}

#[test]
fn a_store_keeps_what_was_committed() {
    let engine = MemoryEngine::default();
    let kv = engine.open("store", 1).unwrap();
    commit(&kv, put("b", "2")).unwrap();
    commit(&kv, put("a", "1")).unwrap();
    let moment = kv.moment().unwrap();
    commit(&kv, put("b", "3")).unwrap();
    commit(&kv, put("c", "4")).unwrap();
    let page = kv.scan(b"", b"z", Direction::Backwards, 3, true).unwrap();
    let keys: Vec<_> = page.entries.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["c", "b"]);
    assert!(page.has_more);
    assert_eq!(get(&*kv, "b").unwrap(), "3");
    assert_eq!(get(&*moment, "b").unwrap(), "2");
    assert_eq!(get(&*moment, "c"), None);
    let floors = kv.floor(&[(b"a", b"bb"), (b"d", b"z")]).unwrap();
    assert_eq!(floors, [Some(("b".into(), "3".into())), None]);
    drop(kv);
    let kv = engine.open("store", 2).unwrap();
    assert_eq!(get(&*kv, "c").unwrap(), "4");
    engine.erase("store").unwrap();
    assert_eq!(commit(&kv, put("d", "5")), Err(KvError::Fenced));
    assert_eq!(get(&*engine.open("store", 1).unwrap(), "c"), None);
}

#[test]
fn a_higher_epoch_takes_a_store_over() {
    let engine = MemoryEngine::default();
    let old = engine.open("store", 5).unwrap();
    commit(&old, put("a", "old")).unwrap();
    let (sender, lost) = channel();
    old.on_lost(Box::new(move || sender.send(()).unwrap()));
    for epoch in [4, 5] {
        assert_eq!(engine.open("store", epoch).unwrap_err(), KvError::Fenced);
    }
    assert!(lost.try_recv().is_err(), "it was not disturbed");
    let new = engine.open("store", 6).unwrap();
    lost.try_recv().unwrap();
    commit(&new, put("a", "new")).unwrap();
    assert_eq!(commit(&old, put("a", "late")), Err(KvError::Fenced));
    // Whoever has lost a store may see what was there before.
    assert_eq!(get(&*old, "a").unwrap(), "old");
    assert_eq!(get(&*old.moment().unwrap(), "a").unwrap(), "old");
    assert_eq!(get(&*new, "a").unwrap(), "new");
}

#[test]
fn a_call_fails_before_or_after_it_is_done() {
    let engine = MemoryEngine::default();
    let kv = engine.open("store", 1).unwrap();
    next_call(&engine, Fate::FailsBefore);
    let failed = commit(&kv, put("a", "1"));
    assert!(matches!(failed, Err(KvError::Unavailable(_))), "{failed:?}");
    assert_eq!(get(&*kv, "a"), None);
    commit(&kv, put("a", "2")).unwrap();
    next_call(&engine, Fate::FailsAfter);
    let unknown = commit(&kv, put("a", "3"));
    assert!(matches!(unknown, Err(KvError::Unknown(_))), "{unknown:?}");
    let useless = commit(&kv, put("a", "4"));
    assert!(matches!(useless, Err(KvError::Unknown(_))), "{useless:?}");
    let kv = engine.open("store", 2).unwrap();
    assert_eq!(get(&*kv, "a").unwrap(), "3", "it was done all the same");
}

#[test]
fn what_is_held_back_comes_too_late_for_a_fenced_writer() {
    let engine = MemoryEngine::default();
    let old = engine.open("store", 1).unwrap();
    next_call(&engine, Fate::Held);
    let held = send(&old, put("a", "held"));
    let behind = send(&old, put("b", "behind it"));
    assert!(held.try_recv().is_err() && behind.try_recv().is_err());
    assert_eq!(get(&*old, "a"), None);
    let new = engine.open("store", 2).unwrap();
    engine.let_go();
    for answer in [held, behind] {
        assert_eq!(answer.try_recv().unwrap(), Err(KvError::Fenced));
    }
    assert_eq!((get(&*new, "a"), get(&*new, "b")), (None, None));
}

#[test]
fn what_is_held_back_arrives_in_order() {
    let engine = MemoryEngine::default();
    let kv = engine.open("store", 1).unwrap();
    next_call(&engine, Fate::Held);
    let first = send(&kv, put("a", "1"));
    let second = send(&kv, put("a", "2"));
    engine.let_go();
    first.try_recv().unwrap().unwrap();
    second.try_recv().unwrap().unwrap();
    assert_eq!(get(&*kv, "a").unwrap(), "2");
    next_call(&engine, Fate::Held);
    let left = send(&kv, put("a", "3"));
    drop(kv);
    let unknown = left.try_recv().unwrap();
    assert!(matches!(unknown, Err(KvError::Unknown(_))), "{unknown:?}");
    engine.let_go();
    let kv = engine.open("store", 2).unwrap();
    assert_eq!(
        get(&*kv, "a").unwrap(),
        "3",
        "it arrived after its node was gone"
    );
}

#[test]
fn an_answer_that_is_late_is_of_something_done() {
    let engine = MemoryEngine::default();
    let kv = engine.open("store", 1).unwrap();
    next_call(&engine, Fate::Late);
    let late = send(&kv, put("a", "1"));
    assert_eq!(get(&*kv, "a").unwrap(), "1");
    assert!(late.try_recv().is_err());
    engine.let_go();
    late.try_recv().unwrap().unwrap();
}

#[test]
fn a_node_is_cut_off_and_others_are_not() {
    let engine = MemoryEngine::default();
    let fates = CutOff::after(2, Fate::FailsAfter);
    let node = engine.connect(MemoryOptions {
        fates: Some(Box::new(fates)),
        ..MemoryOptions::default()
    });
    let kv = node.open("store", 1).unwrap();
    commit(&kv, put("a", "1")).unwrap();
    commit(&kv, put("b", "1")).unwrap_err();
    kv.get(&[b"a"]).unwrap_err();
    node.objects().get("object").unwrap_err();
    assert_eq!(node.n_calls(), 5);
    let kv = engine.open("store", 2).unwrap();
    assert_eq!(get(&*kv, "b").unwrap(), "1");
}

/// The outcomes of many commits under a seed.
fn outcomes(seed: u64) -> Vec<bool> {
    let mut fates = SeededFates::new(seed);
    fates.fails_before = 3;
    let engine = MemoryEngine::default();
    let kv = engine.open("store", 1).unwrap();
    engine.set_fates(Some(Box::new(fates)));
    let outcome = |number: u32| commit(&kv, put("a", &number.to_string())).is_ok();
    (0..100).map(outcome).collect()
}

#[test]
fn a_seed_says_everything() {
    assert_eq!(outcomes(7), outcomes(7));
    assert_ne!(outcomes(7), outcomes(8));
    let n_done = outcomes(7).into_iter().filter(|is_done| *is_done).count();
    assert!((40..90).contains(&n_done), "{n_done}");
}

#[test]
fn what_is_too_large_is_refused_whole() {
    let limits = KvLimits {
        key_bytes: 4,
        value_bytes: 8,
        batch_bytes: 16,
    };
    let engine = MemoryEngine::new(MemoryOptions {
        limits,
        ..MemoryOptions::default()
    });
    let kv = engine.open("store", 1).unwrap();
    assert_eq!(kv.limits(), limits);
    let mut batch = put("a", "12345678");
    batch.changes.extend(put("b", "12345678").changes);
    for (batch, limit) in [
        (put("12345", ""), 4),
        (put("a", "123456789"), 8),
        (batch, 16),
    ] {
        assert_eq!(commit(&kv, batch), Err(KvError::TooLarge { limit }));
    }
    assert_eq!(get(&*kv, "a"), None);
}

#[test]
fn a_slow_connection_answers_later_and_blocks_nobody() {
    let engine = MemoryEngine::new(MemoryOptions {
        delay: Duration::from_millis(20),
        ..MemoryOptions::default()
    });
    let kv = engine.open("store", 1).unwrap();
    let answers: Vec<_> = (0..50)
        .map(|number: u32| send(&kv, put(&number.to_string(), "")))
        .collect();
    assert!(answers[0].try_recv().is_err());
    for answer in answers {
        answer.recv().unwrap().unwrap();
    }
    assert_eq!(get(&*kv, "49").unwrap(), "");
}

#[test]
fn objects_are_created_once_and_replaced_if_unchanged() {
    let engine = MemoryEngine::default();
    let objects = engine.objects();
    let first = objects.create("a/1", "one".into()).unwrap().unwrap();
    assert_eq!(objects.create("a/1", "two".into()).unwrap(), None);
    let second = objects.replace("a/1", &first, "two".into()).unwrap();
    assert!(second.is_some());
    assert_eq!(
        objects.replace("a/1", &first, "three".into()).unwrap(),
        None
    );
    assert_eq!(objects.get("a/1").unwrap().unwrap().0, "two");
    for name in ["a/2", "a/3", "b"] {
        objects.create(name, Bytes::new()).unwrap();
    }
    assert_eq!(objects.list("a/", "", 2).unwrap(), ["a/1", "a/2"]);
    assert_eq!(objects.list("a/", "a/2", 2).unwrap(), ["a/3"]);
    objects.delete("a/2").unwrap();
    objects.delete("a/2").unwrap();
    assert_eq!(objects.list("a/", "", 9).unwrap(), ["a/1", "a/3"]);
    for name in ["", "a//b", "a b", "/a", "ä"] {
        objects.create(name, Bytes::new()).unwrap_err();
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    assert!(!objects.download("c", &file).unwrap());
    std::fs::write(&file, "text").unwrap();
    objects.upload("c", &file).unwrap();
    let fetched = directory.path().join("fetched");
    assert!(objects.download("c", &fetched).unwrap());
    assert_eq!(std::fs::read(fetched).unwrap(), b"text");
}
