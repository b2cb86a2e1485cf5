//! Transactions of many commands: what they hold in memory is what they change, not how often.

use crate::harness::{Server, Value, encode};

/// How often one entry of 4,096 bytes is changed.
const CHANGES: usize = 20_000;

/// Kept for each change, the entry would take twice as much.
const GROWTH_KIB_MAX: u64 = 40 << 10;

#[test]
fn an_entry_that_changes_often_is_kept_once() {
    let server = Server::in_test_mode();
    let mut resp = server.resp();
    assert_eq!(resp.line("SETBIT bits 32767 1"), Value::Integer(0));
    let mut queued = Vec::new();
    encode(&["MULTI"], &mut queued);
    for place in 0..CHANGES {
        encode(&["SETBIT", "bits", &place.to_string(), "1"], &mut queued);
    }
    resp.send(&queued).unwrap();
    for _ in 0..=CHANGES {
        assert!(matches!(resp.receive().unwrap(), Value::Simple(_)));
    }
    let before = server.status("VmHWM");
    let replies = resp.line("EXEC");
    assert_eq!(replies.elements().map(<[Value]>::len), Some(CHANGES));
    let grown = server.status("VmHWM") - before;
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB more");
    let count = i64::try_from(CHANGES).unwrap() + 1;
    assert_eq!(resp.line("BITCOUNT bits"), Value::Integer(count));
}
