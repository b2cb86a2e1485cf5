//! The documentation, run: every shell command of every page must do what the page shows.
//!
//! A block that begins with `sh` holds commands. The lines `#=> …` after a command are all that it
//! prints, to standard output and standard error; without such lines it prints nothing. It must
//! succeed, unless the last line is `#=> (exit status N)`. `#=> ^C` as the last line ends a command
//! that would go on for ever. What varies is written as a placeholder, see `compare.rs`.
//!
//! A block that begins with `sh not-run` is not run: it needs another machine, or changes this one.

mod compare;
mod page;
mod shell;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use page::Page;
use shell::Shell;

use crate::harness::Server;
use crate::python;

/// How many blocks of a page are not run. All others are.
const NOT_RUN: &[(&str, usize)] = &[
    ("CONTRIBUTING.md", 1),
    ("README.md", 2),
    ("docs/backup.md", 2),
    ("docs/cli.md", 1),
    ("docs/cluster.md", 3),
    ("docs/console.md", 1),
    ("docs/install.md", 6),
    ("docs/operations.md", 2),
    ("docs/performance.md", 1),
    ("docs/runbooks.md", 2),
    ("docs/security.md", 1),
    ("docs/storage.md", 7),
    ("examples/box-office/README.md", 2),
];

/// What the commands need besides Trefoil; `cargo xtask test` installs them.
const PROGRAMS: &[&str] = &["curl", "node", "redis-cli"];

#[test]
fn every_command_of_the_documentation_does_what_it_shows() {
    if !has_programs() || !python::has("httpx") {
        return;
    }
    let mut n_commands = 0;
    let mut differences = Vec::new();
    for (name, page) in pages() {
        if page.steps.is_empty() {
            continue;
        }
        let server = Server::in_development();
        let mut shell = Shell::new(&server);
        for step in &page.steps {
            n_commands += 1;
            if let Err(difference) = shell.run(step) {
                let place = format!("{name}:{}", step.line);
                differences.push(format!("{place}: {}\n{difference}", step.command));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(n_commands > 50, "only {n_commands} commands were found");
}

#[test]
fn blocks_that_are_not_run_are_few_and_known() {
    let not_run: Vec<(String, usize)> = pages()
        .into_iter()
        .map(|(name, page)| (name, page.n_not_run))
        .filter(|(_, count)| *count > 0)
        .collect();
    let known: Vec<(String, usize)> = NOT_RUN
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    assert_eq!(not_run, known);
}

/// All pages of the repository by name, in order.
fn pages() -> Vec<(String, Page)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut directories = vec![root.clone(), root.join("docs")];
    let examples = std::fs::read_dir(root.join("examples")).unwrap();
    directories.extend(examples.map(|entry| entry.unwrap().path()));
    let mut paths: Vec<PathBuf> = Vec::new();
    for directory in directories.iter().filter(|path| path.is_dir()) {
        let entries = std::fs::read_dir(directory).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path()));
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut pages: Vec<(String, Page)> = paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let page = Page::parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
            (name.to_owned(), page)
        })
        .collect();
    pages.sort_by(|(a, _), (b, _)| a.cmp(b));
    pages
}

/// Whether the programs are here; where they have been installed they must be.
fn has_programs() -> bool {
    let is_needed = std::env::var_os("XTASK_REDIS").is_some();
    let missing = PROGRAMS.iter().find(|program| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null());
        !command.status().is_ok_and(|status| status.success())
    });
    if let Some(program) = missing {
        assert!(!is_needed, "there is no {program}");
        eprintln!("skipped: there is no {program}");
    }
    missing.is_none()
}
