//! What a read would do, told to people.

/// How the events of a read are found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The first and the last position that are looked at, lowest first.
    pub range: (u64, u64),
    /// How the events are found.
    pub strategy: Strategy,
    /// One entry per alternative of the query; a read without a query has one.
    pub items: Vec<ExplainedItem>,
    /// At most about how many events are read to find those that match.
    pub estimate: u64,
}

impl Explanation {
    /// Returns the explanation of a read that begins after the end of the log, which is at `head`.
    pub(crate) fn nothing(head: u64) -> Self {
        Self {
            range: (head + 1, head),
            strategy: Strategy::Nothing,
            items: Vec::new(),
            estimate: 0,
        }
    }
}

/// How the events of a read are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// No term of any alternative occurs in the range: nothing is read.
    Nothing,
    /// The posting lists of the index lead to the events.
    Index,
    /// All events of the range are read and checked, which is cheaper than the index here.
    Scan,
}

/// How the events of one alternative are found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedItem {
    /// The terms, in the order in which they are used.
    pub terms: Vec<ExplainedTerm>,
}

/// A term of an alternative.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedTerm {
    /// What it is: `stream`, `category`, `type`, `tag`, `correlation` or `all`.
    pub kind: &'static str,
    /// Its names; several types are one term.
    pub names: Vec<String>,
    /// How many events of the range have it, at most.
    pub events: u64,
    /// What it is used for.
    pub role: Role,
}

/// What a term is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Its posting list leads.
    Lead,
    /// Its posting list is intersected with the leading one.
    Intersect,
    /// It is so frequent that it is checked on the events themselves.
    Verify,
}
