//! One client's requests, from words to replies.
//!
//! ```text
//! connection: bytes -> requests, as words
//!   begin_turn  the first of the requests that have arrived
//!   request     finds the command, and refuses what the client may not use
//!   dispatch      answered now, queued for EXEC, or one of the batch
//!     answer        puts a reply behind those of the batch
//!     read_now      reads what is durable, and answers (read.rs)
//!     transact      adds a transaction to the batch
//!   settle      carries out the batch, and sends its replies
//!   end_turn    the last of the requests that have arrived
//! output: replies -> bytes
//! ```
//!
//! Replies leave in the order of the requests. A batch is a run of requests that are carried out
//! together: the first of them writes, and all are handed to the writer, which keeps their order and
//! writes them as one group. A request that cannot be part of it first has the batch settled. While
//! there is a batch, a reply that is ready gets a place in it; otherwise it is sent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use trefoil::{
    Allowance, CommandAccess, CommandSpec, Error, Executed, NamespaceId, OpenDatabase, Reply,
    Trace, Transaction,
};

use super::clients::RespClient;
use super::command::{self, AtOnce, CommandAction, FoundCommand, Own};
use super::encoder::RespVersion;
use super::failure::of_error;
use super::metrics::{Tally, UNKNOWN_COMMAND};
use super::multi::{ClientWatch, Multi, call, merge, of_transaction};
use super::output::RespOutput;
use super::profile::{ReplyMode, not_authenticated};
use super::read::{Glance, answers_much};
use super::relay::{Errand, Relay, is_wrong_node};
use super::remembered::RememberedRequest;
use super::wishes::Wishes;
use super::words::{ReplyResult, error, is_http};
use crate::connections::Guest;
use crate::reply_memory::ReplyMemory;
use crate::service::Shared;
use crate::visits::Visit;

/// One client, and what it has begun.
pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) guest: Arc<Guest>,
    pub(super) client: Arc<RespClient>,
    pub(super) protocol: RespVersion,
    pub(super) namespace: Option<NamespaceId>,
    /// The use of that namespace; `None` if there is none.
    pub(super) visit: Option<Visit>,
    /// When it was last noted that the token is used, by the steady clock.
    pub(super) use_noted: Duration,
    /// The database of the namespace, while requests are being carried out.
    pub(super) database: Option<OpenDatabase>,
    /// The state that is read from, while nothing is waited for.
    pub(super) glance: Option<Glance>,
    pub(super) batch: RequestBatch,
    /// The memory that replies take, until they are sent.
    pub(super) reply_memory: Vec<ReplyMemory>,
    /// The transaction between `MULTI` and `EXEC`.
    pub(super) multi: Option<Multi>,
    pub(super) watched: Option<ClientWatch>,
    /// What it needs if its namespace is on another node; `None` if there is none.
    pub(super) relay: Option<Box<Relay>>,
    /// How all transactions are to be, and the next one.
    pub(super) wishes: Wishes,
    pub(super) reply_mode: ReplyMode,
    /// Whether the reply of the present request is not wanted.
    pub(super) is_silent: bool,
    /// Whether the connection ends when everything is answered.
    pub(super) is_closing: bool,
    pub(super) tally: Tally,
    /// When the requests that are being carried out arrived, by the steady clock.
    pub(super) began: Duration,
    /// The first of them.
    pub(super) first_request: RememberedRequest,
    /// Whether it is still to come.
    is_first: bool,
    /// How long their stages take.
    pub(super) trace: Arc<Trace>,
}

/// Requests that are carried out together, and the places of their replies.
#[derive(Debug, Default)]
pub(super) struct RequestBatch {
    slots: Vec<ReplySlot>,
    pub(super) transactions: Vec<Transaction>,
}

/// The place of one reply.
#[derive(Debug)]
pub(super) struct ReplySlot {
    pub(super) shape: ReplyShape,
    /// The command that the reply is for.
    pub(super) command: &'static str,
    /// Whether the client does not want it.
    pub(super) is_silent: bool,
    /// How to have another node carry out the request, if there are others.
    pub(super) errand: Option<Box<Errand>>,
}

/// Where a reply comes from.
#[derive(Debug)]
pub(super) enum ReplyShape {
    /// It is there.
    Ready(Reply),
    /// From the only step of the next transaction.
    Single,
    /// From all steps of the next transaction, and these.
    Exec(Vec<(usize, Reply)>),
}

