//! Help, version and completions.

use super::text;
use crate::harness::binary;

/// Every command, and those below them.
const COMMANDS: &[&str] = &[
    "dev",
    "serve",
    "ns",
    "ns create",
    "ns list",
    "ns info",
    "ns delete",
    "ns set",
    "ns token",
    "token",
    "token create",
    "token list",
    "token rotate",
    "token revoke",
    "audit",
    "write",
    "append",
    "commit",
    "state",
    "read",
    "query",
    "tail",
    "seats",
    "seats init",
    "seats sections",
    "seats stats",
    "seats map",
    "seats reserve",
    "seats finalize",
    "seats release",
    "seats booking",
    "seats check",
    "context",
    "context add",
    "context select",
    "context ls",
    "context show",
    "context rm",
    "info",
    "top",
    "doctor",
    "ready",
    "nodes",
    "report",
    "report streams",
    "report types",
    "report categories",
    "report growth",
    "stream",
    "stream truncate",
    "stream delete",
    "retention",
    "retention set",
    "retention list",
    "retention remove",
    "redact",
    "streams",
    "categories",
    "export",
    "import",
    "migrate",
    "migrate eventodb",
    "migrate umadb",
    "backup",
    "backup create",
    "backup list",
    "backup verify",
    "backup restore",
    "backup prune",
    "verify",
    "repair",
    "move",
    "inspect",
    "version",
    "completions",
    "man",
];

#[test]
fn every_command_has_help_with_an_example() {
    for command in COMMANDS {
        let output = binary()
            .args(command.split(' '))
            .arg("--help")
            .output()
            .unwrap();
        let help = text(&output);
        assert!(output.status.success(), "{command}");
        assert!(
            help.contains(&format!("\n  trefoil {command}")),
            "{command}: {help}"
        );
        let columns = help.lines().map(|line| line.chars().count()).max();
        assert!(columns <= Some(100), "{command} has lines of {columns:?}");
    }
}

#[test]
fn no_arguments_print_help_and_unknown_ones_are_wrong_usage() {
    let output = binary().output().unwrap();
    assert!(output.status.success());
    let help = text(&output);
    let missing: Vec<_> = COMMANDS
        .iter()
        .filter(|command| !command.contains(' ') && !help.contains(&format!("\n  {command} ")))
        .collect();
    assert!(missing.is_empty(), "{missing:?} not in {help}");
    for arguments in [
        &["nonsense"][..],
        &["--nonsense"],
        &["read"],
        &["serve", "--port"],
    ] {
        assert_eq!(
            binary().args(arguments).output().unwrap().status.code(),
            Some(2)
        );
    }
}

#[test]
fn the_version_is_told_in_every_way() {
    let version = format!("trefoil {}\n", env!("CARGO_PKG_VERSION"));
    for argument in ["version", "-v", "--version"] {
        assert_eq!(text(&binary().arg(argument).output().unwrap()), version);
    }
    let full = text(&binary().args(["version", "-f"]).output().unwrap());
    assert!(
        full.starts_with(&version) && full.contains("EventoDB"),
        "{full}"
    );
}

#[test]
fn man_pages_are_those_of_the_help() {
    let page = |arguments: &[&str]| {
        let output = binary().arg("man").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        text(&output)
    };
    let root = page(&[]);
    assert!(root.contains(".TH trefoil 1"), "{root}");
    assert!(root.contains("trefoil\\-categories(1)"), "{root}");
    let below = page(&["ns", "create"]);
    assert!(below.contains(".TH trefoil-ns-create 1") && below.contains("cache\\-share"));
    let wrong = binary().args(["man", "ns", "nonsense"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(4));

    let directory = tempfile::TempDir::new().unwrap();
    let pages = directory.path().join("man1");
    let all = binary().arg("man").arg("--dir").arg(&pages).output();
    assert!(all.unwrap().status.success());
    for command in COMMANDS {
        let file = pages.join(format!("trefoil-{}.1", command.replace(' ', "-")));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{file:?}"));
        assert!(
            text.contains(".SH SYNOPSIS") && text.contains("Example"),
            "{command}"
        );
    }
    assert!(pages.join("trefoil.1").exists());
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&binary().args(["completions", shell]).output().unwrap());
        assert!(
            script.contains("categories") && script.contains("data-dir"),
            "{shell}"
        );
    }
}
