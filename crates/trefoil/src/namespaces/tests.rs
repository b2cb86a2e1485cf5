//! Tests of namespaces on disk and in memory.

#![allow(clippy::disallowed_methods, reason = "tests wait by the real clock")]

use std::fs;
use std::path::Path;
use std::thread;

use super::*;
use crate::{Commit, NewEvent};

fn options(open_max: usize) -> NamespacesOptions {
    NamespacesOptions {
        open_max,
        ..NamespacesOptions::default()
    }
}

pub(super) fn open(directory: &Path) -> Namespaces {
    Namespaces::open(directory, options(256)).unwrap()
}

pub(super) fn id(text: &str) -> NamespaceId {
    NamespaceId::new(text).unwrap()
}

pub(super) fn create(namespaces: &Namespaces, name: &str) -> Token {
    namespaces
        .create(&id(name), NewNamespace::default())
        .unwrap()
        .1
}

pub(super) fn write(namespaces: &Namespaces, name: &str) {
    let event = NewEvent::new("account-1", "Opened", "{}");
    namespaces
        .database(&id(name))
        .unwrap()
        .commit(Commit::new([event]))
        .unwrap();
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn another_token_takes_the_place_of_the_one_before() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let first = create(&namespaces, "tenant");
    let other = create(&namespaces, "other");
    let second = namespaces.rotate_token("tenant", None).unwrap();
    assert_eq!(namespaces.authenticate(&first), None);
    assert_eq!(namespaces.authenticate(&second), Some(id("tenant")));
    assert!(
        namespaces
            .rotate_token("tenant", Some(other.clone()))
            .is_err()
    );
    let missing = namespaces.rotate_token("nobody", None).unwrap_err();
    assert!(matches!(missing, Error::NamespaceNotFound(_)), "{missing}");
    let rotate = |token| {
        let home = LocalHome::open_existing(data.path())?.unwrap();
        crate::tools::rotate_token(Arc::new(home), "tenant", token)
    };
    assert!(matches!(rotate(None).unwrap_err(), Error::Locked { .. }));
    namespaces.close().unwrap();

    // While nobody has the directory open, and with a token that was used before.
    assert_eq!(
        rotate(Some(first.clone())).unwrap().reveal(),
        first.reveal()
    );
    let namespaces = open(data.path());
    assert_eq!(namespaces.authenticate(&second), None);
    assert_eq!(namespaces.authenticate(&first), Some(id("tenant")));
    assert_eq!(namespaces.authenticate(&other), Some(id("other")));
    namespaces.close().unwrap();
}

#[test]
fn a_directory_that_holds_no_namespaces_gains_none_by_a_new_token() {
    let data = tempfile::tempdir().unwrap();
    assert!(LocalHome::open_existing(data.path()).unwrap().is_none());
    assert_eq!(names(data.path()), [] as [&str; 0]);
}

