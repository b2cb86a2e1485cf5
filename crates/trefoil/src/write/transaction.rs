//! A transaction: commands on the state and events to append, all in one commit.

use std::sync::Arc;

use bytes::Bytes;
use trefoil_core::limits::{
    COMMIT_ID_BYTES_MAX, EVENTS_PER_COMMIT_MAX, GUARDS_PER_TRANSACTION_MAX,
    STEPS_PER_TRANSACTION_MAX, TRANSACTION_BYTES_MAX,
};
use trefoil_core::{
    Appended, Condition, Error, NewEvent, Result, Tracking, validate_conditions, validate_ids,
};
use trefoil_state::{Allowance, Call, CommandAccess, Reply};

use crate::state::Watch;

/// Commands and events that take effect together, durably, or not at all.
///
/// The first command that fails takes back everything, unless the transaction is
/// [lenient](Self::lenient).
#[derive(Debug)]
#[non_exhaustive]
pub struct Transaction {
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// What must be true of the log.
    pub conditions: Vec<Condition>,
    /// What must be true of the state.
    pub guards: Vec<Guard>,
    /// Keys that must not have changed since they began to be watched.
    pub watch: Option<Watch>,
    /// Whether the first command that fails takes back everything. It does unless told otherwise.
    pub is_strict: bool,
    /// A name for this transaction: if one of this name was executed before, its replies are
    /// answered again and nothing changes.
    pub id: Option<Bytes>,
    /// How far the writer has come in another log.
    pub tracking: Option<Tracking>,
    /// Who is asked for memory for the replies before anything is written; without it they may take
    /// any amount.
    pub allowance: Option<Arc<dyn Allowance>>,
}

/// One thing that a transaction does.
#[derive(Debug)]
pub enum Step {
    /// A command on the state.
    Call(Call),
    /// An event to append. It answers a list of its global position and its position in its stream
    /// (-1 without a stream).
    Append {
        /// The event.
        event: Box<NewEvent>,
        /// The version at which its stream must be, events of earlier steps included; -1: no such
        /// stream. If it is not, nothing of the transaction takes effect.
        expected: Option<i64>,
    },
}

/// Something that must be true of the state before a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The key.
    pub key: Bytes,
    /// A field of the hash under the key; `None`: the string under it, or the key itself.
    pub field: Option<Bytes>,
    /// What must be true of it.
    pub wanted: Wanted,
}

/// What must be true of a key or a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// It is there.
    Present,
    /// It is not there.
    Absent,
    /// It has this value.
    Equal(Bytes),
    /// It does not have this value, or is not there.
    NotEqual(Bytes),
}

/// What became of a transaction.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Executed {
    /// The number of its commit; `None` if it changed nothing.
    pub commit: Option<u64>,
    /// One reply per step.
    pub replies: Vec<Reply>,
    /// Where its events went, in order.
    pub events: Vec<Appended>,
    /// Whether this is the answer to a repetition: nothing was done this time.
    pub replayed: bool,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            conditions: Vec::new(),
            guards: Vec::new(),
            watch: None,
            is_strict: true,
            id: None,
            tracking: None,
            allowance: None,
        }
    }
}

/// Building one.
impl Transaction {
    /// Returns a transaction that does nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a transaction of one command.
    pub fn of_call(call: Call) -> Self {
        Self::default().call(call)
    }

    /// Adds a command on the state.
    #[must_use]
    pub fn call(mut self, call: Call) -> Self {
        self.steps.push(Step::Call(call));
        self
    }

    /// Adds an event to append.
    #[must_use]
    pub fn append(mut self, event: NewEvent) -> Self {
        self.steps.push(Step::append(event));
        self
    }

    /// Adds a condition on the log.
    #[must_use]
    pub fn with_condition(self, condition: Condition) -> Self {
        self.with_conditions([condition])
    }

    /// Adds conditions on the log.
    #[must_use]
    pub fn with_conditions(mut self, conditions: impl IntoIterator<Item = Condition>) -> Self {
        self.conditions.extend(conditions);
        self
    }

    /// Adds a condition on the state.
    #[must_use]
    pub fn with_guard(self, guard: Guard) -> Self {
        self.with_guards([guard])
    }

    /// Adds conditions on the state.
    #[must_use]
    pub fn with_guards(mut self, guards: impl IntoIterator<Item = Guard>) -> Self {
        self.guards.extend(guards);
        self
    }

