//! Invoice numbers without gaps: the condition is on a type alone.

use serde_json::json;
use trefoil::{Query, Selection};

use crate::dcb::backend::{Backend, over_every_protocol};
use crate::dcb::store::{Fact, Refusal, Store, Unless, item};

over_every_protocol!(invoices_are_numbered, many_creators_leave_no_gap);

fn created() -> Query {
    item(&["InvoiceCreated"], &[]).into()
}

/// Reads the last invoice and appends the next, if none came in between.
fn create(store: &mut dyn Store) -> u64 {
    loop {
        let last = Selection::query(created()).backwards().limit(1);
        let last = store.read(&last).unwrap().events.pop();
        let (number, after) = match last {
            Some(last) => (last.fact.data["number"].as_u64().unwrap(), last.position),
            None => (0, 0),
        };
        let number = number + 1;
        let tag = format!("invoice:{number}");
        let fact = Fact::new("InvoiceCreated", [tag]).with(json!({"number": number}));
        match store.append(&[fact], &[Unless::after(&created(), after)]) {
            Ok(_) => return number,
            Err(Refusal::Conflict { .. }) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
}

fn invoices_are_numbered(backend: &mut Backend) {
    let store = &mut *backend.connect();
    store.append(&[Fact::new("Else", ["x"])], &[]).unwrap();
    assert_eq!(create(store), 1);
    store.append(&[Fact::new("Else", ["x"])], &[]).unwrap();
    assert_eq!(create(store), 2);
}

fn many_creators_leave_no_gap(backend: &mut Backend) {
    let mut numbers = backend.together(50, |_, store| create(store));
    let logged = backend.connect().all(&created()).events;
    let logged = logged.iter().map(|seen| seen.fact.data["number"].as_u64());
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=50).collect::<Vec<u64>>());
    assert!(logged.eq((1..=50).map(Some)), "in the order of the log");
}