#[test]
fn a_namespace_survives_reopening_with_all_that_was_said_of_it() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let new = NewNamespace {
        description: "A \"tenant\"".to_owned(),
        token: None,
        metadata: Some(r#"{"plan": "big", "n": 1.0}"#.to_owned()),
        settings: NamespaceSettings {
            cache_share: 7,
            warm: true,
            quotas: Quotas {
                disk_bytes: Some(1),
                ..Quotas::default()
            },
        },
    };
    let (entry, token) = namespaces.create(&id("tenant-a"), new).unwrap();
    namespaces.close().unwrap();

    let namespaces = open(data.path());
    assert_eq!(namespaces.entry("tenant-a").unwrap(), entry);
    assert_eq!(namespaces.authenticate(&token), Some(id("tenant-a")));
    assert_eq!(entry.settings.cache_share, 7);
    let keeper = namespaces.quota_keeper(&id("tenant-a"));
    assert_eq!(keeper.limit(Quota::DiskBytes), Some(1));
    assert_eq!(
        entry.metadata.as_deref(),
        Some(r#"{"plan": "big", "n": 1.0}"#)
    );
}

#[test]
fn the_registry_file_is_readable_and_does_not_hold_the_token() {
    let data = tempfile::tempdir().unwrap();
    let token = Token::development();
    open(data.path()).ensure_default(Some(&token)).unwrap();
    let text = fs::read_to_string(data.path().join("_meta/default.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["format"], 2);
    assert_eq!(json["id"], "default");
    let known = "6fefedfc989ca8bea8ce1b63672607c06fbd0d8b3c0667164cf4f5a02911fb52";
    assert_eq!(json["tokens"][0]["name"], "main");
    assert_eq!(json["tokens"][0]["sha256"], known);
    assert!(!text.contains(token.reveal()));
}

#[test]
fn namespaces_are_listed_by_id() {
    let namespaces = Namespaces::in_memory(options(1)).unwrap();
    for name in ["b", "a", "C"] {
        create(&namespaces, name);
    }
    let listed: Vec<String> = namespaces
        .list()
        .unwrap()
        .iter()
        .map(|entry| entry.id.to_string())
        .collect();
    assert_eq!(listed, ["C", "a", "b"]);
}

#[test]
fn an_existing_id_is_refused_and_an_unknown_one_not_found() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    create(&namespaces, "a");
    let again = namespaces.create(&id("a"), NewNamespace::default());
    assert!(matches!(again, Err(Error::NamespaceExists(name)) if name == "a"));
    assert!(matches!(
        namespaces.entry("b"),
        Err(Error::NamespaceNotFound(_))
    ));
    assert!(matches!(
        namespaces.delete("b"),
        Err(Error::NamespaceNotFound(_))
    ));
    assert!(matches!(
        namespaces.counts("b"),
        Err(Error::NamespaceNotFound(_))
    ));
    assert!(matches!(
        namespaces.database(&id("b")),
        Err(Error::NamespaceNotFound(_))
    ));
}

#[test]
fn deletion_counts_the_events_and_leaves_nothing() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let token = create(&namespaces, "a");
    create(&namespaces, "b");
    for _ in 0..3 {
        write(&namespaces, "a");
    }
    fs::create_dir_all(data.path().join("a/log")).unwrap();
    fs::write(data.path().join("a/log/1"), "bytes").unwrap();
    assert_eq!(namespaces.counts("a").unwrap().events, 3);
    assert_eq!(namespaces.delete("a").unwrap(), 3);
    assert_eq!(names(&data.path().join("_meta")), ["LOCK", "b.json"]);
    assert!(
        !names(data.path())
            .iter()
            .any(|name| name.contains('a') && name != "_meta")
    );
    assert_eq!(namespaces.authenticate(&token), None);
    create(&namespaces, "a");
    assert_eq!(namespaces.counts("a").unwrap().events, 0);
}

#[test]
fn who_holds_a_deleted_namespace_is_told() {
    let namespaces = Namespaces::in_memory(options(1)).unwrap();
    create(&namespaces, "a");
    let held = namespaces.database(&id("a")).unwrap();
    let mut subscription = held.subscribe(trefoil_core::Selection::all());
    assert!(
        subscription
            .next_timeout(Duration::ZERO)
            .unwrap()
            .is_empty()
    );
    namespaces.delete("a").unwrap();
    assert!(matches!(
        subscription.next_timeout(Duration::ZERO),
        Err(Error::Closed(_))
    ));
}

#[test]
fn an_interrupted_deletion_is_finished_at_the_next_start() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    create(&namespaces, "half");
    create(&namespaces, "whole");
    namespaces.close().unwrap();
    let meta = data.path().join("_meta");
    // The process died after the registry file had been renamed: "half" is deleted, its data is not.
    fs::create_dir_all(data.path().join("half/log")).unwrap();
    fs::rename(meta.join("half.json"), meta.join("_deleted-half-01")).unwrap();
    // It died after the directory had been renamed, and in the middle of creating another.
    fs::create_dir_all(data.path().join("_deleted-other-02/log")).unwrap();
    fs::write(meta.join("_new-third-03"), "{").unwrap();

    let namespaces = open(data.path());
    assert_eq!(names(&meta), ["LOCK", "whole.json"]);
    assert!(
        names(data.path())
            .iter()
            .all(|name| name == "_meta" || name == "whole")
    );
    assert_eq!(namespaces.list().unwrap().len(), 1);
}

