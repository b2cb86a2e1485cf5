//! What becomes of a request: answered at once, queued for `EXEC`, or carried out together with its
//! neighbours.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trefoil::{Access, Allowance, Call, Meter, OpenDatabase, Reply, Spec, Step, Transaction};

use super::command::{self, Action, AtOnce, Found, Own};
use super::failure::{of_error, of_failure};
use super::metrics::UNKNOWN_COMMAND;
use super::multi::call;
use super::output::Output;
use super::pending::{Outcomes, Pending, Shape, Slot};
use super::pieces;
use super::session::{Session, not_authenticated};
use super::weight::{answers_much, is_light};
use super::words::{Answer, error, is, text};
use crate::limits::{RESP_BATCH_READS_MAX, RESP_SHORT_REPLY_BYTES};
use crate::reply_memory::ReplyMemory;
use crate::service::blocking;

/// The reply, whether it is an error or not.
pub(super) fn flat(answer: Answer) -> Reply {
    answer.unwrap_or_else(|reply| reply)
}

impl Session {
    /// Carries out requests, and answers them all unless the connection fails.
    pub(super) async fn run(
        &mut self,
        requests: Vec<Vec<Bytes>>,
        output: &mut Output<'_>,
    ) -> io::Result<()> {
        let began = Instant::now();
        for words in requests {
            self.request(words, output).await?;
            if self.is_closing {
                break;
            }
        }
        self.settle(output).await?;
        self.rest(began);
        Ok(())
    }

    async fn request(&mut self, words: Vec<Bytes>, output: &mut Output<'_>) -> io::Result<()> {
        self.begin_request();
        let found = self.shared().resp.catalogue.find(&words);
        let reply = match found {
            Ok(found) if self.is_stranger() && !is_for_strangers(found) => {
                self.tally.count(found.name());
                self.spoil();
                self.shared().resp.usage.reject(found.name());
                Some(not_authenticated())
            }
            Ok(found) => {
                self.tally.count(found.name());
                let reply = self.dispatch(found, words, output).await?;
                if let Some(Reply::Error(_)) = reply {
                    self.shared().resp.usage.fail(found.name());
                }
                reply
            }
            Err(_) if is_http(&words[0]) => {
                self.is_closing = true;
                None
            }
            Err(reply) => {
                self.tally.count(UNKNOWN_COMMAND);
                self.spoil();
                let clients = &self.shared().resp;
                if let Some(command) = clients.catalogue.named(&words) {
                    clients.usage.reject(command);
                }
                Some(reply)
            }
        };
        match reply {
            Some(reply) => self.answer(reply, output).await,
            None => Ok(()),
        }
    }

    /// The transaction that is being queued cannot be carried out any more.
    fn spoil(&mut self) {
        if let Some(multi) = &mut self.multi {
            multi.is_broken = true;
        }
    }

    /// Puts a reply after those that are still to come.
    async fn answer(&mut self, reply: Reply, output: &mut Output<'_>) -> io::Result<()> {
        if !self.pending.slots.is_empty() {
            self.pend(Shape::Ready(reply));
            return Ok(());
        }
        if self.is_silent {
            return Ok(());
        }
        output.put(&reply, self.protocol()).await
    }

    fn pend(&mut self, shape: Shape) {
        self.pending.slots.push(Slot {
            shape,
            command: self.tally.last(),
            is_silent: self.is_silent,
        });
    }

    /// Finds out how to carry out a command. `None`: its reply is still to come.
    async fn dispatch(
        &mut self,
        found: Found,
        words: Vec<Bytes>,
        output: &mut Output<'_>,
    ) -> io::Result<Option<Reply>> {
        if let Found::Own(own) = found
            && let Action::AtOnce(action) = own.action
        {
            return self.at_once(action, &words, output).await;
        }
        match (found, &mut self.multi) {
            (_, Some(multi)) => Ok(Some(flat(multi.queue(found, words)))),
            (Found::State(spec), None) => self.state(spec, words, output).await,
            (Found::Own(own), None) => self.own(own, &words, output).await,
        }
    }

    /// A command on the state.
    async fn state(
        &mut self,
        spec: &'static Spec,
        words: Vec<Bytes>,
        output: &mut Output<'_>,
    ) -> io::Result<Option<Reply>> {
        let call = match call(spec, words) {
            Ok(call) => call,
            Err(reply) => return Ok(Some(reply)),
        };
        match spec.access {
            Access::Read => return self.read(call, output).await,
            Access::FastRead if self.pending.transactions.is_empty() => {
                self.read_soon(call, output).await?;
            }
            Access::FastRead if self.is_long_string(&call).await => {
                return self.read(call, output).await;
            }
            access => {
                let mut transaction = Transaction::of_call(call).lenient();
                if access == Access::Write {
                    transaction.id = self.wishes.commit_id.take();
                }
                self.transact(transaction, Shape::Single, output).await?;
            }
        }
        Ok(None)
    }

