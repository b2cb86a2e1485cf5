//! How a query finds its events, as `trefoil query --explain` shows it.

use serde::{Deserialize, Serialize};

use crate::output::{Output, visible};

/// The server's answer to `"explain": true`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    strategy: String,
    range: (u64, u64),
    estimate: u64,
    items: Vec<Item>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    terms: Vec<Term>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Term {
    kind: String,
    names: Vec<String>,
    events: u64,
    role: String,
}

impl Plan {
    pub(super) fn print(&self, output: &mut Output) -> anyhow::Result<()> {
        if output.json {
            return Ok(output.value(self)?);
        }
        let Self {
            strategy,
            range: (first, last),
            estimate,
            items,
        } = self;
        output.line(format_args!(
            "{strategy}: reads about {estimate} of the events from {first} to {last} at most"
        ))?;
        for item in items {
            for (index, term) in item.terms.iter().enumerate() {
                let mark = if index == 0 { "-" } else { " " };
                output.line(format_args!("  {mark} {term}"))?;
            }
        }
        Ok(())
    }
}

/// What the term is, how it is used, and how many events have it.
impl std::fmt::Display for Term {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.names.join(" | ");
        let Self {
            kind, events, role, ..
        } = self;
        write!(
            formatter,
            "{role} {kind} {}  {events} events",
            visible(&names)
        )
    }
}
