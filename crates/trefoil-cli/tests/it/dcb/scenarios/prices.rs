//! Prices that change: a displayed price is good for ten minutes after the next one came, also in a
//! cart of many products.

use serde_json::{Value, json};
use trefoil::Query;

use super::{Outcome, count, execute, is_tagged, of_type};
use crate::dcb::backend::{Backend, over_every_protocol};
use crate::dcb::store::{Fact, Seen, Store, item};

over_every_protocol!(
    a_displayed_price_is_good_for_a_while,
    a_cart_of_many_products_is_one_decision,
    no_order_at_an_old_price_comes_after_the_new_one,
);

const GRACE_MINUTES: u64 = 10;
const PRICES: [&str; 2] = ["ProductDefined", "ProductPriceChanged"];

fn set_price(store: &mut dyn Store, kind: &str, product: &str, price: u64, minute: u64) -> u64 {
    let data = json!({"price": price, "minute": minute});
    let fact = Fact::new(kind, [product]).with(data);
    store.append(&[fact], &[]).unwrap()
}

/// The price now, and those that were replaced a short while ago.
fn is_valid(seen: &[Seen], product: &str, displayed: u64, minute: u64) -> bool {
    let of_product = |seen: &&Seen| is_tagged(seen, product) && seen.fact.data["price"].is_u64();
    let prices: Vec<&Value> = seen
        .iter()
        .filter(of_product)
        .map(|s| &s.fact.data)
        .collect();
    let good = |(index, price): (usize, &&Value)| {
        let replaced = prices
            .get(index + 1)
            .and_then(|next| next["minute"].as_u64());
        price["price"] == displayed && replaced.is_none_or(|at| minute <= at + GRACE_MINUTES)
    };
    prices.iter().enumerate().any(good)
}

/// Orders products, each at the price that was displayed.
fn order(store: &mut dyn Store, cart: &[(String, u64)], minute: u64) -> Outcome {
    let query: Query = cart
        .iter()
        .map(|(product, _)| item(&PRICES, &[product]))
        .collect();
    execute(store, &query, |seen| {
        let valid = |(product, price): &(String, u64)| is_valid(seen, product, *price, minute);
        if !cart.iter().all(valid) {
            return Err("invalid price");
        }
        let products = cart.iter().map(|(product, _)| product);
        Ok(vec![
            Fact::new("ProductsOrdered", products).with(json!(cart)),
        ])
    })
}

fn cart(products: impl IntoIterator<Item = usize>, price: u64) -> Vec<(String, u64)> {
    let products = products.into_iter();
    products
        .map(|number| (format!("product:{number}"), price))
        .collect()
}

fn a_displayed_price_is_good_for_a_while(backend: &mut Backend) {
    let store = &mut *backend.connect();
    set_price(store, "ProductDefined", "product:1", 100, 0);
    order(store, &cart([1], 100), 1000).unwrap();
    assert_eq!(order(store, &cart([1], 99), 1), Err("invalid price"));
    assert_eq!(order(store, &cart([2], 100), 1), Err("invalid price"));
    set_price(store, "ProductPriceChanged", "product:1", 120, 30);
    order(store, &cart([1], 100), 39).unwrap();
    assert_eq!(order(store, &cart([1], 100), 50), Err("invalid price"));
    order(store, &cart([1], 120), 50).unwrap();
}

fn a_cart_of_many_products_is_one_decision(backend: &mut Backend) {
    let store = &mut *backend.connect();
    for number in 0..30 {
        set_price(store, "ProductDefined", &format!("product:{number}"), 7, 0);
    }
    let position = order(store, &cart(0..25, 7), 1).unwrap();
    let ordered = store.all(&item(&["ProductsOrdered"], &["product:24", "product:0"]).into());
    assert_eq!(ordered.positions(), [position]);
    assert_eq!(ordered.events[0].fact.tags.len(), 25);
    // One product of the cart has another price by now; a product outside of it does not matter.
    set_price(store, "ProductPriceChanged", "product:29", 8, 2);
    order(store, &cart(0..25, 7), 50).unwrap();
    set_price(store, "ProductPriceChanged", "product:13", 8, 2);
    assert_eq!(order(store, &cart(0..25, 7), 50), Err("invalid price"));
}

fn no_order_at_an_old_price_comes_after_the_new_one(backend: &mut Backend) {
    let store = &mut *backend.connect();
    for number in 0..20 {
        set_price(store, "ProductDefined", &format!("product:{number}"), 7, 0);
    }
    let outcomes = backend.together(60, |number, store| match number {
        30 => Ok(set_price(store, "ProductPriceChanged", "product:13", 8, 0)),
        _ => order(store, &cart(0..20, 7), 100),
    });
    let history = backend.connect().all(&Query::all()).events;
    let changed = of_type(&history, "ProductPriceChanged").next().unwrap();
    let orders: Vec<_> = of_type(&history, "ProductsOrdered").collect();
    assert!(orders.iter().all(|order| order.position < changed.position));
    assert_eq!(count(&outcomes, "") - 1, orders.len());
    assert_eq!(count(&outcomes, "invalid price"), 59 - orders.len());
}
