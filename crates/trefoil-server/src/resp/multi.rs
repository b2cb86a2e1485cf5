//! Transactions: `MULTI`, the requests that wait for `EXEC`, `EXEC` itself, `DISCARD` and `WATCH`;
//! and the other commands that never wait for `EXEC`.
//!
//! ```text
//! MULTI | DISCARD | WATCH key … | QUIT | RESET
//! EXEC [STRICT] [condition | guard]…
//! ```

use std::io;

use bytes::Bytes;
use trefoil::limits::{STEPS_PER_TRANSACTION_MAX, TRANSACTION_BYTES_MAX};
use trefoil::{Call, CommandSpec, Condition, Error, OpenDatabase, Reply, Step, Transaction, Watch};

use super::command::{AtOnce, CommandAction, FoundCommand, Own, append, requirement};
use super::criteria::ExecOptions;
use super::failure::{of_error, of_failure};
use super::output::RespOutput;
use super::session::{ReplyShape, Session, flat};
use super::wishes::Wishes;
use super::words::{ReplyResult, Words, error, syntax_error};
use crate::budget::{Reservation, Share};

/// Keys that a client watches, in a namespace that stays open meanwhile.
#[derive(Debug)]
pub(super) struct ClientWatch {
    watch: Watch,
    database: OpenDatabase,
}

/// A transaction between `MULTI` and `EXEC`.
#[derive(Debug)]
pub(super) struct Multi {
    queued: Vec<Queued>,
    /// The same as words, if another node may have to carry them out.
    words: Option<Vec<Vec<Bytes>>>,
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
    pub(super) fn new(share: &Share, keeps_words: bool) -> Self {
        Self {
            queued: Vec::new(),
            words: keeps_words.then(Vec::new),
            wishes: Wishes::default(),
            bytes: 0,
            reservation: share.for_request(),
            is_broken: false,
        }
    }

    /// Returns how many requests wait.
    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Queues a request.
    pub(super) fn queue(&mut self, found: FoundCommand, words: Vec<Bytes>) -> ReplyResult {
        let kept = self.words.is_some().then(|| words.clone());
        let queued = self.accept(found, words);
        self.is_broken |= queued.is_err();
        self.queued.push(queued?);
        if let Some(words) = &mut self.words {
            words.extend(kept);
        }
        Ok(Reply::Simple("QUEUED"))
    }

    /// Returns all requests as words, if they were kept.
    pub(super) fn take_words(&mut self) -> Vec<Vec<Bytes>> {
        self.words.take().unwrap_or_default()
    }