/// The results of a batch, in order.
#[derive(Debug)]
pub(super) enum Outcomes {
    Executed(std::vec::IntoIter<Result<Executed, Error>>),
    /// Nothing was carried out: all get this error.
    Failed(Reply),
}

impl Outcomes {
    /// Returns the reply for the next place.
    pub(super) fn take(&mut self, shape: ReplyShape) -> Reply {
        let missing = || of_error(&Error::result_lost("it was not answered"));
        match (shape, self) {
            (ReplyShape::Ready(reply), _) => reply,
            (_, Self::Failed(reply)) => reply.clone(),
            (ReplyShape::Single, Self::Executed(executed)) => match executed.next() {
                Some(Ok(executed)) => executed.replies.into_iter().next().unwrap_or_else(missing),
                Some(Err(failure)) => of_error(&failure),
                None => missing(),
            },
            (ReplyShape::Exec(extra), Self::Executed(executed)) => match executed.next() {
                Some(Ok(executed)) => merge(executed.replies, extra),
                Some(Err(failure)) => of_transaction(failure, &extra),
                None => missing(),
            },
        }
    }
}

/// Returns the reply, whether it is an error or not.
pub(super) fn flat(answer: ReplyResult) -> Reply {
    answer.unwrap_or_else(|reply| reply)
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, guest: Arc<Guest>, client: Arc<RespClient>) -> Self {
        let mut session = Self {
            shared,
            guest,
            client,
            protocol: RespVersion::default(),
            namespace: None,
            visit: None,
            use_noted: Duration::ZERO,
            database: None,
            glance: None,
            batch: RequestBatch::default(),
            reply_memory: Vec::new(),
            multi: None,
            watched: None,
            relay: None,
            wishes: Wishes::default(),
            reply_mode: ReplyMode::On,
            is_silent: false,
            is_closing: false,
            tally: Tally::default(),
            began: Duration::ZERO,
            first_request: RememberedRequest::default(),
            is_first: true,
            trace: Arc::default(),
        };
        session.relay = session.new_relay();
        session.leave();
        session
    }

    /// Begins to carry out requests that have arrived together.
    pub(super) fn begin_turn(&mut self) {
        self.began = self.shared.clock().steady();
        self.note_use();
        self.is_first = true;
        self.trace.clear();
        self.look_around();
    }

    /// Ends what was begun: replies to all of the requests, of which there were so many.
    pub(super) async fn end_turn(
        &mut self,
        n_requests: usize,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        self.settle(output).await?;
        self.database = None;
        self.forget_present();
        self.reply_memory.clear();
        let total = &self.shared.resp.requests;
        total.fetch_add(n_requests as u64, Ordering::Relaxed);
        let time = self.record_activity().saturating_sub(self.began);
        self.tally.flush(&self.shared, time);
        self.note_turn(n_requests, time);
        Ok(())
    }

    /// Carries out a request, or adds it to the batch.
    pub(super) async fn request(
        &mut self,
        words: Vec<Bytes>,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        self.begin_request();
        let found = self.shared.resp.catalogue.find(&words);
        if std::mem::take(&mut self.is_first) {
            let command = found.as_ref().map_or(UNKNOWN_COMMAND, |found| found.name());
            self.first_request.set(command, &words, is_secret(&found));
        }
        match found {
            Ok(found) if self.is_stranger() && !is_for_strangers(found) => {
                self.tally.count(found.name());
                self.shared.resp.usage.reject(found.name());
                self.refuse(not_authenticated(), output).await
            }
            Ok(found) => {
                self.tally.count(found.name());
                if let Err(reply) = self.permit(found, &words) {
                    self.shared.resp.usage.reject(found.name());
                    return self.refuse(reply, output).await;
                }
                self.dispatch(found, words, output).await
            }
            Err(_) if is_http(&words[0]) => {
                self.is_closing = true;
                Ok(())
            }
            Err(reply) => {
                self.tally.count(UNKNOWN_COMMAND);
                if let Some(command) = self.shared.resp.catalogue.named(&words) {
                    self.shared.resp.usage.reject(command);
                }
                self.refuse(reply, output).await
            }
        }
    }

    /// Replies to a request that is not carried out. A transaction that is being queued cannot be
    /// carried out any more either.
    async fn refuse(&mut self, reply: Reply, output: &mut RespOutput) -> io::Result<()> {
        if let Some(multi) = &mut self.multi {
            multi.is_broken = true;
        }
        self.put_in_order(reply, output).await
    }

    /// Replies to a request.
    pub(super) async fn answer(&mut self, reply: Reply, output: &mut RespOutput) -> io::Result<()> {
        if is_wrong_node(&reply) {
            if self.send_present_on() {
                return Ok(());
            }
            // A peer is told nothing after this, so it knows that nothing after it was done.
            self.is_closing |= self.guest.is_peer;
        }
        self.note_error(self.tally.last(), &reply);
        self.put_in_order(reply, output).await
    }

    /// Puts a reply behind those that are still to come.
    pub(super) async fn put_in_order(
        &mut self,
        reply: Reply,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        if !self.batch.slots.is_empty() {
            self.add_slot(ReplyShape::Ready(reply));
            return Ok(());
        }
        if self.has_errands() {
            self.reply_later(reply, self.tally.last(), self.is_silent);
            return Ok(());
        }
        if self.is_silent || output.put_short(&reply, self.protocol) {
            return Ok(());
        }
        self.glance = None;
        output.put(&reply, self.protocol).await
    }

    fn add_slot(&mut self, shape: ReplyShape) {
        let errand = match shape {
            ReplyShape::Ready(_) => None,
            ReplyShape::Single | ReplyShape::Exec(_) => self.take_present(),
        };
        self.batch.slots.push(ReplySlot {
            shape,
            command: self.tally.last(),
            is_silent: self.is_silent,
            errand,
        });
    }

    /// Finds out how to carry out a command.
    pub(super) async fn dispatch(
        &mut self,
        found: FoundCommand,
        words: Vec<Bytes>,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        if self.relay.is_some() && self.send_on(found, &words) {
            return Ok(());
        }
        if let FoundCommand::Own(own) = found
            && let CommandAction::AtOnce(action) = own.action
        {
            return self.at_once(action, &words, output).await;
        }
        match (found, &mut self.multi) {
            (_, Some(multi)) => {
                let queued = multi.queue(found, words);
                self.answer(flat(queued), output).await
            }
            (FoundCommand::State(spec), None) => self.state_command(spec, words, output).await,
            (FoundCommand::Own(own), None) => self.own_command(own, &words, output).await,
        }
    }

    /// Carries out a command on the state.
    async fn state_command(
        &mut self,
        spec: &'static CommandSpec,
        words: Vec<Bytes>,
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let call = match call(spec, words) {
            Ok(call) => call,
            Err(reply) => return self.answer(reply, output).await,
        };
        match spec.access {
            CommandAccess::Read => self.read(call, output).await,
            CommandAccess::FastRead if self.batch.transactions.is_empty() => {
                self.read_now(call, output).await
            }
            // The writer does not read a long string for a client.
            CommandAccess::FastRead if spec.name == "get" && self.is_long(&call).await => {
                self.read(call, output).await
            }
            access => {
                let mut transaction = Transaction::of_call(call).lenient();
                if access == CommandAccess::Write {
                    transaction.id = self.wishes.commit_id.take();
                }
                self.transact(transaction, ReplyShape::Single);
                Ok(())
            }
        }
    }

    /// Adds a transaction to the batch.
    pub(super) fn transact(&mut self, mut transaction: Transaction, shape: ReplyShape) {
        if answers_much(&transaction) {
            transaction.allowance = Some(self.reply_allowance());
        }
        self.batch.transactions.push(transaction);
        self.add_slot(shape);
    }

    /// Lets a transaction take memory for its replies, before it is written.
    pub(super) fn reply_allowance(&mut self) -> Arc<dyn Allowance> {
        let memory = ReplyMemory::new(&self.guest.share);
        let allowance = memory.allowance();
        self.reply_memory.push(memory);
        allowance
    }

    /// Carries out a command of the server itself.
    async fn own_command(
        &mut self,
        own: &'static Own,
        words: &[Bytes],
        output: &mut RespOutput,
    ) -> io::Result<()> {
        let answer = match own.action {
            CommandAction::Plain(run) => run(self, words),
            CommandAction::Wish(wish) => self.wishes.note(wish, words),
            CommandAction::Append => match command::append(words) {
                Err(reply) => Err(reply),
                Ok(step) => {
                    let mut transaction = Transaction::new().with_steps([step]);
                    transaction.id = self.wishes.commit_id.take();
                    self.transact(transaction, ReplyShape::Single);
                    return Ok(());
                }
            },
            action => {
                self.settle(output).await?;
                // What is rare is boxed: it takes no memory of connections that do not use it.
                Box::pin(self.perform(action, words)).await
            }
        };
        self.answer(flat(answer), output).await
    }

    /// Performs what comes after everything before it.
    pub(super) async fn perform(&mut self, action: CommandAction, words: &[Bytes]) -> ReplyResult {
        match action {
            CommandAction::Plain(run) | CommandAction::AfterWrites(run) => run(self, words),
            CommandAction::Authenticate => command::authenticate(self, words).await,
            CommandAction::Hello => command::hello(self, words).await,
            CommandAction::Info => {
                let database = match self.database().await {
                    Err(reply) if is_wrong_node(&reply) => return Err(reply),
                    database => database.ok(),
                };
                let subject = command::InfoSubject::of(database).await;
                Ok(command::info(self, &subject, words))
            }
            CommandAction::Look(lookup) => {
                let database = self.database().await?;
                let memory = self.reply_allowance();
                command::lookup(lookup, database, words, memory.as_ref()).await
            }
            CommandAction::Require => {
                let condition = command::requirement(words)?;
                let checked = self.database().await?.check_async(&[condition]).await;
                checked.map_err(|failure| of_error(&failure))?;
                Ok(Reply::OK)
            }
            CommandAction::WaitForLog => command::wait_for_log(self, words).await,
            CommandAction::Sleep => command::sleep(self, words).await,
            CommandAction::Append | CommandAction::Wish(_) | CommandAction::AtOnce(_) => {
                Err(error("ERR Command not allowed here"))
            }
        }
    }

    /// Carries out the batch and what is sent on, and sends the replies in order.
    pub(super) async fn settle(&mut self, output: &mut RespOutput) -> io::Result<()> {
        self.settle_batch(output).await?;
        match self.must_run() {
            true => self.run_errands(output).await,
            false => Ok(()),
        }
    }

    /// Carries out the batch, and sends its replies in order.
    pub(super) async fn settle_batch(&mut self, output: &mut RespOutput) -> io::Result<()> {
        self.glance = None;
        if self.batch.slots.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let mut outcomes = match self.database().await {
            Err(reply) => Outcomes::Failed(reply),
            Ok(database) => self.execute(&database, batch.transactions).await,
        };
        if self.shared.peers.is_some() {
            let settled = self.settle_among_nodes(batch.slots, outcomes, output);
            return Box::pin(settled).await;
        }
        for slot in batch.slots {
            let is_new = !matches!(slot.shape, ReplyShape::Ready(_));
            let reply = outcomes.take(slot.shape);
            if is_new {
                self.note_error(slot.command, &reply);
            }
            if !slot.is_silent && !output.put_short(&reply, self.protocol) {
                output.put(&reply, self.protocol).await?;
            }
        }
        Ok(())
    }

    /// Hands transactions to the writer.
    pub(super) async fn execute(
        &mut self,
        database: &OpenDatabase,
        transactions: Vec<Transaction>,
    ) -> Outcomes {
        match database.transact_all_async(transactions).await {
            Ok(executed) => {
                for executed in executed.iter().flatten() {
                    self.shared.metrics.count_executed(executed);
                }
                Outcomes::Executed(executed.into_iter())
            }
            Err(failure) => Outcomes::Failed(of_error(&failure)),
        }
    }
}

/// Returns whether a command is also for clients that have not shown who they are.
fn is_for_strangers(found: FoundCommand) -> bool {
    let FoundCommand::Own(own) = found else {
        return false;
    };
    matches!(
        own.action,
        CommandAction::Authenticate
            | CommandAction::Hello
            | CommandAction::AtOnce(AtOnce::Quit | AtOnce::Reset)
    )
}

/// Returns whether a request may say who its client is, or what it should not have been.
fn is_secret(found: &ReplyResult<FoundCommand>) -> bool {
    let Ok(FoundCommand::Own(own)) = found else {
        return found.is_err();
    };
    let action = own.action;
    matches!(action, CommandAction::Authenticate | CommandAction::Hello)
}
