//! A change of a few bytes takes a few bytes of the log, however long the value is that it changes.

use trefoil::{Database, Options};

use super::{run, transaction};

/// A record takes this much besides what it changes.
const RECORD_BYTES: u64 = 64;

/// A namespace in a directory, of which the bytes of the log are counted.
struct Counted {
    db: Database,
    _directory: tempfile::TempDir,
}

impl Counted {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path(), &Options::default()).unwrap();
        Self {
            db,
            _directory: directory,
        }
    }

    /// Runs commands, one by one. Each takes at most so many bytes of the log, its record not counted.
    #[track_caller]
    fn check(&self, lines: impl IntoIterator<Item = String>, bytes_max: u64) {
        for line in lines {
            let (before, commit) = (self.n_used(), self.db.last_commit());
            self.db.transact(transaction(&[&line])).unwrap();
            let bytes = self.n_used() - before;
            assert!(self.db.last_commit() > commit, "{line}");
            assert!(bytes <= RECORD_BYTES + bytes_max, "{bytes} bytes: {line}");
        }
    }

    /// Runs commands, one by one. On average each takes at most so many bytes of the log.
    #[track_caller]
    fn check_together(&self, lines: impl IntoIterator<Item = String>, bytes_max: u64) {
        let (before, commit) = (self.n_used(), self.db.last_commit());
        for line in lines {
            self.db.transact(transaction(&[&line])).unwrap();
        }
        let bytes = (self.n_used() - before) / (self.db.last_commit() - commit);
        assert!(bytes <= RECORD_BYTES + bytes_max, "{bytes} bytes");
    }

    fn n_used(&self) -> u64 {
        self.db.info().unwrap().log_used_bytes
    }
}

/// Places all over a value, in no order.
fn places(below: u64) -> impl Iterator<Item = u64> {
    (1..40).map(move |n| n * 7919 * 7919 % below)
}

#[test]
fn a_byte_that_is_appended() {
    let counted = Counted::new();
    for length in [0, 1, 2000, 4090, 10_000] {
        let key = format!("text{length}");
        if length > 0 {
            let value = "text".repeat(length)[..length].to_owned();
            run(&counted.db, &[&format!("SET {key} {value}")]);
        }
        // Short strings become long ones on the way.
        counted.check((0..20).map(|_| format!("APPEND {key} x")), 96);
    }
}

#[test]
fn a_bit_that_is_set_or_cleared_in_a_sparse_bitmap() {
    let counted = Counted::new();
    counted.check(["SETBIT bitmap 819199 1".to_owned()], 64);
    let toggle = |place| [1, 0].map(|bit| format!("SETBIT bitmap {place} {bit}"));
    counted.check(places(819_199).flat_map(toggle), 48);
    counted.check(places(819_199).map(|n| format!("SETBIT bitmap {n} 1")), 48);
    counted.check(places(819_199).map(|n| format!("SETBIT bitmap {n} 0")), 48);
}

#[test]
fn a_part_of_a_string() {
    let counted = Counted::new();
    let range = |at| format!("SETRANGE text {at} 0123456789");
    counted.check(places(200_000).map(range), 64);
    let grow = (1..200).map(|n| format!("SETRANGE longer {} 0123456789", n * 1000));
    counted.check(grow, 96);
}

#[test]
fn seats_of_a_large_map() {
    let counted = Counted::new();
    run(&counted.db, &["BITFIELD map SET u2 #49999 0"]);
    let seat = |n| format!("BITFIELD map SET u2 #{n} 1");
    counted.check(places(50_000).map(seat), 48);
    let two = |n| format!("BITFIELD map INCRBY u2 #{n} 1 SET u2 #{} 2", 49_999 - n);
    counted.check(places(50_000).map(two), 80);
}

#[test]
fn fields_of_a_small_hash() {
    let counted = Counted::new();
    let set = |n| format!("HSET hash field{n} 0123456789012");
    counted.check((0..14).map(set), 64);
    let change = |n| format!("HSET hash field{n} 01234567890123456");
    counted.check((0..14).map(change), 64);
    counted.check((0..14).map(|n| format!("HDEL hash field{n}")), 64);
}

#[test]
fn a_reservation_in_a_large_section() {
    let counted = Counted::new();
    run(
        &counted.db,
        &["SEATS.INIT gala A-1 ROWS 500 SEATS 100 PRICE 50"],
    );
    let reserve = |(n, seat): (usize, u64)| {
        let (row, place) = (seat / 100 + 1, seat % 100 + 1);
        format!("SEATS.RESERVE gala A-1 booking{n} buyer{n} SEATS {row}-{place}")
    };
    // Most of it is the event, the booking and the owner, and a hash of buyers that becomes large.
    counted.check_together(places(50_000).enumerate().map(reserve), 960);
}
