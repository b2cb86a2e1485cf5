//! Unique usernames: claimed while an account has them, and for three days after.

use serde_json::json;
use trefoil::Query;

use super::{Outcome, count, execute};
use crate::dcb::backend::{Backend, over_every_protocol};
use crate::dcb::store::{Fact, Seen, Store, item};

over_every_protocol!(
    a_username_is_claimed_once_at_a_time,
    of_a_hundred_claims_one_wins
);

const RETENTION_DAYS: u64 = 3;

fn tag(username: &str) -> String {
    format!("username:{username}")
}

fn is_claimed(seen: &[Seen], username: &str, today: u64) -> bool {
    seen.iter().fold(false, |claimed, seen| {
        let data = &seen.fact.data;
        let kept = || today <= data["day"].as_u64().unwrap() + RETENTION_DAYS;
        match seen.fact.kind.as_str() {
            "AccountRegistered" => true,
            "AccountClosed" => kept(),
            "UsernameChanged" if data["new"] == username => true,
            "UsernameChanged" => kept(),
            _ => claimed,
        }
    })
}

fn claim(store: &mut dyn Store, username: &str, today: u64, fact: &Fact) -> Outcome {
    let types = ["AccountRegistered", "AccountClosed", "UsernameChanged"];
    let query = Query::from(item(&types, &[&tag(username)]));
    execute(store, &query, |seen| {
        match is_claimed(seen, username, today) {
            true => Err("claimed"),
            false => Ok(vec![fact.clone()]),
        }
    })
}

fn register(store: &mut dyn Store, username: &str, today: u64) -> Outcome {
    let fact = Fact::new("AccountRegistered", [tag(username)]).with(json!({"day": today}));
    claim(store, username, today, &fact)
}

fn change(store: &mut dyn Store, old: &str, new: &str, today: u64) -> Outcome {
    let fact = Fact::new("UsernameChanged", [tag(old), tag(new)])
        .with(json!({"day": today, "old": old, "new": new}));
    claim(store, new, today, &fact)
}

fn close(store: &mut dyn Store, username: &str, today: u64) {
    let fact = Fact::new("AccountClosed", [tag(username)]).with(json!({"day": today}));
    store.append(&[fact], &[]).unwrap();
}

fn a_username_is_claimed_once_at_a_time(backend: &mut Backend) {
    let store = &mut *backend.connect();
    register(store, "ada", 0).unwrap();
    assert_eq!(register(store, "ada", 100), Err("claimed"));
    register(store, "bob", 0).unwrap();
    close(store, "bob", 10);
    assert_eq!(register(store, "bob", 10), Err("claimed"));
    assert_eq!(register(store, "bob", 13), Err("claimed"));
    register(store, "bob", 14).unwrap();
    assert_eq!(change(store, "ada", "bob", 20), Err("claimed"));
    change(store, "ada", "eve", 20).unwrap();
    assert_eq!(register(store, "eve", 30), Err("claimed"));
    assert_eq!(register(store, "ada", 23), Err("claimed"));
    register(store, "ada", 24).unwrap();
}

fn of_a_hundred_claims_one_wins(backend: &mut Backend) {
    let outcomes = backend.together(100, |_, store| register(store, "ada", 0));
    assert_eq!(count(&outcomes, ""), 1);
    assert_eq!(count(&outcomes, "claimed"), 99);
    // Names that begin alike do not stand in each other's way.
    let outcomes = backend.together(50, |number, store| {
        register(store, &format!("ada{number}"), 0)
    });
    assert_eq!(count(&outcomes, ""), 50);
}