    /// Whether a call reads a long string, with which the writer is not to be kept.
    async fn is_long_string(&mut self, call: &Call) -> bool {
        if call.spec().name != "get" {
            return false;
        }
        let database = self.database().await;
        database.is_ok_and(|database| !is_light(call, &database))
    }

    /// A command that may read much: after the writes before it, and on a thread for such work if it
    /// does.
    async fn read(&mut self, call: Call, output: &mut Output<'_>) -> io::Result<Option<Reply>> {
        if !self.pending.transactions.is_empty() {
            self.settle(output).await?;
        }
        let database = match self.database().await {
            Ok(database) => database,
            Err(reply) => return Ok(Some(reply)),
        };
        if is_light(&call, &database) {
            self.read_soon(call, output).await?;
            return Ok(None);
        }
        self.settle(output).await?;
        match self.is_silent {
            true => Ok(None),
            false => self.read_long(&database, call, output).await,
        }
    }

    /// A command that answers much: in pieces if it can be, else on a thread for such work, with
    /// memory for its reply. `None`: it is answered.
    async fn read_long(
        &mut self,
        database: &OpenDatabase,
        call: Call,
        output: &mut Output<'_>,
    ) -> io::Result<Option<Reply>> {
        let protocol = self.protocol();
        if let Some(answered) = pieces::answer(database, &call, protocol, output).await {
            return answered;
        }
        let memory = ReplyMemory::new(&self.guest.share);
        let reply = look_elsewhere(database.clone(), call, &memory).await;
        self.pending.memory.push(memory);
        Ok(Some(flat(reply)))
    }

    /// Reads together with its neighbours, on this thread.
    async fn read_soon(&mut self, call: Call, output: &mut Output<'_>) -> io::Result<()> {
        if self.pending.reads.len() >= RESP_BATCH_READS_MAX {
            self.settle(output).await?;
        }
        self.pending.reads.push(call);
        self.pend(Shape::Single);
        Ok(())
    }

    /// Lets a transaction take memory for its replies, before it is written.
    pub(super) fn reply_allowance(&mut self) -> Arc<dyn Allowance> {
        let memory = ReplyMemory::new(&self.guest.share);
        let allowance = memory.allowance();
        self.pending.memory.push(memory);
        allowance
    }

    /// Hands in a transaction together with its neighbours.
    pub(super) async fn transact(
        &mut self,
        mut transaction: Transaction,
        shape: Shape,
        output: &mut Output<'_>,
    ) -> io::Result<()> {
        if !self.pending.reads.is_empty() {
            self.settle(output).await?;
        }
        if answers_much(&transaction) {
            transaction.allowance = Some(self.reply_allowance());
        }
        self.pending.transactions.push(transaction);
        self.pend(shape);
        Ok(())
    }

    /// A command that the server itself carries out.
    async fn own(
        &mut self,
        own: &'static Own,
        words: &[Bytes],
        output: &mut Output<'_>,
    ) -> io::Result<Option<Reply>> {
        match own.action {
            Action::Plain(run) => Ok(Some(flat(run(self, words)))),
            Action::Wish(wish) => Ok(Some(flat(self.wishes.note(wish, words)))),
            Action::Append => match command::append(words) {
                Err(reply) => Ok(Some(reply)),
                Ok(step) => {
                    let transaction = self.transaction_of(step);
                    self.transact(transaction, Shape::Single, output).await?;
                    Ok(None)
                }
            },
            action => {
                self.settle(output).await?;
                Ok(Some(flat(self.carry_out(action, words).await)))
            }
        }
    }

    fn transaction_of(&mut self, step: Step) -> Transaction {
        Transaction {
            steps: vec![step],
            id: self.wishes.commit_id.take(),
            ..Transaction::default()
        }
    }

    /// Carries out what comes after everything before it.
    pub(super) async fn carry_out(&mut self, action: Action, words: &[Bytes]) -> Answer {
        match action {
            Action::Plain(run) | Action::AfterWrites(run) => run(self, words),
            Action::Authenticate => command::authenticate(self, words).await,
            Action::Hello => command::hello(self, words).await,
            Action::Info => {
                let database = self.database().await.ok();
                Ok(command::info(self, database.as_ref(), words))
            }
            Action::Look(lookup) => {
                let database = self.database().await?;
                let memory = self.reply_allowance();
                command::lookup(lookup, database, words, memory.as_ref()).await
            }
            Action::Require => {
                let condition = command::requirement(words)?;
                let checked = self.database().await?.check_async(vec![condition]).await;
                checked.map_err(|failure| of_error(&failure))?;
                Ok(Reply::OK)
            }
            Action::Sleep => self.sleep(words).await,
            Action::Append | Action::Wish(_) | Action::AtOnce(_) => {
                Err(error("ERR Command not allowed here"))
            }
        }
    }

