//! How a command reads: what returns little is read at once, on the thread that asks; what returns
//! much, on a thread for such work and with memory that is taken for its reply. Also whether a
//! transaction may return much.

use bytes::Bytes;
use trefoil::{
    Call, CommandAccess, Database, Error, Meter, OpenDatabase, Reply, StateSnapshot, Step,
    Transaction,
};

use super::failure::{of_error, of_failure};
use super::words::{ReplyResult, error};
use crate::limits::{RESP_SHORT_ELEMENTS_MAX, RESP_SHORT_REPLY_BYTES, RESP_SHORT_STRING_BYTES_MAX};
use crate::reply_memory::ReplyMemory;
use crate::service::reading;

/// The state of one moment, for reads that return little, on the thread that asks.
#[derive(Debug)]
pub(super) struct Glance(StateSnapshot);

impl Glance {
    /// Returns the state of this moment; `None` if reading it might have to wait.
    pub(super) fn new(database: &Database) -> Result<Option<Self>, Error> {
        match database.may_wait() {
            true => Ok(None),
            false => Ok(Some(Self(database.snapshot()?))),
        }
    }

    /// Returns the reply; `None` if it is too much for this thread.
    pub(super) fn look(&mut self, call: &Call) -> Option<Reply> {
        let meter = Meter::within(RESP_SHORT_REPLY_BYTES);
        match self.0.look(call, &meter) {
            Ok(reply) => Some(reply),
            Err(_) if meter.is_exceeded() => None,
            Err(failure) => Some(of_error(&failure)),
        }
    }

    /// Returns whether the call reads little, as far as that can be told quickly.
    pub(super) fn is_light(&mut self, call: &Call) -> bool {
        let (name, words) = (call.spec().name, call.arguments());
        match name {
            "mget" => return words.len() <= RESP_SHORT_ELEMENTS_MAX,
            "object" => return true,
            // Without a count, a step is small.
            "scan" => return words.len() == 2,
            // With one, the same element may be asked for a billion times.
            "hrandfield" | "srandmember" | "zrandmember" if words.len() > 2 => return false,
            _ => {}
        }
        let keys = call.spec().keys;
        if (keys.first, keys.last) != (1, 1) || call.spec().is_of_application() {
            return false;
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
            return false;
        };
        match self.look(&measure) {
            Some(Reply::Integer(size)) => usize::try_from(size).is_ok_and(|size| size <= limit),
            _ => false,
        }
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
            assert_eq!(glance.is_light(&call(line)), expected, "{line}");
        }
    }
}
