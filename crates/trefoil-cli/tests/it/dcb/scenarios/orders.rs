//! Orders that are sent twice are placed once, by a token of the client's choice.

use trefoil::Query;

use super::{Outcome, count, execute};
use crate::dcb::backend::{Backend, over_every_protocol};
use crate::dcb::store::{Fact, Refusal, Store, Unless, item};

over_every_protocol!(
    a_token_places_one_order,
    a_condition_on_the_token_goes_with_one_on_the_model,
    of_many_submissions_one_is_placed,
);

fn placed(order: &str, token: &str) -> Fact {
    Fact::new("OrderPlaced", [order, token])
}

/// Reads by the token and appends if there is still none.
fn place(store: &mut dyn Store, order: &str, token: &str) -> Outcome {
    let query = Query::from(item(&["OrderPlaced"], &[token]));
    execute(store, &query, |seen| match seen {
        [] => Ok(vec![placed(order, token)]),
        _ => Err("re-submission"),
    })
}

fn a_token_places_one_order(backend: &mut Backend) {
    let store = &mut *backend.connect();
    place(store, "order:1", "idempotency:a").unwrap();
    assert_eq!(
        place(store, "order:2", "idempotency:a"),
        Err("re-submission")
    );
    place(store, "order:2", "idempotency:b").unwrap();
}

/// One condition looks at everything, the other behind what was read, and the answer tells which
/// of them failed.
fn a_condition_on_the_token_goes_with_one_on_the_model(backend: &mut Backend) {
    let store = &mut *backend.connect();
    if store.conditions_max() < 2 {
        return;
    }
    let model = Query::from(item(&["OrderPlaced", "OrderLimitReached"], &["customer:c"]));
    let place = |store: &mut dyn Store, order: &str, token: &str, after: u64| {
        let mut fact = placed(order, token);
        fact.tags.push("customer:c".to_owned());
        let token = Query::from(item(&[], &[token]));
        store.append(
            &[fact],
            &[Unless::any(&token), Unless::after(&model, after)],
        )
    };
    let failed = |condition, position| {
        Err(Refusal::Conflict {
            condition: Some(condition),
            position: Some(position),
        })
    };
    assert_eq!(place(store, "order:1", "idempotency:a", 0), Ok(1));
    assert_eq!(place(store, "order:1", "idempotency:a", 1), failed(0, 1));
    assert_eq!(place(store, "order:2", "idempotency:b", 0), failed(1, 1));
    assert_eq!(place(store, "order:2", "idempotency:b", 1), Ok(2));
    assert_eq!(store.all(&Query::all()).positions(), [1, 2]);
}

fn of_many_submissions_one_is_placed(backend: &mut Backend) {
    let outcomes = backend.together(60, |number, store| {
        place(store, &format!("order:{number}"), "idempotency:a")
    });
    assert_eq!(count(&outcomes, ""), 1);
    assert_eq!(count(&outcomes, "re-submission"), 59);
    let outcomes = backend.together(60, |number, store| {
        place(store, "order:x", &format!("idempotency:{number}"))
    });
    assert_eq!(count(&outcomes, ""), 60);
}