#[test]
fn a_marker_left_behind_does_not_delete_the_namespace_created_anew() {
    let data = tempfile::tempdir().unwrap();
    create(&open(data.path()), "a");
    let meta = data.path().join("_meta");
    fs::copy(meta.join("a.json"), meta.join("_deleted-a-01")).unwrap();
    fs::create_dir_all(data.path().join("a/log")).unwrap();
    open(data.path()).entry("a").unwrap();
    assert!(data.path().join("a/log").exists());
    assert_eq!(names(&meta), ["LOCK", "a.json"]);
}

#[test]
fn an_unknown_directory_is_left_alone_and_not_taken_over() {
    let data = tempfile::tempdir().unwrap();
    fs::create_dir_all(data.path().join("stranger/log")).unwrap();
    let namespaces = open(data.path());
    let error = namespaces
        .create(&id("stranger"), NewNamespace::default())
        .unwrap_err();
    assert!(error.to_string().contains("move it away first"), "{error}");
    assert!(data.path().join("stranger/log").exists());
    assert!(namespaces.list().unwrap().is_empty());
}

#[test]
fn a_data_directory_has_one_owner() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let second = Namespaces::open(data.path(), options(1));
    assert!(matches!(second, Err(Error::Locked { path }) if path == data.path()));
    namespaces.close().unwrap();
    let after = open(data.path());
    assert!(matches!(
        namespaces.database(&id("default")),
        Err(Error::Closed(_))
    ));
    after.ensure_default(None).unwrap();
}

#[test]
fn the_default_namespace_is_created_once_and_keeps_its_token() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let token = namespaces.ensure_default(None).unwrap().unwrap();
    assert_eq!(token.namespace(), Some("default"));
    assert_eq!(namespaces.ensure_default(None).unwrap(), None);
    assert_eq!(namespaces.ensure_default(Some(&token)).unwrap(), None);
    let other = namespaces.ensure_default(Some(&Token::development()));
    assert!(matches!(other, Err(Error::Invalid(_))));
}

#[test]
fn only_the_right_token_opens_a_namespace() {
    let namespaces = Namespaces::in_memory(options(1)).unwrap();
    let token = create(&namespaces, "a");
    let other = create(&namespaces, "b");
    assert_ne!(token, other);
    assert_eq!(namespaces.authenticate(&token), Some(id("a")));
    assert_eq!(namespaces.authenticate(&other), Some(id("b")));
    let wrong = Token::from_secret(&id("a"), &[7; 32]);
    let unknown = Token::from_secret(&id("c"), &[7; 32]);
    assert_eq!(namespaces.authenticate(&wrong), None);
    assert_eq!(namespaces.authenticate(&unknown), None);
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let namespaces = Namespaces::in_memory(options(1)).unwrap();
    let base = NewNamespace::default();
    let refused = |new: NewNamespace| match namespaces.create(&id("a"), new) {
        Err(Error::Invalid(text)) => text,
        other => panic!("{other:?}"),
    };
    let token = Some(Token::development());
    let text = refused(NewNamespace {
        token,
        ..base.clone()
    });
    assert_eq!(text, "Token is for namespace 'default', not 'a'");
    let metadata = Some("[]".to_owned());
    assert!(
        refused(NewNamespace {
            metadata,
            ..base.clone()
        })
        .contains("JSON object")
    );
    let description = "x".repeat(limits::NAMESPACE_DESCRIPTION_BYTES_MAX + 1);
    assert!(
        refused(NewNamespace {
            description,
            ..base.clone()
        })
        .contains("4096")
    );
    let settings = NamespaceSettings {
        cache_share: 0,
        warm: false,
        ..NamespaceSettings::default()
    };
    assert!(refused(NewNamespace { settings, ..base }).contains("cache share"));
    assert!(namespaces.list().unwrap().is_empty());
    assert!(Namespaces::in_memory(options(0)).is_err());
}

