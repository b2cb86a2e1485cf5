//! The published examples of dynamic consistency boundaries, as applications would write them, and
//! what becomes of each when many clients want the same at once.
//!
//! Times are numbers in the data of the events, so that a test can let days pass.

mod aggregate;
mod courses;
mod invoices;
mod orders;
mod prices;
mod sign_up;
mod usernames;

use trefoil::Query;

use super::store::{Fact, Refusal, Seen, Store, Unless};

/// What a command came to: the position of its event, or why there is none.
type Outcome = Result<u64, &'static str>;

/// Reads what a decision depends on, decides, and appends if nothing of that has changed. If it
/// has, decides anew.
fn execute(
    store: &mut dyn Store,
    query: &Query,
    decide: impl Fn(&[Seen]) -> Result<Vec<Fact>, &'static str>,
) -> Outcome {
    loop {
        let read = store.all(query);
        let facts = decide(&read.events)?;
        match store.append(&facts, &[Unless::after(query, read.after())]) {
            Ok(position) => return Ok(position),
            Err(Refusal::Conflict { .. }) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
}

/// The events of one type.
fn of_type<'a>(seen: &'a [Seen], kind: &'a str) -> impl DoubleEndedIterator<Item = &'a Seen> {
    seen.iter().filter(move |seen| seen.fact.kind == kind)
}

fn is_tagged(seen: &Seen, tag: &str) -> bool {
    seen.fact.tags.iter().any(|other| other == tag)
}

/// How many commands had each outcome, told by their texts; successes as "".
fn count(outcomes: &[Outcome], text: &str) -> usize {
    let texts = outcomes.iter().map(|outcome| outcome.err().unwrap_or(""));
    texts.filter(|other| *other == text).count()
}
