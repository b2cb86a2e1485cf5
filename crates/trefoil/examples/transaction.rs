//! A transaction that changes state and appends an event, on conditions on both: all of it takes
//! effect, durably, or nothing does.
//!
//! ```text
//! cargo run -p trefoil --example transaction
//! ```

use trefoil::{Database, Error, Guard, NewEvent, Options, Transaction, Wanted, cmd};

fn main() -> trefoil::Result<()> {
    let db = Database::in_memory(&Options::default())?;
    let stock = cmd!(db, "HSET", "item:7", "name", "lamp", "stock", 2)?;
    db.transact(Transaction::of_call(stock))?;

    for customer in ["ada", "bob", "eve"] {
        match buy(&db, customer) {
            Ok((left, position)) => println!("{customer} got one, {left} left: event {position}"),
            Err(Error::GuardFailed { .. }) => println!("{customer} got none: it is sold out"),
            Err(error) => return Err(error),
        }
    }

    // A transaction that has an id is executed once, however often it is sent.
    for _ in 0..2 {
        let visit = Transaction::of_call(cmd!(db, "INCR", "visits")?).with_id("visit-1");
        let executed = db.transact(visit)?;
        println!("visits: {:?}", executed.replies[0].as_int());
    }

    // The first command that fails takes back everything.
    let broken = Transaction::new()
        .call(cmd!(db, "INCR", "visits")?)
        .call(cmd!(db, "INCR", "item:7")?);
    if let Err(error) = db.transact(broken) {
        println!("refused: {error}");
    }
    let replies = db.look(&[cmd!(db, "GET", "visits")?])?;
    println!("visits: {:?}", replies[0].as_str());
    Ok(())
}

/// Sells one lamp. Returns how many are left, and the position of the event.
fn buy(db: &Database, customer: &str) -> trefoil::Result<(i64, u64)> {
    let sold = NewEvent::new("item-7", "Sold", format!(r#"{{"to":"{customer}"}}"#));
    let sale = Transaction::new()
        .with_guard(Guard::field(
            "item:7",
            "stock",
            Wanted::NotEqual("0".into()),
        ))
        .call(cmd!(db, "HINCRBY", "item:7", "stock", -1)?)
        .append(sold);
    let executed = db.transact(sale)?;
    let left = executed.replies[0].as_int().unwrap_or_default();
    let position = executed.events.first().map_or(0, |event| event.position);
    Ok((left, position))
}