#[test]
fn ids_that_would_leave_the_data_directory_are_nobodys() {
    let data = tempfile::tempdir().unwrap();
    let inside = data.path().join("data");
    fs::create_dir(data.path().join("victim")).unwrap();
    let namespaces = open(&inside);
    for name in ["../victim", "..", "_meta", "/etc", "a/../../victim", ""] {
        assert!(NamespaceId::new(name).is_err(), "{name}");
        assert!(
            matches!(namespaces.delete(name), Err(Error::NamespaceNotFound(_))),
            "{name}"
        );
        assert!(
            matches!(namespaces.entry(name), Err(Error::NamespaceNotFound(_))),
            "{name}"
        );
    }
    assert!(data.path().join("victim").exists());
}

#[test]
fn a_thousand_namespaces_are_created_and_listed_quickly() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let start = std::time::Instant::now();
    for number in 0..1000 {
        create(&namespaces, &format!("tenant-{number:04}"));
    }
    namespaces.close().unwrap();
    let namespaces = open(data.path());
    assert_eq!(namespaces.list().unwrap().len(), 1000);
    // Two syncs each; generous, because the disk of a test machine may be anything.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    assert!(
        !data.path().join("tenant-0000").exists(),
        "an unused namespace costs no directory"
    );
}

#[test]
fn ten_namespaces_share_two_places_and_lose_nothing() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = Namespaces::open(data.path(), options(2)).unwrap();
    let names: Vec<String> = (0..10).map(|number| format!("tenant-{number}")).collect();
    for name in &names {
        create(&namespaces, name);
    }
    for round in 1..=3 {
        for name in &names {
            write(&namespaces, name);
            assert_eq!(namespaces.counts(name).unwrap().events, round, "{name}");
        }
        let open = names
            .iter()
            .filter(|name| namespaces.inner.pool.is_open(&id(name)));
        assert_eq!(open.count(), 2);
    }
    namespaces.close().unwrap();
    let namespaces = open(data.path());
    for name in &names {
        assert_eq!(namespaces.counts(name).unwrap().events, 3, "{name}");
    }
}

#[test]
fn counts_of_closed_namespaces_are_true_and_displace_nobody() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = Namespaces::open(data.path(), options(1)).unwrap();
    for name in ["a", "b"] {
        create(&namespaces, name);
        write(&namespaces, name);
    }
    let held = namespaces.database(&id("b")).unwrap();
    assert_eq!(
        namespaces.counts("a").unwrap().events,
        1,
        "without the place that is held"
    );
    drop(held);
    write(&namespaces, "a");
    write(&namespaces, "b");
    assert_eq!(namespaces.counts("a").unwrap().events, 2);
    assert_eq!(namespaces.counts("b").unwrap().events, 2);
    namespaces.delete("a").unwrap();
    create(&namespaces, "a");
    write(&namespaces, "b");
    assert_eq!(namespaces.counts("a").unwrap().events, 0);
}

#[test]
fn many_threads_use_and_delete_namespaces_at_once() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = Namespaces::open(data.path(), options(4)).unwrap();
    thread::scope(|scope| {
        for worker in 0..8 {
            let namespaces = namespaces.clone();
            scope.spawn(move || {
                let own = format!("own-{worker}");
                for _ in 0..5 {
                    create(&namespaces, &own);
                    let shared = namespaces.create(&id("shared"), NewNamespace::default());
                    assert!(matches!(shared, Ok(_) | Err(Error::NamespaceExists(_))));
                    use_once(&namespaces, &own);
                    use_once(&namespaces, "shared");
                    namespaces.delete(&own).unwrap();
                }
            });
        }
    });
    assert_eq!(namespaces.list().unwrap().len(), 1);
}

