//! How a command reads: what returns little is read at once, on the thread that asks, unless it would
//! have to wait for a slow disk; what returns much, on a thread for such work and with memory that is
//! taken for its reply. Also whether a transaction may return much.

use std::io;

use bytes::Bytes;
use trefoil::{
    Call, CommandAccess, Database, Error, Meter, OpenDatabase, Reply, StateSnapshot, Step,
    Transaction,
};

use super::failure::{of_error, of_failure};
use super::output::RespOutput;
use super::pieces;
use super::session::{Session, flat};
use super::words::{ReplyResult, error};
use crate::limits::{RESP_SHORT_ELEMENTS_MAX, RESP_SHORT_REPLY_BYTES, RESP_SHORT_STRING_BYTES_MAX};
use crate::reply_memory::ReplyMemory;
use crate::service::reading;

/// What has come of a read on the thread that asks.
#[derive(Debug)]
pub(super) enum Looked {
    Reply(Reply),
    /// It returns too much for this thread.
    TooMuch,
    /// It needs something that is not in memory, and the disk is slow.
    NotAtHand,
}

/// The state of one moment, for reads that return little, on the thread that asks.
#[derive(Debug)]
pub(super) struct Glance(StateSnapshot);

impl Glance {
    /// Returns the state of this moment; `None` if reading it might have to wait.
    pub(super) fn new(database: &Database) -> Result<Option<Self>, Error> {
        match database.may_wait() {
            true => Ok(None),
            false => Ok(Some(Self(database.snapshot_at_hand()?))),
        }
    }

    /// Runs a call.
    pub(super) fn look(&mut self, call: &Call) -> Looked {
        let meter = Meter::within(RESP_SHORT_REPLY_BYTES);
        match self.0.look(call, &meter) {
            Ok(reply) => Looked::Reply(reply),
            Err(_) if meter.is_exceeded() => Looked::TooMuch,
            Err(_) if self.0.is_short() => Looked::NotAtHand,
            Err(failure) => Looked::Reply(of_error(&failure)),
        }
    }

    /// Returns whether the call reads little, as far as that can be told quickly; `None` if that has to be
    /// read from a slow disk.
    pub(super) fn is_light(&mut self, call: &Call) -> Option<bool> {
        let (name, words) = (call.spec().name, call.arguments());
        match name {
            "mget" => return Some(words.len() <= RESP_SHORT_ELEMENTS_MAX),
            "object" => return Some(true),
            // Without a count, a step is small.
            "scan" => return Some(words.len() == 2),
            // With one, the same element may be asked for a billion times.
            "hrandfield" | "srandmember" | "zrandmember" if words.len() > 2 => return Some(false),
            _ => {}
        }
        let keys = call.spec().keys;
        if (keys.first, keys.last) != (1, 1) || call.spec().is_of_application() {
            return Some(false);
        }
        let (measure, limit) = match name.as_bytes()[0] {
            b'h' => ("hlen", RESP_SHORT_ELEMENTS_MAX),
            b'l' => ("llen", RESP_SHORT_ELEMENTS_MAX),
            b's' => ("scard", RESP_SHORT_ELEMENTS_MAX),
            b'z' => ("zcard", RESP_SHORT_ELEMENTS_MAX),
            _ => ("strlen", RESP_SHORT_STRING_BYTES_MAX),
        };
        let measure = Bytes::from_static(measure.as_bytes());
        let Some(Ok(measure)) = Call::new(vec![measure, words[1].clone()]) else {
            return Some(false);
        };
        match self.look(&measure) {
            Looked::Reply(Reply::Integer(size)) => {
                Some(usize::try_from(size).is_ok_and(|size| size <= limit))
            }
            Looked::NotAtHand => None,
            Looked::Reply(_) | Looked::TooMuch => Some(false),
        }
    }
}

