//! Databases in directories that were tampered with, and events that are hard on the index on disk.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use trefoil::{Commit, Database, Error, NewEvent, Options, Selection};

use crate::claim;

fn small() -> Options {
    Options::default().with_tail_events_max(4)
}

fn event(number: u64) -> NewEvent {
    NewEvent::new("account-1", "Deposited", format!(r#"{{"n":{number}}}"#))
}

fn with_events(directory: &Path, n: u64) {
    let database = Database::open(directory, &small()).unwrap();
    for number in 0..n {
        database.commit(Commit::new([event(number)])).unwrap();
    }
    database.close().unwrap();
}

fn n_events(directory: &Path) -> usize {
    let database = Database::open(directory, &small()).unwrap();
    let events = database.read(&Selection::all()).unwrap();
    database.close().unwrap();
    events.len()
}

#[test]
fn a_repair_that_is_killed_leaves_all_of_the_maps_or_none() {
    let directory = tempfile::tempdir().unwrap();
    with_events(directory.path(), 20);
    let generation = directory.path().join("1");
    // As if it had been killed after the maps were moved away, with some of them removed.
    fs::rename(generation.join("maps"), generation.join("maps.removed")).unwrap();
    fs::remove_dir_all(generation.join("maps.removed/loaded")).unwrap();
    assert_eq!(n_events(directory.path()), 20);
    assert!(!generation.join("maps.removed").exists());
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let options = small().with_replay_listener({
        let told = std::sync::Arc::clone(&told);
        move |done, total| told.lock().unwrap().push((done, total))
    });
    let repaired = trefoil::tools::repair(claim(directory.path()), &options).unwrap();
    let told = told.lock().unwrap();
    assert!(told.is_sorted() && told.iter().all(|(_, total)| *total == told[0].1));
    assert!(
        told.last().is_some_and(|(done, total)| done == total),
        "{told:?}"
    );
    assert_eq!(repaired.events, 20);
    assert!(!generation.join("maps.removed").exists());
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_damaged_sidecar_is_mended_by_repair() {
    let directory = tempfile::tempdir().unwrap();
    let options = small().with_segment_bytes_max(256 * 1024);
    let database = Database::open(directory.path(), &options).unwrap();
    for _ in 0..12 {
        let event = NewEvent::new("large-1", "Large", format!("\"{}\"", "x".repeat(100_000)));
        database.commit(Commit::new([event])).unwrap();
    }
    database.compact().unwrap();
    database.close().unwrap();
    let log = fs::read_dir(directory.path().join("1/log")).unwrap();
    let mut files = log.map(|file| file.unwrap().path());
    let sidecar = files.find(|file| file.extension().is_some_and(|kind| kind == "offsets"));
    let sidecar = sidecar.expect("a full segment has a sidecar");
    let mut bytes = fs::read(&sidecar).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&sidecar, bytes).unwrap();
    let findings = || {
        let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
        report.findings.len()
    };
    assert_eq!(findings(), 1);
    trefoil::tools::repair(claim(directory.path()), &options).unwrap();
    assert_eq!(findings(), 0);
}

/// A key of the index has a limit; metadata is larger than that.
#[test]
fn no_metadata_keeps_the_index_from_disk() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), &small()).unwrap();
    for name in [
        "n".repeat(70_000),
        "\\u0000".repeat(40_000),
        "n".repeat(1024),
    ] {
        let metadata = format!(r#"{{"correlationStreamName":"{name}"}}"#);
        for number in 0..8 {
            let event = event(number).with_metadata(metadata.clone());
            database.commit(Commit::new([event])).unwrap();
        }
    }
    database.checkpoint().unwrap();
    let found = database
        .read(&Selection::all().correlated_with("n".repeat(1024)))
        .unwrap();
    assert_eq!(found.len(), 8);
    database.close().unwrap();
    assert_eq!(n_events(directory.path()), 24);
}

/// A few events with many long tags take as much memory as many ordinary ones.
#[test]
fn the_index_goes_to_disk_by_its_bytes_too() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::default().with_tail_events_max(1000);
    let database = Database::open(directory.path(), &options).unwrap();
    for number in 0..60 {
        let mut tagged = event(number);
        tagged.tags = (0..64)
            .map(|tag| format!("{number}:{tag}:{}", "t".repeat(240)))
            .collect();
        database.commit(Commit::new([tagged])).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    while database.info().unwrap().index_bytes == 0 {
        assert!(
            Instant::now() < deadline,
            "60 events of a thousand are still in memory"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The file that names the generation is the only thing that says which one counts.
#[test]
fn a_lost_generation_file_never_costs_events() {
    let directory = tempfile::tempdir().unwrap();
    with_events(directory.path(), 3);
    let current = directory.path().join("generation");
    let refuse = || match Database::open(directory.path(), &small()) {
        Err(Error::Damaged(damage)) => assert_eq!(damage.file, current),
        other => panic!("opened or failed otherwise: {other:?}"),
    };
    fs::remove_file(&current).unwrap();
    refuse();
    for text in ["7\n", "", "one"] {
        fs::write(&current, text).unwrap();
        refuse();
    }
    fs::write(&current, "1\n").unwrap();
    assert_eq!(n_events(directory.path()), 3);
}

#[test]
fn a_directory_has_one_owner_until_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), &small()).unwrap();
    for _ in 0..2 {
        let second = Database::open(directory.path(), &small());
        assert!(matches!(second, Err(Error::Locked { .. })), "{second:?}");
        database.clear().unwrap();
    }
    database.close().unwrap();
    assert_eq!(n_events(directory.path()), 0);
}

/// What no longer counts goes, whenever the process was interrupted.
#[test]
fn generations_that_do_not_count_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    with_events(directory.path(), 2);
    fs::create_dir_all(directory.path().join("2/log")).unwrap();
    fs::write(directory.path().join("generation.new"), "2\n").unwrap();
    assert_eq!(n_events(directory.path()), 2);
    assert!(!directory.path().join("2").exists());
    let database = Database::open(directory.path(), &small()).unwrap();
    database.clear().unwrap();
    database.close().unwrap();
    assert!(!directory.path().join("1").exists());
    assert_eq!(n_events(directory.path()), 0);
}

#[test]
fn the_tools_find_rebuild_and_show_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    with_events(directory.path(), 41);
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert_eq!(
        (report.events, report.findings.len()),
        (41, 0),
        "{:?}",
        report.findings
    );
    assert!(report.postings > 0);
    let inspection = trefoil::tools::inspect(claim(directory.path())).unwrap();
    assert!(!inspection.runs.is_empty() && !inspection.segments.is_empty());
    let mut keys = Vec::new();
    let name = inspection.runs[0].map.clone();
    inspection
        .keys(&name, &mut |key, _| {
            keys.push(key.to_owned());
            true
        })
        .unwrap();
    assert!(
        keys.contains(&"Stream \"account-1\"".to_owned()),
        "{keys:?}"
    );
    drop(inspection);

    // A run that is gone is found, named, and made again.
    fs::remove_dir_all(directory.path().join("1/maps/loaded").join(&name)).unwrap();
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.what.contains(&name)),
        "{report:?}"
    );
    let opened = Database::open(directory.path(), &small());
    assert!(matches!(opened, Err(Error::Damaged(_))), "{opened:?}");
    assert_eq!(
        trefoil::tools::repair(claim(directory.path()), &small())
            .unwrap()
            .events,
        41
    );
    let report = trefoil::tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(n_events(directory.path()), 41);
}
