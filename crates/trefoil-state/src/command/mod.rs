//! Every command: its name, its arity, what it does. One file per family.

pub(crate) mod arguments;
mod bitmap;
mod clock;
mod deadline;
mod expiry;
pub(crate) mod hash;
mod keys;
mod list;
mod sample;
mod scan;
mod seats;
mod set;
mod sort;
mod string;
pub(crate) mod zset;

pub use arguments::index_range;
pub use string::string_range;

use std::collections::HashMap;
use std::sync::LazyLock;

use bytes::Bytes;

use crate::failure::Result;
use crate::keyspace::Keyspace;
use crate::reply::Reply;

/// What a command does to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
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
    pub(crate) const NONE: Self = Self::at(0, 0, 0);
    pub(crate) const ONE: Self = Self::at(1, 1, 1);
    pub(crate) const TWO: Self = Self::at(1, 2, 1);
    pub(crate) const ALL: Self = Self::at(1, -1, 1);

    pub(crate) const fn at(first: i32, last: i32, step: i32) -> Self {
        Self { first, last, step }
    }
}

/// A command's name, what it takes and what it does.
#[derive(Debug)]
pub struct Spec {
    /// The name, in lower case.
    pub name: &'static str,
    /// The number of arguments, the name included; if negative, the least number.
    pub arity: i32,
    /// What it does to the state.
    pub access: Access,
    /// Which arguments are keys.
    pub keys: Keys,
    /// Does it. The arguments are those of the client, the name first; there are as many as the
    /// arity says.
    pub(crate) run: Run,
}

/// Runs a command.
pub(crate) type Run = fn(&mut Keyspace<'_>, &[Bytes]) -> Result<Reply>;

impl Spec {
    pub(crate) const fn new(
        name: &'static str,
        arity: i32,
        access: Access,
        keys: Keys,
        run: Run,
    ) -> Self {
        Self {
            name,
            arity,
            access,
            keys,
            run,
        }
    }

    /// Whether the command takes so many arguments, its name included.
    pub fn takes(&self, n_arguments: usize) -> bool {
        match usize::try_from(self.arity) {
            Ok(exactly) => n_arguments == exactly,
            Err(_) => n_arguments >= self.arity.unsigned_abs() as usize,
        }
    }
}

/// All families.
const FAMILIES: &[&[Spec]] = &[
    keys::COMMANDS,
    expiry::COMMANDS,
    string::COMMANDS,
    bitmap::COMMANDS,
    hash::COMMANDS,
    set::COMMANDS,
    zset::COMMANDS,
    list::COMMANDS,
    sort::COMMANDS,
    seats::COMMANDS,
];

/// All commands.
pub fn commands() -> impl Iterator<Item = &'static Spec> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The longest name of a command.
const NAME_BYTES_MAX: usize = 32;

/// The command of this name, in any case.
pub fn find_command(name: &[u8]) -> Option<&'static Spec> {
    static BY_NAME: LazyLock<HashMap<&[u8], &Spec>> = LazyLock::new(|| {
        commands()
            .map(|spec| (spec.name.as_bytes(), spec))
            .collect()
    });
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    BY_NAME.get(&*lower).copied()
}

/// A command with its arguments, of the right number.
#[derive(Debug, Clone)]
pub struct Call {
    spec: &'static Spec,
    arguments: Vec<Bytes>,
}

impl Call {
    /// The command that these words say; `None` if there is no such command.
    pub fn new(arguments: Vec<Bytes>) -> Option<Result<Self>> {
        let spec = find_command(arguments.first()?)?;
        if !spec.takes(arguments.len()) {
            return Some(Err(arguments::wrong_arity(spec.name)));
        }
        Some(Ok(Self { spec, arguments }))
    }

    /// The command.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Its words.
    pub fn arguments(&self) -> &[Bytes] {
        &self.arguments
    }

    /// About how many bytes it takes.
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
