//! Limits: how often something may be done in a window of time.
//!
//! ```text
//! LIMIT.TAKE key max seconds    takes one of `max`; the first one begins a window of time
//! LIMIT.LEFT key max            says how many are left
//! ```

use trefoil::application::{Application, Bytes, Keyspace, Timer};
use trefoil::{CommandAccess, CommandError, CommandSpec, Keys, NewEvent, Reply};

pub(crate) static LIMITS: Application = Application::new(
    "limit",
    "Limits how often something is done",
    &[
        CommandSpec::new("limit.take", 4, CommandAccess::Write, Keys::ONE, take).described(
            "key max seconds",
            "Takes one of so many, in a window of time",
        ),
        CommandSpec::new("limit.left", 3, CommandAccess::FastRead, Keys::ONE, left)
            .described("key max", "Returns how many are left"),
    ],
    &[&WINDOW_ENDS],
);

static WINDOW_ENDS: Timer = Timer::new(16, end_window);

fn take(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let (key, max, seconds) = (
        &arguments[1],
        number(&arguments[2])?,
        number(&arguments[3])?,
    );
    keyspace.run_due_timers()?;
    let taken = taken(keyspace, key)?;
    if taken >= max {
        // A command that is refused changes nothing.
        return Err(CommandError::because(format!(
            "LIMITED all {max} are taken"
        )));
    }
    keyspace.run(&[b"INCR", key])?;
    if taken == 0 {
        let end = keyspace.now() + seconds * 1000;
        keyspace.set_timer(&WINDOW_ENDS, key, end)?;
    }
    if taken + 1 == max {
        append(keyspace, key, "LimitReached", format!(r#"{{"max":{max}}}"#))?;
    }
    Ok(Reply::Integer((max - taken - 1) as i64))
}

fn left(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let taken = taken(keyspace, &arguments[1])?;
    let left = number(&arguments[2])?.saturating_sub(taken);
    Ok(Reply::Integer(left as i64))
}

/// The window under a key is over.
fn end_window(keyspace: &mut Keyspace<'_>, key: &Bytes, _: u64) -> Result<(), CommandError> {
    keyspace.run(&[b"DEL", key])?;
    append(keyspace, key, "WindowEnded", "{}".to_owned())
}

/// How many are taken. The count is a plain string, so `GET` reads it too.
fn taken(keyspace: &mut Keyspace<'_>, key: &Bytes) -> Result<u64, CommandError> {
    match keyspace.run(&[b"GET", key])? {
        Reply::Bulk(count) => number(&count),
        _ => Ok(0),
    }
}

fn append(
    keyspace: &mut Keyspace<'_>,
    key: &Bytes,
    event_type: &str,
    data: String,
) -> Result<(), CommandError> {
    let key = String::from_utf8_lossy(key);
    let event = NewEvent::new(format!("limit-{key}"), event_type, data);
    keyspace.append_event(event.with_tag(format!("limit:{key}")))?;
    Ok(())
}

fn number(argument: &[u8]) -> Result<u64, CommandError> {
    let text = std::str::from_utf8(argument).ok();
    let number = text.and_then(|text| text.parse::<u32>().ok());
    number
        .map(u64::from)
        .ok_or(CommandError::refused("ERR this should be a number"))
}
