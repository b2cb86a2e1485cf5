//! Timers: something that an application does under a key when a time has come.
//!
//! A timer is an entry among what expires, so the cleaning in the background finds it in the order
//! of time. The root remembers a time before which no timer is due, so that commands which must not
//! see anything undone rarely have to look.

use bytes::Bytes;

use super::Timer;
use crate::cleaning::ExpiryEntry;
use crate::command::arguments::integer;
use crate::command::{Call, CommandAccess, CommandSpec, Keys};
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::layout::{self, FIELDS_EXPIRE};
use crate::reply::Reply;

/// The most timers that one command runs because they are due.
const TIMERS_PER_COMMAND_MAX: usize = 64;

/// At most how many expiries, most of which are no timers, a command looks at.
const EXPIRIES_PASSED_MAX: usize = 1024;

/// A timer that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetTimer {
    /// Which one it is, see [`Timer::new`].
    pub kind: u8,
    /// Under which key.
    pub key: Bytes,
    /// When it is due, in milliseconds since 1970.
    pub time: u64,
}

/// Sets a timer as it was set elsewhere. No client can call it: it is in no table.
static SET_TIMER: CommandSpec =
    CommandSpec::new("timer.set", 4, CommandAccess::Write, Keys::NONE, set_again);

fn set_again(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
    let kind = u8::try_from(integer(&arguments[1])?).ok();
    let timer = kind.and_then(|kind| keyspace.timer(kind));
    let timer = timer.ok_or_else(|| unknown_timer(&arguments[1]))?;
    let time = u64::try_from(integer(&arguments[3])?).unwrap_or_default();
    keyspace.set_timer(timer, &arguments[2], time)?;
    Ok(Reply::OK)
}

fn unknown_timer(kind: &[u8]) -> CommandError {
    let kind = String::from_utf8_lossy(kind);
    CommandError::because(format!("ERR no application has a timer of kind {kind}"))
}

impl SetTimer {
    /// Returns a command that sets it again.
    pub fn into_call(self) -> Result<Call> {
        let number = |number: u64| Bytes::from(number.to_string());
        let name = Bytes::from_static(SET_TIMER.name.as_bytes());
        let kind = number(u64::from(self.kind));
        SET_TIMER.call(vec![name, kind, self.key, number(self.time)])
    }
}

