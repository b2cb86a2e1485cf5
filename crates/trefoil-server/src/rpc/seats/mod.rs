//! `["seats.…", {event, section, …, prefix?}]`
//!
//! Seats, as the commands `SEATS.*` keep them: each method is one of these commands, its arguments
//! the fields of one object. It answers what the command replies, with names in camel case; what
//! the command refuses is an error whose code is the first word of the refusal. It goes beyond
//! EventoDB.
//!
//! ```text
//! sections   to open, to list, to count, to show and to check
//! bookings   to make, to sell, to release, to look up
//! command    the words that arguments become
//! answer     what a reply becomes
//! ```

mod answer;
mod bookings;
mod command;
mod sections;

pub(super) use bookings::{booking, finalize, release, reserve};
pub(super) use sections::{check, init, map, sections, stats};

use serde_json::value::RawValue;
use trefoil::{CommandAccess, Error, Meter, Reply, Transaction};

use self::command::SeatsCommand;
use super::Context;
use crate::error::{Failure, Result};
use crate::json::{self, present};
use crate::reply_memory::ReplyMemory;
use crate::response::HttpAnswer;
use crate::service::reading;
use crate::strict;

/// The named fields of the one argument; `None` for those that are missing or `null`.
fn arguments<'a, const N: usize>(
    call: &json::RpcCall<'a>,
    method: &str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N]> {
    let missing = || {
        let names = names.join(", ");
        Failure::invalid(format!(
            "{method} requires 1 argument: an object of {names}"
        ))
    };
    let argument = present(call.argument(0)).ok_or_else(missing)?;
    Ok(strict::object(argument, method, names)?.map(present))
}

/// Carries out a command, durably if it writes.
async fn run(context: Context<'_>, command: SeatsCommand) -> Result<HttpAnswer> {
    let call = command.into_call(context.shared.namespaces.commands())?;
    let database = context.database().await?;
    // Held until the reply has become an answer.
    let memory = ReplyMemory::new(context.share);
    let allowance = memory.allowance();
    let replies = if call.spec().access == CommandAccess::Write {
        let mut transaction = Transaction::of_call(call).lenient();
        transaction.allowance = Some(allowance);
        let executed = database.transact_async(transaction).await?;
        context.shared.metrics.count_executed(&executed);
        executed.replies
    } else {
        let reader = database.clone();
        let look = move || {
            let meter = Meter::asking(Some(allowance.as_ref()));
            reader.look_within(&[call], &meter)
        };
        reading(&database, look).await??
    };
    let reply: Reply = replies.into_iter().next().ok_or_else(unanswered)?;
    answer::of_reply(reply)
}

fn unanswered() -> Failure {
    Error::result_lost("the command was not answered").into()
}