    /// Refuses the transaction if one of the watched keys was changed since.
    #[must_use]
    pub fn with_watch(mut self, watch: Watch) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Names the transaction: if one of this name was executed before, nothing changes, and its
    /// replies are returned again.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Bytes>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Records with the transaction how far the writer has come in another log.
    #[must_use]
    pub fn with_tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = Some(tracking);
        self
    }

    /// Asks for memory for the replies before anything is written.
    #[must_use]
    pub fn with_allowance(mut self, allowance: Arc<dyn Allowance>) -> Self {
        self.allowance = Some(allowance);
        self
    }

    /// Adds steps.
    #[must_use]
    pub fn with_steps(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps.extend(steps);
        self
    }

    /// Lets the other steps take effect when a command fails, as in Redis: its reply is its error,
    /// and only what it had changed itself is taken back.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.is_strict = false;
        self
    }
}

impl Transaction {
    /// Returns whether it cannot change anything. Its id is not kept then: to read again does no
    /// harm, and a read must not cost a write.
    pub fn is_read_only(&self) -> bool {
        let reads = |step: &Step| match step {
            Step::Call(call) => call.spec().access != CommandAccess::Write,
            Step::Append { .. } => false,
        };
        self.tracking.is_none() && self.steps.iter().all(reads)
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let size = |step: &Step| match step {
            Step::Call(call) => call.size(),
            Step::Append { event, .. } => event.size(),
        };
        self.steps.iter().map(size).sum()
    }

    /// Checks every limit that does not depend on what is stored.
    pub(crate) fn validate(&self, data_bytes_max: usize) -> Result<()> {
        check_limit(
            "number of steps",
            self.steps.len(),
            STEPS_PER_TRANSACTION_MAX,
        )?;
        check_limit(
            "number of guards",
            self.guards.len(),
            GUARDS_PER_TRANSACTION_MAX,
        )?;
        check_limit("bytes of a transaction", self.size(), TRANSACTION_BYTES_MAX)?;
        if let Some(id) = &self.id {
            check_limit("length of a commit id", id.len(), COMMIT_ID_BYTES_MAX)?;
        }
        validate_conditions(&self.conditions)?;
        if let Some(tracking) = &self.tracking {
            tracking.validate()?;
        }
        let n_events = self.appended().count();
        check_limit("number of events", n_events, EVENTS_PER_COMMIT_MAX)?;
        validate_ids(self.appended().filter_map(|event| event.id))?;
        self.appended()
            .try_for_each(|event| event.validate(data_bytes_max))
    }

    /// The events that it names; commands may append others.
    pub(crate) fn appended(&self) -> impl Iterator<Item = &NewEvent> + Clone {
        self.steps.iter().filter_map(|step| match step {
            Step::Append { event, .. } => Some(event.as_ref()),
            Step::Call(_) => None,
        })
    }

    /// Settles what was left open in its events.
    pub(crate) fn settle(&mut self) {
        for step in &mut self.steps {
            if let Step::Append { event, .. } = step {
                event.settle();
            }
        }
    }
}

impl Step {
    /// Returns the step that appends an event, whatever the version of its stream.
    pub fn append(event: NewEvent) -> Self {
        Self::Append {
            event: Box::new(event),
            expected: None,
        }
    }

    /// Returns the step that appends an event if its stream is at a version, events of earlier steps
    /// included; -1: no such stream.
    pub fn append_at(event: NewEvent, expected: i64) -> Self {
        Self::Append {
            event: Box::new(event),
            expected: Some(expected),
        }
    }
}

impl Guard {
    /// Returns a condition on a key, or on the string under it.
    pub fn key(key: impl Into<Bytes>, wanted: Wanted) -> Self {
        Self {
            key: key.into(),
            field: None,
            wanted,
        }
    }

    /// Returns a condition on a field of the hash under a key.
    pub fn field(key: impl Into<Bytes>, field: impl Into<Bytes>, wanted: Wanted) -> Self {
        Self {
            key: key.into(),
            field: Some(field.into()),
            wanted,
        }
    }

    /// The command that asks what the guard wants to know.
    pub(crate) fn question(&self) -> Option<Call> {
        let is_presence = matches!(self.wanted, Wanted::Present | Wanted::Absent);
        let name = match (&self.field, is_presence) {
            (None, true) => "exists",
            (None, false) => "get",
            (Some(_), true) => "hexists",
            (Some(_), false) => "hget",
        };
        let mut words = vec![Bytes::from_static(name.as_bytes()), self.key.clone()];
        words.extend(self.field.clone());
        Call::new(words)?.ok()
    }
}

fn check_limit(what: &'static str, n: usize, limit: usize) -> Result<()> {
    match n > limit {
        true => Err(Error::over_limit(what, n, limit)),
        false => Ok(()),
    }
}
