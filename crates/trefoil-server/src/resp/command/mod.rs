//! The commands that are not about state, and how any command is found.

mod about;
mod access;
mod acl;
mod catalogue;
mod client;
mod config;
mod documents;
mod event;
mod info;
mod permitted;
mod plain;
mod slowlog;
mod syntax;

use std::fmt::Write as _;
use std::sync::LazyLock;

use bytes::Bytes;
use hashbrown::HashMap;
use trefoil::{CommandSpec, Commands, Reply, Scope};

use super::session::Session;
use super::wishes::Wish;
use super::words::{ReplyResult, error};
use crate::limits::RESP_REPEATED_BYTES_MAX;
use crate::need::Need;

pub(super) use access::{authenticate, hello};
pub(crate) use catalogue::Catalogue;
pub(super) use event::{EventLookup, append, lookup, requirement};
pub(super) use info::{InfoSubject, info};
pub(super) use plain::{sleep, wait_for_log};

/// A command that the server itself carries out.
#[derive(Debug)]
pub(super) struct Own {
    /// The name in lower case, with the name of the subcommand after a `|`.
    pub(super) name: &'static str,
    /// The number of words, as in [`CommandSpec::arity`].
    pub(super) arity: i32,
    pub(super) action: CommandAction,
    /// What it needs to be permitted.
    pub(super) need: Need,
}

/// How a command is carried out.
#[derive(Debug, Clone, Copy)]
pub(super) enum CommandAction {
    /// It needs nothing but the connection.
    Plain(fn(&mut Session, &[Bytes]) -> ReplyResult),
    /// The same, when all that was sent before it is on disk.
    AfterWrites(fn(&mut Session, &[Bytes]) -> ReplyResult),
    /// It is about transactions or the connection itself, and never waits for `EXEC`.
    AtOnce(AtOnce),
    /// It says who the client is, so it cannot be part of a transaction.
    Authenticate,
    Hello,
    /// It looks at the database.
    Info,
    Look(EventLookup),
    /// It checks a condition on the log, or adds it to a transaction.
    Require,
    /// It appends an event.
    Append,
    /// It says how transactions are to be: those to come, or the one it is part of.
    Wish(Wish),
    /// It waits until all writes before it are in the log.
    WaitForLog,
    /// It sleeps.
    Sleep,
}

/// What never waits for `EXEC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtOnce {
    Multi,
    Exec,
    Discard,
    Watch,
    Quit,
    Reset,
}

const fn own(name: &'static str, arity: i32, need: Need, action: CommandAction) -> Own {
    Own {
        name,
        arity,
        action,
        need,
    }
}

/// A command that any client may use that has shown who it is.
const fn plain(
    name: &'static str,
    arity: i32,
    run: fn(&mut Session, &[Bytes]) -> ReplyResult,
) -> Own {
    own(name, arity, Need::Nothing, CommandAction::Plain(run))
}

/// A command that Redis calls one for administrators.
const fn admin(
    name: &'static str,
    arity: i32,
    run: fn(&mut Session, &[Bytes]) -> ReplyResult,
) -> Own {
    let need = Need::Whole(Scope::Admin);
    own(name, arity, need, CommandAction::Plain(run))
}

/// A command that looks at events.
const fn look(name: &'static str, arity: i32, lookup: EventLookup) -> Own {
    let need = Need::Named(Scope::Read);
    own(name, arity, need, CommandAction::Look(lookup))
}

const fn at_once(name: &'static str, arity: i32, need: Need, action: AtOnce) -> Own {
    own(name, arity, need, CommandAction::AtOnce(action))
}

