//! What can be done with objects.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::bytes;
use crate::contract::{KvObjects, ObjectVersion};

/// How many checks of this process used a directory: each has its own.
static CHECKS: AtomicUsize = AtomicUsize::new(0);

/// `here` and `there` are two nodes.
pub(super) fn check(here: &dyn KvObjects, there: &dyn KvObjects) {
    an_object_is_created_once(here, there);
    an_object_is_replaced_if_it_is_unchanged(here, there);
    one_of_many_writers_wins(here, there);
    names_are_listed_in_order(here);
    names_that_cannot_be_are_refused(here);
    files_are_stored_and_fetched(here, there);
}

fn text(objects: &dyn KvObjects, name: &str) -> Option<String> {
    let (bytes, _) = objects.get(name).unwrap()?;
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

fn an_object_is_created_once(here: &dyn KvObjects, there: &dyn KvObjects) {
    assert_eq!(here.get("created/a").unwrap(), None);
    let version = here.create("created/a", bytes("first")).unwrap().unwrap();
    assert_eq!(
        there.get("created/a").unwrap(),
        Some((bytes("first"), version))
    );
    assert_eq!(there.create("created/a", bytes("second")).unwrap(), None);
    assert_eq!(here.create("created/a", bytes("third")).unwrap(), None);
    assert_eq!(text(here, "created/a").as_deref(), Some("first"));
    there.delete("created/a").unwrap();
    there.delete("created/a").unwrap();
    assert_eq!(here.get("created/a").unwrap(), None);
    assert!(here.create("created/a", Bytes::new()).unwrap().is_some());
    assert_eq!(text(there, "created/a").as_deref(), Some(""));
    here.delete("created/a").unwrap();
}

fn an_object_is_replaced_if_it_is_unchanged(here: &dyn KvObjects, there: &dyn KvObjects) {
    let name = "replaced/a";
    let first = here.create(name, bytes("first")).unwrap().unwrap();
    let second = there.replace(name, &first, bytes("second")).unwrap();
    let second = second.unwrap();
    assert_ne!(first, second);
    assert_eq!(here.replace(name, &first, bytes("late")).unwrap(), None);
    assert_eq!(
        here.get(name).unwrap(),
        Some((bytes("second"), second.clone()))
    );
    let third = here.replace(name, &second, bytes("third")).unwrap();
    assert!(third.is_some());
    there.delete(name).unwrap();
    let third = third.unwrap();
    assert_eq!(here.replace(name, &third, bytes("gone")).unwrap(), None);
    assert_eq!(here.get(name).unwrap(), None);
    let made_up = ObjectVersion("\"made up\"".to_owned());
    assert_eq!(here.replace(name, &made_up, bytes("none")).unwrap(), None);
}

fn one_of_many_writers_wins(here: &dyn KvObjects, there: &dyn KvObjects) {
    let race = |write: &(dyn Fn(&dyn KvObjects, usize) -> bool + Sync)| {
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..6)
                .map(|number| {
                    let objects = if number % 2 == 0 { here } else { there };
                    scope.spawn(move || write(objects, number))
                })
                .collect();
            let won = writers.into_iter().map(|writer| writer.join().unwrap());
            won.filter(|won| *won).count()
        })
    };
    let created = race(&|objects, number| {
        let text = Bytes::from(format!("created by {number}"));
        objects.create("raced/a", text).unwrap().is_some()
    });
    assert_eq!(created, 1);
    let (_, version) = here.get("raced/a").unwrap().unwrap();
    let replaced = race(&|objects, number| {
        let text = Bytes::from(format!("replaced by {number}"));
        let replaced = objects.replace("raced/a", &version, text);
        replaced.unwrap().is_some()
    });
    assert_eq!(replaced, 1);
    here.delete("raced/a").unwrap();
}

fn names_are_listed_in_order(objects: &dyn KvObjects) {
    // `-` and `.` come before `/`, which not every store sees in this way.
    let names = [
        "listed/a",
        "listed/b-1",
        "listed/b.1",
        "listed/b/1",
        "listed/b/2/x",
        "listed/b0",
        "listed/c=1_2",
        "listed/d",
    ];
    for name in names.iter().rev() {
        objects.create(name, bytes("x")).unwrap().unwrap();
    }
    objects.create("listed-not/a", bytes("x")).unwrap().unwrap();
    assert_eq!(objects.list("listed/", "", 100).unwrap(), names);
    assert_eq!(objects.list("listed/b", "", 100).unwrap(), names[1..6]);
    assert_eq!(objects.list("listed/b/", "", 100).unwrap(), names[3..5]);
    assert_eq!(
        objects.list("listed/", "listed/b.1", 2).unwrap(),
        names[3..5]
    );
    assert_eq!(
        objects.list("listed/", "listed/b.2", 2).unwrap(),
        names[3..5]
    );
    assert!(objects.list("listed/", "listed/d", 9).unwrap().is_empty());
    assert!(objects.list("listed/x", "", 9).unwrap().is_empty());
    assert!(objects.list("nothing/", "", 9).unwrap().is_empty());
    let mut paged = Vec::new();
    loop {
        let after = paged.last().map_or(String::new(), String::clone);
        let page = objects.list("listed", &after, 3).unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    let everything: Vec<&str> = ["listed-not/a"].into_iter().chain(names).collect();
    assert_eq!(paged, everything);
    for name in paged {
        objects.delete(&name).unwrap();
    }
}

fn names_that_cannot_be_are_refused(objects: &dyn KvObjects) {
    for name in ["", "/a", "a/", "a//b", "../a", "a/../b", "a b", "ä", "a\n"] {
        assert!(objects.create(name, bytes("x")).is_err(), "{name:?}");
        assert!(objects.get(name).is_err(), "{name:?}");
    }
}

fn files_are_stored_and_fetched(here: &dyn KvObjects, there: &dyn KvObjects) {
    let number = CHECKS.fetch_add(1, Ordering::Relaxed);
    let name = format!("trefoil-objects-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let (source, copy) = (directory.join("source"), directory.join("copy"));
    // Nothing, one part, several parts.
    for size in [0, 100_000, 20 << 20] {
        let bytes: Vec<u8> = (0..size).map(|at: u32| (at / 7) as u8).collect();
        std::fs::write(&source, &bytes).unwrap();
        here.upload("files/a", &source).unwrap();
        assert!(there.download("files/a", &copy).unwrap());
        assert!(std::fs::read(&copy).unwrap() == bytes, "{size} bytes");
    }
    there.delete("files/a").unwrap();
    std::fs::remove_file(&copy).unwrap();
    assert!(!here.download("files/a", &copy).unwrap());
    assert!(!copy.exists());
    assert!(here.upload("files/b", &directory.join("absent")).is_err());
    assert_eq!(there.get("files/b").unwrap(), None);
    std::fs::remove_dir_all(&directory).unwrap();
}
