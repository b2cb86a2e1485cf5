//! A projection that counts every event exactly once: the position up to which it has come is
//! written by the same commit as what it has counted. It can stop anywhere and go on later.
//!
//! ```text
//! cargo run -p trefoil --example projection
//! ```

use trefoil::{Commit, Database, Error, NewEvent, Options, Selection, Tracking, Transaction, cmd};

/// The name under which the projection keeps its position.
const PROJECTION: &str = "orders-per-customer";

fn main() -> trefoil::Result<()> {
    let db = Database::in_memory(&Options::default())?;
    for (number, customer) in ["ada", "bob", "ada"].into_iter().enumerate() {
        let stream = format!("order-{number}");
        let order = NewEvent::new(stream, "Placed", format!(r#"{{"customer":"{customer}"}}"#))
            .with_tag(format!("customer:{customer}"));
        db.commit(Commit::new([order]))?;
    }

    // It stops after two events, and goes on with the third. A third run finds nothing to do.
    for limit in [2, 100, 100] {
        let n = project(&db, limit)?;
        println!("counted {n} events, up to {:?}", db.tracking(PROJECTION)?);
    }

    // What was counted before is refused, whoever counts it again.
    let again = Transaction::new()
        .call(cmd!(db, "HINCRBY", "orders", "ada", 1)?)
        .with_tracking(Tracking::new(PROJECTION, 3));
    match db.transact(again) {
        Err(Error::TrackingConflict { recorded, .. }) => {
            println!("refused: {recorded} was counted");
        }
        other => println!("unexpected: {other:?}"),
    }

    for customer in ["ada", "bob"] {
        let replies = db.look(&[cmd!(db, "HGET", "orders", customer)?])?;
        println!("{customer}: {}", replies[0].as_str().unwrap_or("0"));
    }
    Ok(())
}

/// Counts up to `limit` events after the last one that was counted, and returns how many it were.
fn project(db: &Database, limit: usize) -> trefoil::Result<usize> {
    let next = db.tracking(PROJECTION)?.map_or(1, |last| last + 1);
    let orders = Selection::category("order")
        .of_type("Placed")
        .from_position(next)
        .limit(limit);
    let events = db.read(&orders)?;
    for event in &events {
        let customer = event.tags().find_map(|tag| tag.strip_prefix("customer:"));
        let count = cmd!(db, "HINCRBY", "orders", customer.unwrap_or("unknown"), 1)?;
        // Both or neither.
        let counted = Transaction::new()
            .call(count)
            .with_tracking(Tracking::new(PROJECTION, event.position()));
        db.transact(counted)?;
    }
    Ok(events.len())
}
