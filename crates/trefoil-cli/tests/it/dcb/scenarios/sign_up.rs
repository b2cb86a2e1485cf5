//! Opt-in tokens: a token counts for one address, once, and for an hour.

use serde_json::json;
use trefoil::Query;

use super::{Outcome, count, execute, of_type};
use crate::dcb::backend::{Backend, over_every_protocol};
use crate::dcb::store::{Fact, Store, item};

over_every_protocol!(
    a_token_confirms_its_address_once,
    of_many_confirmations_one_counts
);

const VALID_MINUTES: u64 = 60;

fn initiate(store: &mut dyn Store, email: &str, otp: &str, name: &str, minute: u64) {
    let fact =
        Fact::new("SignUpInitiated", [email, otp]).with(json!({"name": name, "minute": minute}));
    store.append(&[fact], &[]).unwrap();
}

fn confirm(store: &mut dyn Store, email: &str, otp: &str, minute: u64) -> Outcome {
    let query = Query::from(item(&["SignUpInitiated", "SignUpConfirmed"], &[email, otp]));
    execute(store, &query, |seen| {
        let Some(initiated) = of_type(seen, "SignUpInitiated").next_back() else {
            return Err("no such sign-up");
        };
        if of_type(seen, "SignUpConfirmed").next().is_some() {
            return Err("already used");
        }
        let data = &initiated.fact.data;
        if minute > data["minute"].as_u64().unwrap() + VALID_MINUTES {
            return Err("expired");
        }
        let name = json!({"name": data["name"]});
        Ok(vec![Fact::new("SignUpConfirmed", [email, otp]).with(name)])
    })
}

fn a_token_confirms_its_address_once(backend: &mut Backend) {
    let store = &mut *backend.connect();
    initiate(store, "email:ada", "otp:1111", "Ada", 0);
    initiate(store, "email:bob", "otp:2222", "Bob", 0);
    assert_eq!(
        confirm(store, "email:ada", "otp:0000", 5),
        Err("no such sign-up")
    );
    assert_eq!(
        confirm(store, "email:ada", "otp:2222", 5),
        Err("no such sign-up")
    );
    let position = confirm(store, "email:ada", "otp:1111", 60).unwrap();
    assert_eq!(
        confirm(store, "email:ada", "otp:1111", 60),
        Err("already used")
    );
    assert_eq!(confirm(store, "email:bob", "otp:2222", 61), Err("expired"));
    let confirmed = store.all(&item(&["SignUpConfirmed"], &[]).into()).events;
    assert_eq!(confirmed.len(), 1);
    assert_eq!(confirmed[0].position, position);
    assert_eq!(confirmed[0].fact.data, json!({"name": "Ada"}));
}

fn of_many_confirmations_one_counts(backend: &mut Backend) {
    let store = &mut *backend.connect();
    initiate(store, "email:ada", "otp:1111", "Ada", 0);
    let outcomes = backend.together(50, |_, store| confirm(store, "email:ada", "otp:1111", 1));
    assert_eq!(count(&outcomes, ""), 1);
    assert_eq!(count(&outcomes, "already used"), 49);
}
