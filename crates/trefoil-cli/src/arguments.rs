//! Arguments in the syntax of Go's `flag` package, which EventoDB uses, turned into ours.
//!
//! `-port 6789`, `-port=6789` and `--port=6789` mean the same, and `serve` may be left out when the
//! first argument is one of its flags. Without arguments there is help.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::command::Cli;

/// Rewrites the arguments of the process for the parser.
pub(crate) fn normalise(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let mut known = long_flags(&command);
    known.extend(command.get_subcommands().flat_map(long_flags));
    let serve = command
        .find_subcommand("serve")
        .map(long_flags)
        .unwrap_or_default();

    let mut arguments = arguments.into_iter();
    let mut normalised: Vec<OsString> = arguments.next().into_iter().collect();
    let mut only_values = false;
    for argument in arguments {
        // The words of a command on the state are the user's.
        only_values |= argument == "--" || normalised.get(1).is_some_and(|first| first == "state");
        let doubled = (!only_values)
            .then(|| double_dash(&argument, &known))
            .flatten();
        normalised.push(doubled.unwrap_or(argument));
    }
    let first = normalised.get(1).and_then(|first| first.to_str());
    match first {
        None => normalised.push("help".into()),
        Some("-v" | "-V" | "--version") => normalised[1] = "version".into(),
        Some(first) if flag_name(first).is_some_and(|name| serve.contains(name)) => {
            normalised.insert(1, "serve".into());
        }
        Some(_) => {}
    }
    normalised
}

/// The long flags of a command, without those that every command has.
fn long_flags(command: &clap::Command) -> BTreeSet<String> {
    let own = command
        .get_arguments()
        .filter(|argument| !argument.is_global_set());
    own.filter_map(clap::Arg::get_long)
        .map(str::to_owned)
        .collect()
}

/// The name in `--name` or `--name=value`.
fn flag_name(argument: &str) -> Option<&str> {
    let rest = argument.strip_prefix("--")?;
    Some(rest.split_once('=').map_or(rest, |(name, _)| name))
}

/// `--name…` for `-name…` if there is such a long flag.
fn double_dash(argument: &OsString, known: &BTreeSet<String>) -> Option<OsString> {
    let text = argument.to_str()?;
    let rest = text.strip_prefix('-')?;
    let doubled = format!("-{text}");
    let name = flag_name(&doubled)?;
    // One letter is a short flag, and what begins with a second dash is long already.
    (name.len() > 1 && !rest.starts_with('-') && known.contains(name)).then(|| doubled.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expected: &[&str]) {
        let arguments = ["trefoil"].iter().chain(given).map(OsString::from);
        let normalised = normalise(arguments);
        assert_eq!(&normalised[1..], expected, "{given:?}");
    }

    #[test]
    fn flags_in_go_syntax_start_the_server() {
        check(&["-port", "6789"], &["serve", "--port", "6789"]);
        check(&["-port=6789"], &["serve", "--port=6789"]);
        check(
            &["--test-mode", "--port=6789"],
            &["serve", "--test-mode", "--port=6789"],
        );
        check(
            &["serve", "-test-mode=true"],
            &["serve", "--test-mode=true"],
        );
        check(
            &["-db-url", "pebble:///d"],
            &["serve", "--db-url", "pebble:///d"],
        );
    }

    #[test]
    fn what_is_no_long_flag_is_left_alone() {
        check(
            &["read", "account-1", "--from", "-1"],
            &["read", "account-1", "--from", "-1"],
        );
        check(&["--json", "streams"], &["--json", "streams"]);
        check(
            &["write", "a-1", "T", "--", "-port"],
            &["write", "a-1", "T", "--", "-port"],
        );
        check(&["-h"], &["-h"]);
        check(
            &["state", "SET", "k", "-url"],
            &["state", "SET", "k", "-url"],
        );
        check(
            &["export", "-url", "http://x"],
            &["export", "--url", "http://x"],
        );
    }

    #[test]
    fn no_arguments_are_a_call_for_help_and_v_asks_for_the_version() {
        check(&[], &["help"]);
        check(&["-v"], &["version"]);
        check(&["--version", "--full"], &["version", "--full"]);
    }
}