/// All of them.
const OWN: &[Own] = &[
    plain("acl|cat", -2, acl::categories),
    plain("acl|help", 2, acl::help),
    admin("acl|list", 2, acl::list),
    plain("acl|whoami", 2, acl::who_am_i),
    own("auth", -2, Need::Nothing, CommandAction::Authenticate),
    plain("client|getname", 2, client::get_name),
    plain("client|getredir", 2, client::get_redirection),
    plain("client|help", 2, client::help),
    plain("client|id", 2, client::id),
    plain("client|info", 2, client::info),
    admin("client|kill", -3, client::kill),
    admin("client|list", -2, client::list),
    admin("client|no-evict", 3, client::on_or_off),
    plain("client|no-touch", 3, client::on_or_off),
    plain("client|reply", 3, client::reply),
    plain("client|setinfo", 4, client::set_info),
    plain("client|setname", 3, client::set_name),
    plain("client|trackinginfo", 2, client::tracking_info),
    plain("command", -1, about::all),
    plain("command|count", 2, about::count),
    plain("command|docs", -2, about::docs),
    plain("command|getkeys", -4, about::get_keys),
    plain("command|help", 2, about::help),
    plain("command|info", -2, about::info),
    plain("command|list", -2, about::list),
    admin("config|get", -3, config::get),
    plain("config|help", 2, config::help),
    admin("config|resetstat", 2, config::reset_statistics),
    admin("config|set", -4, config::set),
    own(
        "debug|sleep",
        3,
        Need::Whole(Scope::Admin),
        CommandAction::Sleep,
    ),
    at_once("discard", 1, Need::Nothing, AtOnce::Discard),
    plain("echo", 2, plain::echo),
    own(
        "event.append",
        -4,
        Need::Named(Scope::Write),
        CommandAction::Append,
    ),
    look("event.category", -2, EventLookup::Category),
    look("event.head", 1, EventLookup::Head),
    look("event.last", -2, EventLookup::Last),
    look("event.query", -1, EventLookup::Query),
    look("event.read", -2, EventLookup::Stream),
    own(
        "event.require",
        -2,
        Need::Named(Scope::Write),
        CommandAction::Require,
    ),
    look("event.version", 2, EventLookup::Version),
    at_once("exec", -1, Need::Nothing, AtOnce::Exec),
    own("hello", -1, Need::Nothing, CommandAction::Hello),
    own("info", -1, Need::Nothing, CommandAction::Info),
    at_once("multi", 1, Need::Nothing, AtOnce::Multi),
    plain("ping", -1, plain::ping),
    at_once("quit", -1, Need::Nothing, AtOnce::Quit),
    at_once("reset", 1, Need::Nothing, AtOnce::Reset),
    plain("role", 1, plain::role),
    plain("select", 2, plain::select),
    admin("slowlog|get", -2, slowlog::get),
    plain("slowlog|help", 2, slowlog::help),
    admin("slowlog|len", 2, slowlog::len),
    admin("slowlog|reset", 2, slowlog::reset),
    plain("time", 1, plain::time),
    own(
        "trefoil.commitid",
        2,
        Need::Nothing,
        CommandAction::Wish(Wish::CommitId),
    ),
    own(
        "trefoil.strict",
        2,
        Need::Nothing,
        CommandAction::Wish(Wish::Strict),
    ),
    plain("unwatch", 1, plain::unwatch),
    own(
        "wait",
        3,
        Need::Nothing,
        CommandAction::AfterWrites(plain::wait),
    ),
    own("waitaof", 4, Need::Nothing, CommandAction::WaitForLog),
    at_once("watch", -2, Need::Named(Scope::State), AtOnce::Watch),
];

/// The commands that have subcommands.
const CONTAINERS: [&str; 6] = ["acl", "client", "command", "config", "debug", "slowlog"];

/// A command that was found.
#[derive(Debug, Clone, Copy)]
pub(super) enum FoundCommand {
    /// It is about state.
    State(&'static CommandSpec),
    Own(&'static Own),
}

impl FoundCommand {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::State(spec) => spec.name,
            Self::Own(own) => own.name,
        }
    }

    /// Returns whether the token decides who may use it.
    pub(super) fn is_permitted_by_token(self) -> bool {
        match self {
            Self::State(_) => true,
            Self::Own(own) => own.need != Need::Nothing,
        }
    }

    fn arity(self) -> i32 {
        match self {
            Self::State(spec) => spec.arity,
            Self::Own(own) => own.arity,
        }
    }
}

impl Catalogue {
    /// Returns the command that these words name; there is at least one. An error says that there
    /// is none, or that it takes another number of words.
    pub(super) fn find(&self, words: &[Bytes]) -> ReplyResult<FoundCommand> {
        let found = match self.find_plain(&words[0]) {
            Some(found) => found,
            None => find_sub(words)?,
        };
        let arity = found.arity();
        let is_right = match usize::try_from(arity) {
            Ok(exactly) => words.len() == exactly,
            Err(_) => words.len() >= arity.unsigned_abs() as usize,
        };
        if is_right {
            Ok(found)
        } else {
            Err(wrong_number(found.name()))
        }
    }

    /// Returns the command of this name, in any case, if it has no subcommands.
    fn find_plain(&self, name: &[u8]) -> Option<FoundCommand> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name.get(&*lower).copied()
    }

    /// Returns the command that words name which it does not take, as in too few of them.
    pub(super) fn named(&self, words: &[Bytes]) -> Option<&'static str> {
        let name = lower(&words[0])?;
        let subname = words.get(1).and_then(|word| lower(word));
        let sub = subname.and_then(|subname| self.entry(&format!("{name}|{subname}")));
        Some(sub.or_else(|| self.entry(&name))?.name)
    }
}

fn wrong_number(name: &str) -> Reply {
    error(format!(
        "ERR wrong number of arguments for '{name}' command"
    ))
}

/// Returns the commands that have no subcommands, by name.
fn by_name(commands: &Commands) -> HashMap<&'static [u8], FoundCommand> {
    // The name of a subcommand is none by itself.
    let is_plain = |own: &&Own| !own.name.contains('|') && !CONTAINERS.contains(&own.name);
    let own = OWN.iter().filter(is_plain).map(FoundCommand::Own);
    let all = own.chain(commands.iter().map(FoundCommand::State));
    all.map(|found| (found.name().as_bytes(), found)).collect()
}

