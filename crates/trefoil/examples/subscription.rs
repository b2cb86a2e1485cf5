//! A subscription as a stream: what was written before, then what is written meanwhile, in one
//! order and without a gap. It works in any async runtime; this one is Tokio's.
//!
//! ```text
//! cargo run -p trefoil --example subscription
//! ```

use futures_util::StreamExt as _;
use trefoil::{Commit, Database, Error, NewEvent, Options, Selection};

#[tokio::main(flavor = "current_thread")]
async fn main() -> trefoil::Result<()> {
    let db = Database::in_memory_async(&Options::default()).await?;
    db.commit_async(order(1)).await?;
    let mut orders = db.subscribe(Selection::category("order").of_type("Placed"));

    let writer = tokio::spawn({
        let db = db.clone();
        async move {
            for number in 2..=3 {
                db.commit_async(order(number)).await?;
            }
            Ok::<(), Error>(())
        }
    });
    let mut n = 0;
    while let Some(event) = orders.next().await {
        match event {
            Ok(event) => {
                let stream = event.stream().unwrap_or_default();
                println!("{} {stream}", event.position());
                n += 1;
            }
            // The database was closed.
            Err(Error::Closed(why)) => println!("the end: {why}"),
            Err(error) => return Err(error),
        }
        if n == 3 {
            n = 0;
            db.close_async().await?;
        }
    }
    writer
        .await
        .map_err(|error| Error::Internal(error.to_string()))?
}

fn order(number: u64) -> Commit {
    Commit::new([NewEvent::new(format!("order-{number}"), "Placed", "{}")])
}
