//! Reading while the state changes and moves to disk: every read is of one moment, and none is of an
//! earlier one than the read before it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use trefoil::{Database, Options, Reply, tools};

use super::{look, run};

use crate::claim;

const ACCOUNTS: usize = 40;
const TRANSFERS: usize = 400;
const WRITERS: usize = 2;
const EACH: i64 = 100;

fn name(account: usize) -> String {
    format!("account:{account}")
}

/// How often something was transferred, and all accounts.
fn read(db: &Database) -> (i64, Vec<i64>) {
    let keys: Vec<String> = (0..ACCOUNTS).map(name).collect();
    let Reply::Array(replies) = look(db, &format!("MGET transfers {}", keys.join(" "))) else {
        panic!("not an array");
    };
    let number = |reply: Reply| match reply {
        Reply::Bulk(bytes) => std::str::from_utf8(&bytes).unwrap().parse().unwrap(),
        other => panic!("{other:?}"),
    };
    let mut numbers = replies.into_iter().map(number);
    (numbers.next().unwrap(), numbers.collect())
}

/// Moves something from one account to another, again and again.
fn transfer(db: &Database, writer: usize) {
    for number in 0..TRANSFERS {
        let from = (number * 7 + writer) % ACCOUNTS;
        let to = (number * 11 + 3 * writer + 1) % ACCOUNTS;
        run(
            db,
            &[
                &format!("DECRBY {} 3", name(from)),
                &format!("INCRBY {} 3", name(to)),
                "INCR transfers",
            ],
        );
    }
}

/// Reads until it is told to stop. Answers how often.
fn watch(db: &Database, stop: &AtomicBool) -> usize {
    let (mut last, mut n_reads) = (0, 0);
    while !stop.load(Ordering::SeqCst) {
        let (transfers, accounts) = read(db);
        assert!(transfers >= last, "{transfers} after {last}");
        assert_eq!(accounts.iter().sum::<i64>(), EACH * ACCOUNTS as i64);
        (last, n_reads) = (transfers, n_reads + 1);
    }
    n_reads
}

/// `cache_bytes` decides how many of the entries that were read stay in memory.
fn every_read_is_of_one_moment(cache_bytes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::default().with_cache_bytes(cache_bytes);
    let db = Database::open(directory.path(), &options).unwrap();
    for account in 0..ACCOUNTS {
        run(&db, &[&format!("SET {} {EACH}", name(account))]);
    }
    run(&db, &["SET transfers 0"]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (db, stop) = (&db, &stop);
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| watch(db, stop))).collect();
        let mover = scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                db.checkpoint().unwrap();
            }
        });
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || transfer(db, writer)));
        for writer in writers.collect::<Vec<_>>() {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        mover.join().unwrap();
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    let end = read(&db);
    assert_eq!(end.0, (WRITERS * TRANSFERS) as i64);
    db.close().unwrap();
    assert_eq!(
        read(&Database::open(directory.path(), &options).unwrap()),
        end
    );
    let report = tools::verify(&*claim(directory.path()), &mut |_| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn every_read_is_of_one_moment_where_entries_stay_in_memory() {
    every_read_is_of_one_moment(Options::default().cache_bytes);
}

#[test]
fn every_read_is_of_one_moment_where_few_entries_stay_in_memory() {
    every_read_is_of_one_moment(32 * 1024);
}

#[test]
fn every_read_is_of_one_moment_where_no_entries_stay_in_memory() {
    every_read_is_of_one_moment(0);
}
