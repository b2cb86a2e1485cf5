//! How a query finds its events, as `trefoil query --explain` shows it.

use serde::{Deserialize, Serialize};

use crate::output::{CommandOutput, visible};

/// The server's answer to `"explain": true`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ShownPlan {
    strategy: String,
    range: (u64, u64),
    estimate: u64,
    items: Vec<ShownPlanItem>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShownPlanItem {
    terms: Vec<ShownPlanTerm>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShownPlanTerm {
    kind: String,
    names: Vec<String>,
    events: u64,
    role: String,
}

impl ShownPlan {
    pub(super) fn print(&self, output: &mut CommandOutput) -> anyhow::Result<()> {
        if !output.is_text() {
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
impl std::fmt::Display for ShownPlanTerm {
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