impl Keyspace<'_> {
    /// Returns timers that are set, in the order of time, from an entry on; and the entry at which to go on,
    /// if there may be more.
    pub fn set_timers(&self, from: &[u8]) -> trefoil_core::Result<(Vec<SetTimer>, Option<Bytes>)> {
        let mut found = Vec::new();
        for (n_passed, expiry) in self.expiries(from).enumerate() {
            let ExpiryEntry {
                name,
                time,
                what: kind,
                key,
            } = expiry.map_err(CommandError::into_error)?;
            if n_passed == EXPIRIES_PASSED_MAX {
                return Ok((found, Some(name)));
            }
            if kind > FIELDS_EXPIRE {
                found.push(SetTimer { kind, key, time });
            }
        }
        Ok((found, None))
    }

    /// Sets a timer under a key: it is run once, at this time in milliseconds since 1970 or soon
    /// after, whatever becomes of the key. There may be several under a key, for different times.
    pub fn set_timer(&mut self, timer: &Timer, key: &Bytes, time: u64) -> Result<()> {
        self.set_expiry(timer.kind(), key, None, Some(time))?;
        let next = &mut self.root.next_timer;
        *next = Some(next.unwrap_or(time).min(time));
        self.save_root()
    }

    /// Clears the timer under a key that was set for this time, if it is there.
    pub fn clear_timer(&mut self, timer: &Timer, key: &Bytes, time: u64) -> Result<()> {
        self.set_expiry(timer.kind(), key, Some(time), None)
    }

    /// Runs the timers that are due, the earliest first, up to 64 of them. A command that begins
    /// with this sees what it would see if every timer was run at its very time.
    pub fn run_due_timers(&mut self) -> Result<()> {
        let now = self.now();
        let Some(first) = self.root.next_timer.filter(|first| *first <= now) else {
            return Ok(());
        };
        let mut due = Vec::new();
        let mut next = None;
        let from = layout::expiry(self.root.epoch, first, 0, b"");
        for (n_passed, expiry) in self.expiries(&from).enumerate() {
            let expiry = expiry?;
            let timer = self.timer(expiry.what);
            let is_due = expiry.time <= now && due.len() < TIMERS_PER_COMMAND_MAX;
            if (timer.is_some() && !is_due) || n_passed == EXPIRIES_PASSED_MAX {
                next = Some(expiry.time);
                break;
            }
            due.extend(timer.map(|timer| (timer, expiry)));
        }
        // What a timer sets is noted as well.
        self.root.next_timer = next;
        for (timer, expiry) in due {
            self.run_timer(timer, &expiry)?;
        }
        self.save_root()
    }

    /// Runs a timer, which is over then. Returns how many entries and events that took.
    pub(crate) fn run_timer(&mut self, timer: &Timer, expiry: &ExpiryEntry) -> Result<usize> {
        let n_before = self.n_changes;
        self.set_entry(expiry.name.clone(), None)?;
        (timer.ring)(self, &expiry.key, expiry.time)?;
        Ok(self.n_changes - n_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Application;
    use crate::command::CommandAccess::Write;
    use crate::command::{CommandSpec, Commands, Keys};
    use crate::reply::Reply;
    use crate::testing::World;

    /// `egg.boil key milliseconds`: sets the key when the time is over.
    static EGGS: Application = Application::new(
        "egg",
        "Boils eggs",
        &[
            CommandSpec::new("egg.boil", 3, Write, Keys::ONE, boil),
            CommandSpec::new("egg.look", 2, Write, Keys::ONE, look),
        ],
        &[&BOILED],
    );

    static BOILED: Timer = Timer::new(16, boiled);

    fn boil(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
        let millis = crate::parse_integer(&arguments[2]).unwrap_or_default();
        let time = keyspace.now() + millis.unsigned_abs();
        keyspace.set_timer(&BOILED, &arguments[1], time)?;
        Ok(Reply::OK)
    }

    fn boiled(keyspace: &mut Keyspace<'_>, key: &Bytes, time: u64) -> Result<()> {
        keyspace.run(&[b"SET", key, time.to_string().as_bytes()])?;
        Ok(())
    }

    fn look(keyspace: &mut Keyspace<'_>, arguments: &[Bytes]) -> Result<Reply> {
        keyspace.run_due_timers()?;
        keyspace.run(&[b"GET", &arguments[1]])
    }

    fn kitchen() -> World {
        World::new(Commands::redis().with(&EGGS))
    }

    #[test]
    fn a_timer_is_run_once_by_the_cleaning_or_by_a_command() {
        let mut world = kitchen();
        world.check(&[("EGG.BOIL a 10", "+OK"), ("EGG.BOIL b 20", "+OK")]);
        world.clean();
        world.check(&[("EGG.LOOK a", "_"), ("DBSIZE", ":0")]);
        world.moment.now = 15;
        world.clean();
        world.check(&[("GET a", "10"), ("DEL a", ":1")]);
        world.moment.now = 20;
        world.check(&[("GET b", "_"), ("EGG.LOOK b", "20"), ("DEL b", ":1")]);
        world.clean();
        world.check(&[("DBSIZE", ":0")]);
        assert_eq!(world.entries.len(), 1, "the root");
    }

    #[test]
    fn a_command_runs_many_timers_a_part_at_a_time() {
        let mut world = kitchen();
        for n in 0..TIMERS_PER_COMMAND_MAX + 7 {
            world.run(&format!("EGG.BOIL egg{n} 5"));
        }
        // Expiries among the timers are passed.
        world.run("SET other 1 PX 5");
        world.moment.now = 5;
        world.run("EGG.LOOK egg0");
        world.check(&[("DBSIZE", &format!(":{}", TIMERS_PER_COMMAND_MAX + 1))]);
        world.run("EGG.LOOK egg0");
        world.check(&[("DBSIZE", &format!(":{}", TIMERS_PER_COMMAND_MAX + 8))]);
        world.run("EGG.LOOK egg0");
    }

    #[test]
    fn timers_of_an_application_that_is_not_here_are_left_to_it() {
        let mut world = kitchen();
        world.run("EGG.BOIL a 10");
        world.run("SET b 1 PX 20");
        world.moment.now = 30;
        let commands = std::mem::replace(&mut world.commands, Commands::redis().clone());
        world.clean();
        world.check(&[("DBSIZE", ":0")]);
        world.commands = commands;
        world.clean();
        world.check(&[("GET a", "10")]);
    }

    #[test]
    fn emptying_everything_ends_all_timers() {
        let mut world = kitchen();
        world.run("EGG.BOIL a 10");
        world.run("SET b 1");
        world.run("FLUSHALL");
        world.moment.now = 10;
        world.check(&[("EGG.LOOK a", "_")]);
        world.clean();
        world.check(&[("DBSIZE", ":0")]);
    }
}