impl Session {
    /// Returns whether a value may be too long for the writer to read for a client.
    pub(super) async fn is_long(&mut self, call: &Call) -> bool {
        match self.glance().await {
            Ok(Some(glance)) => glance.is_light(call) != Some(true),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Returns the state to read from on this thread; `None` if that might have to wait. It stays the
    /// same until something is waited for.
    async fn glance(&mut self) -> ReplyResult<Option<&mut Glance>> {
        if self.glance.is_none() {
            let database = self.database().await?;
            self.glance = Glance::new(&database).map_err(|failure| of_error(&failure))?;
        }
        Ok(self.glance.as_mut())
    }

    /// Carries out a command that may read much: after the writes before it, and elsewhere if it
    /// does read much.
    pub(super) async fn read(&mut self, call: Call, output: &mut RespOutput) -> io::Result<()> {
        if !self.batch.transactions.is_empty() {
            self.settle(output).await?;
        }
        let is_light = match self.glance().await {
            // What cannot be told here is found out where it is read.
            Ok(Some(glance)) => glance.is_light(&call) != Some(false),
            Ok(None) => false,
            Err(reply) => return self.answer(reply, output).await,
        };
        match is_light {
            true => self.read_now(call, output).await,
            false => Box::pin(self.read_long(call, output)).await,
        }
    }

    /// Reads on this thread if that returns little.
    pub(super) async fn read_now(&mut self, call: Call, output: &mut RespOutput) -> io::Result<()> {
        let looked = match self.glance().await {
            Ok(Some(glance)) => glance.look(&call),
            Ok(None) => Looked::TooMuch,
            Err(reply) => Looked::Reply(reply),
        };
        match looked {
            Looked::Reply(reply) => self.answer(reply, output).await,
            Looked::TooMuch => Box::pin(self.read_long(call, output)).await,
            Looked::NotAtHand => Box::pin(self.read_on_disk(call, output)).await,
        }
    }

    /// Reads on a thread that waits for the disk, if that returns little.
    async fn read_on_disk(&mut self, call: Call, output: &mut RespOutput) -> io::Result<()> {
        self.settle(output).await?;
        let looked = match self.database().await {
            Ok(database) => look_on_disk(database, call.clone()).await,
            Err(reply) => Err(reply),
        };
        match looked {
            Ok(Some(reply)) | Err(reply) => self.answer(reply, output).await,
            Ok(None) => self.read_long(call, output).await,
        }
    }

    /// Reads for a long reply: sends it in pieces if that is possible. Other replies are made on a
    /// thread for such work, with memory that is taken for them.
    async fn read_long(&mut self, call: Call, output: &mut RespOutput) -> io::Result<()> {
        self.settle(output).await?;
        let database = match self.database().await {
            Ok(database) => database,
            Err(reply) => return self.answer(reply, output).await,
        };
        if self.is_silent {
            return Ok(());
        }
        let reply = match pieces::answer(&database, &call, self.protocol, output).await {
            Some(sent) => sent?,
            None => {
                let memory = ReplyMemory::new(&self.guest.share);
                let reply = look_elsewhere(database, call, &memory).await;
                self.reply_memory.push(memory);
                Some(flat(reply))
            }
        };
        match reply {
            Some(reply) => self.answer(reply, output).await,
            None => Ok(()),
        }
    }
}

/// Reads on a thread for slow work, if that returns little; `None` if it is too much.
pub(super) async fn look_on_disk(database: OpenDatabase, call: Call) -> ReplyResult<Option<Reply>> {
    let reader = database.clone();
    let looked = reading(&database, move || {
        let meter = Meter::within(RESP_SHORT_REPLY_BYTES);
        let looked = reader.look_within(&[call], &meter);
        (looked, meter.is_exceeded())
    });
    match looked.await.map_err(|failure| of_failure(&failure))? {
        (Ok(mut replies), _) => Ok(replies.pop()),
        (Err(_), true) => Ok(None),
        (Err(failure), false) => Err(of_error(&failure)),
    }
}

/// Reads on a thread for slow work. The read ends early if its reply is no longer wanted.
pub(super) async fn look_elsewhere(
    database: OpenDatabase,
    call: Call,
    memory: &ReplyMemory,
) -> ReplyResult {
    let allowance = memory.allowance();
    let reader = database.clone();
    let looked = reading(&database, move || {
        let meter = Meter::asking(Some(allowance.as_ref()));
        reader.look_within(&[call], &meter)
    });
    let looked = looked.await;
    let looked = looked.map_err(|failure| of_failure(&failure))?;
    let mut replies = looked.map_err(|failure| of_error(&failure))?;
    let missing = || error("ERR the command has no reply");
    replies.pop().ok_or_else(missing)
}

/// Returns whether the replies of a transaction may be as large as what it reads.
pub(super) fn answers_much(transaction: &Transaction) -> bool {
    let call = match transaction.steps.as_slice() {
        [Step::Call(call)] => call,
        steps => return steps.len() > 1,
    };
    let n_words = call.arguments().len();
    match call.spec().name {
        // Without options, it returns nothing.
        "set" => n_words > 3,
        "getset" | "getdel" | "getex" | "hgetdel" | "hgetex" | "sort" | "lmpop" | "zmpop" => true,
        "lpop" | "rpop" | "spop" | "zpopmin" | "zpopmax" => n_words > 2,
        _ => call.spec().access != CommandAccess::Write || call.spec().is_of_application(),
    }
}

#[cfg(test)]
mod tests {
    use trefoil::Options;

    use super::*;

    fn call(line: &str) -> Call {
        let words = line.split(' ').map(|word| word.to_owned().into());
        Call::new(words.collect()).unwrap().unwrap()
    }

    #[test]
    fn what_is_small_is_light() {
        let database = Database::in_memory(&Options::default()).unwrap();
        let run = |line: &str| database.transact(Transaction::of_call(call(line))).unwrap();
        run("HSET small f 1");
        let fields: Vec<String> = (0..=RESP_SHORT_ELEMENTS_MAX)
            .map(|n| format!("f{n} 1"))
            .collect();
        run(&format!("HSET large {}", fields.join(" ")));
        run("SET text 1");
        run("SETRANGE long 2000000 x");
        run("ZADD sorted 1 a");
        for (line, expected) in [
            ("HGETALL small", true),
            ("HGETALL large", false),
            ("HGETALL none", true),
            ("HGETALL text", false),
            ("HRANDFIELD small", true),
            ("HRANDFIELD small -1000000", false),
            ("GETRANGE text 0 -1", true),
            ("GETRANGE long 0 -1", false),
            ("BITCOUNT text", true),
            ("ZRANGE sorted 0 -1", true),
            ("MGET a b c", true),
            ("SCAN 0", true),
            ("SCAN 0 COUNT 100000", false),
            ("KEYS *", false),
            ("SUNION a b", false),
        ] {
            let mut glance = Glance::new(&database).unwrap().unwrap();
            assert_eq!(glance.is_light(&call(line)), Some(expected), "{line}");
        }
    }
}
