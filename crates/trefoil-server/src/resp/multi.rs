//! Requests that wait for `EXEC`, and the transaction that they become.

use bytes::Bytes;
use trefoil::limits::{STEPS_PER_TRANSACTION_MAX, TRANSACTION_BYTES_MAX};
use trefoil::{Call, Condition, Error, Reply, Spec, Step, Transaction};

use super::command::{Action, Found, Own, append, requirement};
use super::failure::{of_error, of_failure};
use super::wishes::Wishes;
use super::words::{Answer, error};
use crate::budget::{Reservation, Share};

/// A transaction between `MULTI` and `EXEC`.
#[derive(Debug)]
pub(super) struct Multi {
    queued: Vec<Queued>,
    /// How this transaction is to be.
    wishes: Wishes,
    bytes: usize,
    /// What they take of the memory for clients.
    reservation: Reservation,
    /// Whether a request could not be queued, so that `EXEC` will fail.
    pub(super) is_broken: bool,
}

#[derive(Debug)]
enum Queued {
    Step(Step),
    Require(Condition),
    /// A wish that is noted.
    Wish,
    Own(&'static Own, Vec<Bytes>),
}

impl Multi {
    pub(super) fn new(share: &Share) -> Self {
        Self {
            queued: Vec::new(),
            wishes: Wishes::default(),
            bytes: 0,
            reservation: share.for_request(),
            is_broken: false,
        }
    }

    /// How many requests wait.
    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Queues a request.
    pub(super) fn queue(&mut self, found: Found, words: Vec<Bytes>) -> Answer {
        let queued = self.accept(found, words);
        self.is_broken |= queued.is_err();
        self.queued.push(queued?);
        Ok(Reply::Simple("QUEUED"))
    }

    fn accept(&mut self, found: Found, words: Vec<Bytes>) -> Answer<Queued> {
        let over = |what, n, limit| of_error(&Error::over_limit(what, n, limit));
        let n = self.queued.len() + 1;
        if n > STEPS_PER_TRANSACTION_MAX {
            return Err(over(
                "number of queued commands",
                n,
                STEPS_PER_TRANSACTION_MAX,
            ));
        }
        self.bytes += words.iter().map(|word| word.len() + 32).sum::<usize>();
        if self.bytes > TRANSACTION_BYTES_MAX {
            return Err(over(
                "bytes of queued commands",
                self.bytes,
                TRANSACTION_BYTES_MAX,
            ));
        }
        let grown = self.reservation.grow_to(self.bytes);
        grown.map_err(|failure| of_failure(&failure))?;
        match found {
            Found::State(spec) => Ok(Queued::Step(Step::Call(call(spec, words)?))),
            Found::Own(own) => match own.action {
                Action::Append => append(&words).map(Queued::Step),
                Action::Require => requirement(&words).map(Queued::Require),
                Action::Wish(wish) => self.wishes.note(wish, &words).map(|_| Queued::Wish),
                Action::Authenticate | Action::Hello => {
                    Err(error("ERR Command not allowed inside a transaction"))
                }
                _ => Ok(Queued::Own(own, words)),
            },
        }
    }

    /// What `EXEC` has to do, and what is wished of the transaction.
    pub(super) fn plan(self) -> (Plan, Wishes) {
        let mut plan = Plan::default();
        for (index, queued) in self.queued.into_iter().enumerate() {
            match queued {
                Queued::Step(step) => plan.transaction.steps.push(step),
                Queued::Require(condition) => {
                    plan.transaction.conditions.push(condition);
                    plan.extra.push((index, Reply::OK));
                }
                Queued::Wish => plan.extra.push((index, Reply::OK)),
                Queued::Own(own, words) => plan.own.push((index, own, words)),
            }
        }
        (plan, self.wishes)
    }
}

/// The call of a command on the state.
pub(super) fn call(spec: &'static Spec, words: Vec<Bytes>) -> Answer<Call> {
    spec.call(words).map_err(|failure| match failure {
        trefoil::Failure::Refused(text) => Reply::Error(text),
        trefoil::Failure::Engine(failure) => of_error(&failure),
    })
}

/// What `EXEC` has to do.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) transaction: Transaction,
    /// What is answered for requests that are no steps of the transaction, by their places.
    pub(super) extra: Vec<(usize, Reply)>,
    /// Requests that the server itself carries out, by their places.
    pub(super) own: Vec<(usize, &'static Own, Vec<Bytes>)>,
}

/// The reply of an `EXEC`: those of its steps, with the others in their places.
pub(super) fn merge(steps: Vec<Reply>, extra: Vec<(usize, Reply)>) -> Reply {
    if extra.is_empty() {
        return Reply::Array(steps);
    }
    let mut all = Vec::with_capacity(steps.len() + extra.len());
    let mut steps = steps.into_iter();
    for (index, reply) in extra {
        all.extend(steps.by_ref().take(index - all.len()));
        all.push(reply);
    }
    all.extend(steps);
    Reply::Array(all)
}

/// An error of a transaction; a command that failed is named by its place among all that were
/// queued.
pub(super) fn of_transaction(failure: Error, extra: &[(usize, Reply)]) -> Reply {
    let Error::CommandFailed { mut index, text } = failure else {
        return of_error(&failure);
    };
    for (place, _) in extra {
        index += usize::from(*place <= index);
    }
    of_error(&Error::CommandFailed { index, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_find_their_places() {
        let steps = || vec![Reply::Integer(1), Reply::Integer(2)];
        let extra = |places: &[usize]| places.iter().map(|place| (*place, Reply::OK)).collect();
        let (one, two) = (Reply::Integer(1), Reply::Integer(2));
        for (places, expected) in [
            (&[][..], vec![one.clone(), two.clone()]),
            (&[0], vec![Reply::OK, one.clone(), two.clone()]),
            (
                &[1, 3],
                vec![one.clone(), Reply::OK, two.clone(), Reply::OK],
            ),
            (&[0, 1], vec![Reply::OK, Reply::OK, one, two]),
        ] {
            assert_eq!(merge(steps(), extra(places)), Reply::Array(expected));
        }
    }

    #[test]
    fn a_failed_command_is_named_by_its_place_in_the_queue() {
        let failed = |index| Error::CommandFailed {
            index,
            text: "ERR x".into(),
        };
        let extra = [(0, Reply::OK), (2, Reply::OK)];
        for (index, expected) in [(0, 1), (1, 3), (2, 4)] {
            assert_eq!(
                of_transaction(failed(index), &extra),
                of_error(&failed(expected))
            );
        }
    }
}