/// Eight threads may want more than four namespaces at a time, which is refused, not broken.
fn use_once(namespaces: &Namespaces, name: &str) {
    loop {
        match namespaces.database(&id(name)) {
            Ok(database) => {
                database.info().unwrap();
                return;
            }
            Err(Error::Overloaded(_)) => thread::yield_now(),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn in_memory_namespaces_are_never_closed_for_room() {
    let namespaces = Namespaces::in_memory(options(1)).unwrap();
    for name in ["a", "b", "c"] {
        create(&namespaces, name);
        write(&namespaces, name);
    }
    for name in ["a", "b", "c"] {
        assert_eq!(namespaces.counts(name).unwrap().events, 1);
    }
}

#[test]
fn a_warm_namespace_is_opened_at_start() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let settings = NamespaceSettings {
        cache_share: 1,
        warm: true,
        ..NamespaceSettings::default()
    };
    let new = NewNamespace {
        settings,
        ..NewNamespace::default()
    };
    namespaces.create(&id("warm"), new).unwrap();
    create(&namespaces, "cold");
    namespaces.close().unwrap();
    let namespaces = open(data.path());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !namespaces.inner.pool.is_open(&id("warm")) {
        assert!(std::time::Instant::now() < deadline, "not opened");
        thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!namespaces.inner.pool.is_open(&id("cold")));
}

/// How many keys a namespace says it has, expired ones that are not cleaned yet included.
fn keys(database: &Database) -> trefoil_state::Reply {
    let words = vec![bytes::Bytes::from_static(b"DBSIZE")];
    let call = trefoil_state::Call::new(words).unwrap().unwrap();
    database.look(&[call]).unwrap().remove(0)
}

#[test]
fn a_closed_namespace_is_opened_when_a_key_of_it_expires() {
    let directory = tempfile::tempdir().unwrap();
    let id = NamespaceId::new("tenant").unwrap();
    let set = |milliseconds: &'static str| {
        let words = ["SET", "key", "value", "PX", milliseconds];
        let words = words.map(|word| bytes::Bytes::from_static(word.as_bytes()));
        let call = trefoil_state::Call::new(words.into()).unwrap().unwrap();
        crate::Transaction::of_call(call)
    };
    let namespaces = Namespaces::open(directory.path(), options(1)).unwrap();
    namespaces.create(&id, NewNamespace::default()).unwrap();
    namespaces
        .database(&id)
        .unwrap()
        .transact(set("300"))
        .unwrap();
    namespaces.close().unwrap();

    let namespaces = Namespaces::open(directory.path(), options(1)).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !namespaces.inner.pool.is_open(&id) {
        assert!(std::time::Instant::now() < deadline, "never opened");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let database = namespaces.database(&id).unwrap();
    while keys(&database) != trefoil_state::Reply::Integer(0) {
        assert!(std::time::Instant::now() < deadline, "never cleaned");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(database);
    namespaces.close().unwrap();
    assert!(!directory.path().join("tenant/due").exists());
}

#[test]
fn what_is_kept_in_memory_is_counted() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    create(&namespaces, "tenant");
    assert_eq!(namespaces.memory_use(), MemoryUse::default());
    write(&namespaces, "tenant");
    assert!(namespaces.memory_use().unsaved_bytes > 0);
    let database = namespaces.database(&id("tenant")).unwrap();
    database.checkpoint().unwrap();
    assert_eq!(namespaces.memory_use().unsaved_bytes, 0);
    let stream = trefoil_core::Selection::stream("account-1");
    assert_eq!(database.read(&stream).unwrap().len(), 1);
    assert!(namespaces.memory_use().block_bytes > 0);
}