/// Returns the command of a name that is followed by that of a subcommand.
fn find_sub(words: &[Bytes]) -> ReplyResult<FoundCommand> {
    static BY_NAME: LazyLock<HashMap<&str, &Own>> =
        LazyLock::new(|| OWN.iter().map(|own| (own.name, own)).collect());
    let mut name = lower(&words[0]).ok_or_else(|| unknown(words))?;
    let container = CONTAINERS.into_iter().find(|container| *container == name);
    let container = container.ok_or_else(|| unknown(words))?;
    if let Some(subcommand) = words.get(1) {
        let subname = lower(subcommand).ok_or_else(|| unknown_sub(container, subcommand))?;
        name = format!("{container}|{subname}");
    }
    match (BY_NAME.get(name.as_str()), words.get(1)) {
        (Some(own), _) => Ok(FoundCommand::Own(own)),
        (None, Some(subcommand)) => Err(unknown_sub(container, subcommand)),
        (None, None) => Err(wrong_number(container)),
    }
}

/// The longest name of a command or a subcommand.
const NAME_BYTES_MAX: usize = 32;

fn lower(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    (name.len() <= NAME_BYTES_MAX).then(|| name.to_ascii_lowercase())
}

fn unknown_sub(container: &str, subcommand: &[u8]) -> Reply {
    let container = container.to_ascii_uppercase();
    let subcommand = beginning(subcommand, RESP_REPEATED_BYTES_MAX);
    error(format!(
        "ERR unknown subcommand '{subcommand}'. Try {container} HELP."
    ))
}

fn unknown(words: &[Bytes]) -> Reply {
    let mut arguments = String::new();
    for word in &words[1..] {
        let Some(room @ 1..) = RESP_REPEATED_BYTES_MAX.checked_sub(arguments.len()) else {
            break;
        };
        // Writing into a string does not fail.
        let _ = write!(arguments, "'{}' ", beginning(word, room));
    }
    let name = beginning(&words[0], RESP_REPEATED_BYTES_MAX);
    error(format!(
        "ERR unknown command '{name}', with args beginning with: {arguments}"
    ))
}

/// The first bytes of a word, for people to read.
fn beginning(word: &[u8], bytes_max: usize) -> String {
    String::from_utf8_lossy(&word[..word.len().min(bytes_max)]).into_owned()
}

/// What `HELP` answers for a command that has subcommands.
fn help_lines(container: &'static str, lines: &[&'static str]) -> Reply {
    let head = Reply::Simple(container);
    let lines = lines.iter().map(|line| Reply::Simple(line));
    Reply::Array(std::iter::once(head).chain(lines).collect())
}

#[cfg(test)]
mod tests {
    use trefoil::Options;

    use super::*;

    fn find(words: &[Bytes]) -> ReplyResult<FoundCommand> {
        Catalogue::new(&Options::default().commands).find(words)
    }

    #[track_caller]
    fn check_error(line: &str, expected: &str) {
        let words: Vec<Bytes> = line.split(' ').map(|word| word.to_owned().into()).collect();
        match find(&words) {
            Err(Reply::Error(text)) => assert_eq!(text, expected),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_cannot_be_found_is_told_as_redis_tells_it() {
        check_error(
            "FOO a b",
            "ERR unknown command 'FOO', with args beginning with: 'a' 'b' ",
        );
        check_error(
            "FOO",
            "ERR unknown command 'FOO', with args beginning with: ",
        );
        let long = "a".repeat(200);
        let expected = format!(
            "ERR unknown command 'FOO', with args beginning with: '{}' ",
            "a".repeat(128)
        );
        check_error(&format!("FOO {long} b"), &expected);
        check_error(
            "CLIENT",
            "ERR wrong number of arguments for 'client' command",
        );
        check_error(
            "CLIENT FOO",
            "ERR unknown subcommand 'FOO'. Try CLIENT HELP.",
        );
        check_error(
            "client setname",
            "ERR wrong number of arguments for 'client|setname' command",
        );
        check_error(
            "CONFIG|GET save",
            "ERR unknown command 'CONFIG|GET', with args beginning with: 'save' ",
        );
        check_error("echo", "ERR wrong number of arguments for 'echo' command");
        check_error(
            "MULTI x",
            "ERR wrong number of arguments for 'multi' command",
        );
    }

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for own in OWN {
            let words = own.name.to_ascii_uppercase().replace('|', " ");
            let mut words: Vec<Bytes> = words
                .split(' ')
                .map(|word| word.to_owned().into())
                .collect();
            words.resize(own.arity.unsigned_abs() as usize, Bytes::from_static(b"x"));
            match find(&words).unwrap() {
                FoundCommand::Own(found) => assert_eq!(found.name, own.name),
                FoundCommand::State(spec) => panic!("{} is about state", spec.name),
            }
        }
    }
}