    fn accept(&mut self, found: FoundCommand, words: Vec<Bytes>) -> ReplyResult<Queued> {
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
            FoundCommand::State(spec) => Ok(Queued::Step(Step::Call(call(spec, words)?))),
            FoundCommand::Own(own) => match own.action {
                CommandAction::Append => append(&words).map(Queued::Step),
                CommandAction::Require => requirement(&words).map(Queued::Require),
                CommandAction::Wish(wish) => self.wishes.note(wish, &words).map(|_| Queued::Wish),
                CommandAction::Authenticate | CommandAction::Hello => {
                    Err(error("ERR Command not allowed inside a transaction"))
                }
                _ => Ok(Queued::Own(own, words)),
            },
        }
    }

    /// What `EXEC` has to do, and what is wished of the transaction.
    fn plan(self) -> (ExecPlan, Wishes) {
        let mut plan = ExecPlan::default();
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
pub(super) fn call(spec: &'static CommandSpec, words: Vec<Bytes>) -> ReplyResult<Call> {
    spec.call(words).map_err(|failure| match failure {
        trefoil::CommandError::Refused(text) => Reply::Error(text),
        trefoil::CommandError::Engine(failure) => of_error(&failure),
    })
}

/// What `EXEC` has to do.
#[derive(Debug, Default)]
struct ExecPlan {
    transaction: Transaction,
    /// What is answered for requests that are no steps of the transaction, by their places.
    extra: Vec<(usize, Reply)>,
    /// Requests that the server itself carries out, by their places.
    own: Vec<(usize, &'static Own, Vec<Bytes>)>,
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

impl Session {
    /// Carries out what never waits for `EXEC`.
    pub(super) async fn at_once(
        &mut self,
        action: AtOnce,
        words: &[Bytes],
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let answer = match action {
            AtOnce::Multi => self.begin(),
            AtOnce::Discard => self.discard(),
            AtOnce::Quit => {
                self.is_closing = true;
                Ok(Reply::OK)
            }
            AtOnce::Reset => {
                self.settle(output).await?;
                self.reset();
                Ok(Reply::Simple("RESET"))
            }
            AtOnce::Watch => {
                self.settle(output).await?;
                self.watch(&words[1..]).await
            }
            AtOnce::Exec => {
                let errand = self.exec_errand(words);
                match self.plan(words) {
                    Ok(_) if self.send_exec_on(errand) => return Ok(()),
                    Ok(plan) if plan.own.is_empty() => {
                        self.transact(plan.transaction, ReplyShape::Exec(plan.extra));
                        return Ok(());
                    }
                    Ok(plan) => {
                        self.settle(output).await?;
                        Ok(Box::pin(self.execute_with_own(plan)).await)
                    }
                    Err(reply) => {
                        self.unwatch_there();
                        Err(reply)
                    }
                }
            }
        };
        self.answer(flat(answer), output).await
    }

    fn begin(&mut self) -> ReplyResult {
        if self.multi.is_some() {
            return Err(error("ERR MULTI calls can not be nested"));
        }
        self.multi = Some(Multi::new(&self.guest.share, self.relay.is_some()));
        Ok(Reply::OK)
    }

    fn discard(&mut self) -> ReplyResult {
        let multi = self.multi.take();
        multi.ok_or_else(|| error("ERR DISCARD without MULTI"))?;
        self.unwatch();
        Ok(Reply::OK)
    }

    async fn watch(&mut self, keys: &[Bytes]) -> ReplyResult {
        if self.multi.is_some() {
            return Err(error("ERR WATCH inside MULTI is not allowed"));
        }
        let database = self.database().await?;
        let refused = |failure| of_error(&failure);
        match &mut self.watched {
            Some(watched) => {
                let (database, watch) = (&watched.database, &mut watched.watch);
                let more = match database.state_may_wait() {
                    true => database.watch_more_async(watch, keys).await,
                    false => database.watch_more(watch, keys),
                };
                more.map_err(refused)?;
            }
            None => {
                let watch = match database.state_may_wait() {
                    true => database.watch_async(keys).await,
                    false => database.watch(keys),
                };
                let watch = watch.map_err(refused)?;
                self.watched = Some(ClientWatch { watch, database });
            }
        }
        Ok(Reply::OK)
    }

    /// What this `EXEC` has to do. Whatever it is, nothing is queued or watched after it.
    fn plan(&mut self, words: &[Bytes]) -> ReplyResult<ExecPlan> {
        let multi = self.multi.take();
        let multi = multi.ok_or_else(|| error("ERR EXEC without MULTI"))?;
        let (watched, id) = (self.watched.take(), self.wishes.commit_id.take());
        let options = ExecOptions::parse(Words::after(words, 1)).map_err(|reply| abort(&reply))?;
        if multi.is_broken {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Err(error(text));
        }
        self.permit_exec(&options).map_err(|reply| abort(&reply))?;
        let (mut plan, wishes) = multi.plan();
        let transaction = &mut plan.transaction;
        transaction.conditions.extend(options.conditions);
        transaction.guards = options.guards;
        let is_strict = wishes.strict.or(self.wishes.strict).unwrap_or(false);
        transaction.is_strict = is_strict || options.is_strict;
        transaction.id = wishes.commit_id.or(id);
        if let Some(ClientWatch { watch, database }) = watched {
            transaction.watch = Some(watch);
            // The keys are watched in the database that is open now.
            self.database = Some(database);
        }
        Ok(plan)
    }

    /// A transaction with requests that the server itself carries out: those that look at events
    /// before it, the others after it.
    async fn execute_with_own(&mut self, plan: ExecPlan) -> Reply {
        let ExecPlan {
            mut transaction,
            mut extra,
            own,
        } = plan;
        let (looks, others): (Vec<_>, Vec<_>) = own
            .into_iter()
            .partition(|(_, own, _)| matches!(own.action, CommandAction::Look(_)));
        for (index, own, words) in looks {
            let reply = flat(self.perform(own.action, &words).await);
            if let (Reply::Error(text), true) = (&reply, transaction.is_strict) {
                let text = text.clone().into_owned();
                return of_error(&Error::CommandFailed { index, text });
            }
            extra.push((index, reply));
        }
        // Their replies are put in later, but they count already.
        let places = others.iter().map(|(index, ..)| (*index, Reply::Nil));
        extra.extend(places);
        extra.sort_by_key(|(index, _)| *index);
        let database = match self.database().await {
            Ok(database) => database,
            Err(reply) => return reply,
        };
        transaction.allowance = Some(self.reply_allowance());
        let mut outcomes = self.execute(&database, vec![transaction]).await;
        let mut reply = outcomes.take(ReplyShape::Exec(extra));
        if let Reply::Array(replies) = &mut reply {
            for (index, own, words) in others {
                if let Some(place) = replies.get_mut(index) {
                    *place = flat(self.perform(own.action, &words).await);
                }
            }
        }
        reply
    }
}

/// An `EXEC` that is itself at fault discards the transaction.
fn abort(reply: &Reply) -> Reply {
    let Reply::Error(text) = reply else {
        return syntax_error();
    };
    let text = text.strip_prefix("ERR ").unwrap_or(text);
    error(format!(
        "EXECABORT Transaction discarded because of: {text}"
    ))
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
