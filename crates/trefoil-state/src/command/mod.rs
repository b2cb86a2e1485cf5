//! Every command of Redis: its name, its arity, what it does. One file per family.

pub(crate) mod arguments;
mod bitmap;
mod clock;
mod commands;
mod deadline;
mod expiry;
pub(crate) mod hash;
mod keys;
mod list;
mod room;
mod sample;
mod scan;
mod set;
mod sort;
mod string;
pub(crate) mod zset;

pub use arguments::{ArgumentReader, index_range};
pub use commands::Commands;
pub use string::string_range;

use bytes::Bytes;
use trefoil_core::Scope;

use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// What a command does to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAccess {
    /// Reads little, whatever the size of what it reads from.
    FastRead,
    /// Reads as much as there is.
    Read,
    /// May change something.
    Write,
}

/// Which of a command's arguments are keys, as `COMMAND INFO` says it: the first, the last (from
/// the end if negative) and the step between them; all 0 if there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// The index of the first key.
    pub first: i32,
    /// The index of the last key.
    pub last: i32,
    /// How far a key is from the next.
    pub step: i32,
}

impl Keys {
    /// None.
    pub const NONE: Self = Self::at(0, 0, 0);
    /// The first argument.
    pub const ONE: Self = Self::at(1, 1, 1);
    /// The first two arguments.
    pub const TWO: Self = Self::at(1, 2, 1);
    /// All arguments.
    pub const ALL: Self = Self::at(1, -1, 1);

    /// Returns keys from one argument to another, with a step between them.
    pub const fn at(first: i32, last: i32, step: i32) -> Self {
        Self { first, last, step }
    }
}

/// A command's name, what it takes and what it does.
#[derive(Debug)]
pub struct CommandSpec {
    /// The name, in lower case.
    pub name: &'static str,
    /// The number of arguments, the name included; if negative, the least number.
    pub arity: i32,
    /// What it does to the state.
    pub access: CommandAccess,
    /// Which arguments are keys.
    pub keys: Keys,
    /// How it is written after its name, as in `key <field value>... [NX | XX]`.
    pub syntax: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What a client needs to be permitted.
    pub scope: Scope,
    /// Does it. The arguments are those of the client, the name first; there are as many as the
    /// arity says.
    run: RunCommand,
}

/// Runs a command.
type RunCommand = fn(&mut Keyspace<'_>, &[Bytes]) -> Result<Reply>;

impl CommandSpec {
    /// Returns a command of this name, in lower case, and what it takes and does.
    pub const fn new(
        name: &'static str,
        arity: i32,
        access: CommandAccess,
        keys: Keys,
        run: RunCommand,
    ) -> Self {
        Self {
            name,
            arity,
            access,
            keys,
            syntax: "",
            summary: "",
            scope: Scope::State,
            run,
        }
    }

    /// Returns the command with what `COMMAND DOCS` tells of it: how it is written after its name, and
    /// what it does. In the syntax a word in capitals stands for itself, `<a | b>` is one of several,
    /// `[a]` may be left out, and `a...` may be repeated.
    #[must_use]
    pub const fn described(mut self, syntax: &'static str, summary: &'static str) -> Self {
        self.syntax = syntax;
        self.summary = summary;
        self
    }

    /// Returns the command with another scope than [`Scope::State`].
    #[must_use]
    pub const fn scoped(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Returns whether the command takes this many arguments, its name included.
    pub fn takes(&self, n_arguments: usize) -> bool {
        match usize::try_from(self.arity) {
            Ok(exactly) => n_arguments == exactly,
            Err(_) => n_arguments >= self.arity.unsigned_abs() as usize,
        }
    }

    /// Returns a call of the command with these arguments, of which its name is the first.
    pub fn call(&'static self, arguments: Vec<Bytes>) -> Result<Call> {
        match self.takes(arguments.len()) {
            true => Ok(Call {
                spec: self,
                arguments,
            }),
            false => Err(arguments::wrong_arity(self.name)),
        }
    }

    /// Returns whether it is a command of an application.
    pub fn is_of_application(&self) -> bool {
        self.name.contains('.')
    }
}

/// All families of Redis.
const FAMILIES: &[&[CommandSpec]] = &[
    keys::COMMANDS,
    expiry::COMMANDS,
    string::COMMANDS,
    bitmap::COMMANDS,
    hash::COMMANDS,
    set::COMMANDS,
    zset::COMMANDS,
    list::COMMANDS,
    sort::COMMANDS,
];

/// A command with its arguments, of the right number.
#[derive(Debug, Clone)]
pub struct Call {
    spec: &'static CommandSpec,
    arguments: Vec<Bytes>,
}

impl Call {
    /// Returns the command of Redis that these words say; `None` if there is no such command.
    /// [`Commands::call`] also finds those of applications.
    pub fn new(arguments: Vec<Bytes>) -> Option<Result<Self>> {
        Commands::redis().call(arguments)
    }

    /// Returns the command.
    pub fn spec(&self) -> &'static CommandSpec {
        self.spec
    }

    /// Its words.
    pub fn arguments(&self) -> &[Bytes] {
        &self.arguments
    }

    /// Returns about how many bytes it takes.
    pub fn size(&self) -> usize {
        self.arguments
            .iter()
            .map(|argument| argument.len() + 32)
            .sum()
    }

    /// Runs it. If it fails, what it changed must be taken back.
    pub fn run(&self, keyspace: &mut Keyspace<'_>) -> Result<Reply> {
        let meter = keyspace.meter();
        let mut run = || (self.spec.run)(keyspace, &self.arguments);
        match meter {
            Some(meter) => meter.count(run),
            None => run(),
        }
    }
}