    /// `DEBUG SLEEP seconds`, for tests.
    async fn sleep(&self, words: &[Bytes]) -> Answer {
        if !self.config().test_mode {
            return Err(error("ERR DEBUG command not allowed outside of test mode"));
        }
        let seconds = text(&words[2])?.parse::<f64>().ok();
        let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let duration = duration.ok_or_else(|| error("ERR value is not a valid float"))?;
        tokio::time::sleep(duration).await;
        Ok(Reply::OK)
    }

    /// Carries out what is pending, and answers it.
    pub(super) async fn settle(&mut self, output: &mut Output<'_>) -> io::Result<()> {
        if self.pending.slots.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let mut outcomes = match self.database().await {
            Err(reply) => Outcomes::Failed(reply),
            Ok(database) if pending.transactions.is_empty() => {
                match look(&database, &pending.reads) {
                    Some(outcomes) => outcomes,
                    None => return self.settle_long(&database, pending, output).await,
                }
            }
            Ok(database) => self.execute(&database, pending.transactions).await,
        };
        let protocol = self.protocol();
        for slot in pending.slots {
            let is_new = !matches!(slot.shape, Shape::Ready(_));
            let reply = outcomes.take(slot.shape);
            if is_new && matches!(reply, Reply::Error(_)) {
                self.shared().resp.usage.fail(slot.command);
            }
            if !slot.is_silent {
                output.put(&reply, protocol).await?;
            }
        }
        Ok(())
    }

    /// Answers reads one after the other that together answer much.
    async fn settle_long(
        &mut self,
        database: &OpenDatabase,
        pending: Pending,
        output: &mut Output<'_>,
    ) -> io::Result<()> {
        let protocol = self.protocol();
        let mut reads = pending.reads.into_iter();
        for slot in pending.slots {
            let reply = match slot.shape {
                Shape::Ready(reply) => Some(reply),
                _ if slot.is_silent => {
                    reads.next();
                    None
                }
                _ => match reads.next() {
                    Some(call) => self.read_one(database, call, slot.command, output).await?,
                    None => None,
                },
            };
            if let Some(reply) = reply.filter(|_| !slot.is_silent) {
                output.put(&reply, protocol).await?;
            }
        }
        Ok(())
    }

    /// Reads on this thread if that answers little. `None`: it is answered.
    async fn read_one(
        &mut self,
        database: &OpenDatabase,
        call: Call,
        command: &'static str,
        output: &mut Output<'_>,
    ) -> io::Result<Option<Reply>> {
        let reply = match look(database, std::slice::from_ref(&call)) {
            Some(mut outcomes) => Some(outcomes.take(Shape::Single)),
            None => self.read_long(database, call, output).await?,
        };
        if matches!(reply, Some(Reply::Error(_))) {
            self.shared().resp.usage.fail(command);
        }
        Ok(reply)
    }

    /// Hands transactions to the writer.
    pub(super) async fn execute(
        &self,
        database: &OpenDatabase,
        transactions: Vec<Transaction>,
    ) -> Outcomes {
        match database.execute(transactions).await {
            Ok(executed) => {
                for executed in executed.iter().flatten() {
                    self.shared().metrics.count_executed(executed);
                }
                Outcomes::Executed(executed.into_iter())
            }
            Err(failure) => Outcomes::Failed(of_error(&failure)),
        }
    }
}

/// A read that may take long, on a thread for such work. If nobody waits for it any more, it ends.
async fn look_elsewhere(database: OpenDatabase, call: Call, memory: &ReplyMemory) -> Answer {
    let allowance = memory.allowance();
    let looked = blocking(move || {
        let meter = Meter::asking(Some(allowance.as_ref()));
        database.look_within(&[call], &meter)
    });
    let looked = looked.await;
    let looked = looked.map_err(|failure| of_failure(&failure))?;
    let mut replies = looked.map_err(|failure| of_error(&failure))?;
    let missing = || error("ERR the command has no reply");
    replies.pop().ok_or_else(missing)
}

/// Reads on this thread; `None` if they answer too much for that.
fn look(database: &OpenDatabase, reads: &[Call]) -> Option<Outcomes> {
    let meter = Meter::within(RESP_SHORT_REPLY_BYTES);
    match database.look_within(reads, &meter) {
        Ok(replies) => Some(Outcomes::Read(replies.into_iter())),
        Err(_) if meter.is_exceeded() => None,
        Err(failure) => Some(Outcomes::Failed(of_error(&failure))),
    }
}

/// Whether a command is for those, too, who have not shown who they are.
fn is_for_strangers(found: Found) -> bool {
    let Found::Own(own) = found else {
        return false;
    };
    matches!(
        own.action,
        Action::Authenticate | Action::Hello | Action::AtOnce(AtOnce::Quit | AtOnce::Reset)
    )
}

/// Whether a line is the beginning of an HTTP request, which a web page may have been made to send:
/// nothing after it is to be taken for commands.
fn is_http(word: &[u8]) -> bool {
    is(word, "post") || is(word, "host:")
}
