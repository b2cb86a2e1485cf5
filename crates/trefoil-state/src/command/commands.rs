//! All commands of a database: those of Redis, and those of its applications.

use std::fmt;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use hashbrown::HashMap;
use trefoil_core::Error;

use super::{Call, CommandSpec, FAMILIES};
use crate::application::{Application, Timer};
use crate::error::Result;

/// The longest name of a command.
const NAME_BYTES_MAX: usize = 32;

/// What the names of commands of the server itself begin with.
const RESERVED: [&str; 2] = ["event", "trefoil"];

/// All commands of a database: those of Redis, and those of its applications. It is cheap to clone.
#[derive(Clone)]
pub struct Commands {
    table: Arc<CommandTable>,
}

#[derive(Clone)]
struct CommandTable {
    by_name: HashMap<&'static [u8], &'static CommandSpec>,
    applications: Vec<&'static Application>,
    timers: Vec<&'static Timer>,
    /// What is wrong with an application.
    error: Option<String>,
}

impl Commands {
    /// Returns the commands of Redis alone.
    pub fn redis() -> &'static Self {
        static REDIS: LazyLock<Commands> = LazyLock::new(|| {
            let specs = FAMILIES.iter().copied().flatten();
            let table = CommandTable {
                by_name: specs.map(|spec| (spec.name.as_bytes(), spec)).collect(),
                applications: Vec::new(),
                timers: Vec::new(),
                error: None,
            };
            Commands {
                table: Arc::new(table),
            }
        });
        &REDIS
    }

    /// Returns these commands and those of one more application. If something is wrong with it,
    /// [`Self::check`] says so.
    #[must_use]
    pub fn with(&self, application: &'static Application) -> Self {
        let mut table = CommandTable::clone(&self.table);
        if let Err(error) = table.add(application) {
            let name = application.name();
            table.error = Some(format!("application {name}: {error}"));
        }
        Self {
            table: Arc::new(table),
        }
    }

    /// Checks that names and kinds of timers are in order. A database that is opened does so.
    pub fn check(&self) -> Result<(), Error> {
        let error = self.table.error.clone();
        error.map_or(Ok(()), |error| Err(Error::invalid(error)))
    }

    /// Returns the command of this name, in any case.
    pub fn find(&self, name: &[u8]) -> Option<&'static CommandSpec> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.table.by_name.get(&*lower).copied()
    }

    /// Returns the command that these words say; `None` if there is no such command.
    pub fn call(&self, words: Vec<Bytes>) -> Option<Result<Call>> {
        let spec = self.find(words.first()?)?;
        Some(spec.call(words))
    }

    /// Returns all commands.
    pub fn iter(&self) -> impl Iterator<Item = &'static CommandSpec> + '_ {
        let applications = self.table.applications.iter();
        let applications = applications.map(|application| application.commands());
        FAMILIES.iter().copied().chain(applications).flatten()
    }

    /// Returns the applications.
    pub fn applications(&self) -> &[&'static Application] {
        &self.table.applications
    }

    pub(crate) fn timers(&self) -> &[&'static Timer] {
        &self.table.timers
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let applications = self.table.applications.iter();
        f.debug_list()
            .entries(applications.map(|application| application.name()))
            .finish()
    }
}

impl CommandTable {
    /// Adds an application, or says what is wrong with it.
    fn add(&mut self, application: &'static Application) -> Result<(), String> {
        let name = application.name();
        let is_name = |name: &str| {
            let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            !name.is_empty() && name.bytes().all(is_fine)
        };
        if !is_name(name) || RESERVED.contains(&name) {
            return Err("this cannot be the name of one".to_owned());
        }
        for spec in application.commands() {
            let own = spec.name.strip_prefix(name);
            let own = own.and_then(|rest| rest.strip_prefix('.'));
            if spec.name.len() > NAME_BYTES_MAX || !own.is_some_and(is_name) {
                return Err(format!(
                    "command {} should be named {name}.…, in at most {NAME_BYTES_MAX} lower-case \
                     letters and digits",
                    spec.name
                ));
            }
            if self.by_name.insert(spec.name.as_bytes(), spec).is_some() {
                return Err(format!("there is a command {} already", spec.name));
            }
        }
        for timer in application.timers() {
            let kind = timer.kind();
            let is_taken = self.timers.iter().any(|other| other.kind() == kind);
            if is_taken || kind < Timer::KIND_MIN {
                return Err(format!("the kind of timer {kind} is taken"));
            }
            self.timers.push(timer);
        }
        self.applications.push(application);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandAccess, Keys};
    use crate::keyspace::Keyspace;
    use crate::reply::Reply;

    fn nothing(_: &mut Keyspace<'_>, _: &[Bytes]) -> Result<Reply> {
        Ok(Reply::OK)
    }

    fn ring(_: &mut Keyspace<'_>, _: &Bytes, _: u64) -> Result<()> {
        Ok(())
    }

    const fn spec(name: &'static str) -> CommandSpec {
        CommandSpec::new(name, 1, CommandAccess::Write, Keys::NONE, nothing)
    }

    static TIMER: Timer = Timer::new(16, ring);

    #[test]
    fn commands_of_applications_are_found_beside_those_of_redis() {
        static ONE: Application = Application::new("one", "", &[spec("one.go")], &[&TIMER]);
        let commands = Commands::redis().with(&ONE);
        commands.check().unwrap();
        for name in ["ONE.GO", "one.go", "GET", "hset"] {
            let found = commands.find(name.as_bytes()).unwrap();
            assert_eq!(found.name, name.to_ascii_lowercase());
        }
        assert!(commands.find(b"one").is_none());
        assert!(Commands::redis().find(b"one.go").is_none());
        let n_redis = Commands::redis().iter().count();
        assert_eq!(commands.iter().count(), n_redis + 1);
        assert!(
            commands
                .call(vec![Bytes::from("one.go"); 2])
                .unwrap()
                .is_err()
        );
    }

    #[test]
    fn an_application_that_is_in_the_way_of_others_is_refused() {
        #[track_caller]
        fn check(application: &'static Application, expected: &str) {
            static FIRST: Application = Application::new("one", "", &[spec("one.go")], &[&TIMER]);
            let error = Commands::redis().with(&FIRST).with(application).check();
            assert!(error.unwrap_err().to_string().contains(expected));
        }
        static UPPER: Application = Application::new("Two", "", &[], &[]);
        check(&UPPER, "application Two: this cannot be the name of one");
        static EVENT: Application = Application::new("event", "", &[], &[]);
        check(&EVENT, "application event: this cannot be the name of one");
        static PLAIN: Application = Application::new("two", "", &[spec("get")], &[]);
        check(&PLAIN, "command get should be named two.…");
        static LONG: &[CommandSpec] = &[spec("two.abcdefghijklmnopqrstuvwxyz0123456789")];
        static LONG_NAME: Application = Application::new("two", "", LONG, &[]);
        check(&LONG_NAME, "in at most 32 lower-case letters");
        static TWICE: Application = Application::new("one", "", &[spec("one.go")], &[]);
        check(&TWICE, "there is a command one.go already");
        static SAME_TIMER: Application = Application::new("two", "", &[], &[&TIMER]);
        check(&SAME_TIMER, "the kind of timer 16 is taken");
        static FIELDS: Timer = Timer::new(1, ring);
        static OWN_TIMER: Application = Application::new("two", "", &[], &[&FIELDS]);
        check(&OWN_TIMER, "the kind of timer 1 is taken");
    }
}
