//! Commits with conditions: several streams, all or nothing, and nothing twice.
//!
//! ```text
//! cargo run -p trefoil --example commit
//! ```

use trefoil::{Commit, Database, Error, EventId, NewEvent, Options, Query, QueryItem, Selection};

fn main() -> trefoil::Result<()> {
    let db = Database::in_memory(&Options::default())?;

    // Two streams, one commit. The account must not exist, and nobody else may have this address.
    let taken = Query::from(QueryItem::any().tagged("email:ada@example.com"));
    let opened = NewEvent::new("account-1", "Opened", r#"{"owner":"Ada"}"#)
        .with_tag("email:ada@example.com");
    let logged = NewEvent::new("audit-2026", "AccountOpened", r#"{"account":1}"#);
    let commit = Commit::new([opened, logged])
        .expect_version("account-1", -1)
        .fail_if_any(taken);
    let committed = db.commit(commit.clone())?;
    println!(
        "commit {} ends at position {}",
        committed.commit, committed.position
    );

    // The same once more: a condition fails, and nothing is written.
    match db.commit(commit) {
        Err(Error::ConditionFailed { position, .. }) => {
            println!("refused: the event at {position} has this address");
        }
        other => println!("unexpected: {other:?}"),
    }

    // With an id of its own an event is stored once, however often it is sent.
    let id = EventId::from_u128(0x7777);
    let deposit = NewEvent::new("account-1", "Deposited", r#"{"amount":10}"#).with_id(id);
    for _ in 0..2 {
        let committed = db.commit(Commit::new([deposit.clone()]).expect_version("account-1", 0))?;
        println!(
            "position {}, sent before: {}",
            committed.position, committed.replayed
        );
    }

    for event in db.read(&Selection::stream("account-1"))? {
        println!("{} {}", event.position(), event.event_type());
    }
    Ok(())
}
