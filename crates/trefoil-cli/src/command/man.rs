//! `trefoil man`: the help of every command as man pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;

use super::Cli;
use crate::exit::NotFound;
use crate::output::{CommandOutput, visible};

const EXAMPLES: &str = "Examples:
  trefoil man | man -l -
  trefoil man context add | man -l -
  trefoil man --dir /usr/local/share/man/man1";

/// Prints the man page of a command, or writes the pages of all commands.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The command, as `ns create` [default: trefoil itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write all pages into this directory, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let mut root = Cli::command();
        // Names and flags that commands have in common come with this.
        root.build();
        if let Some(directory) = &self.dir {
            let shown = directory.display();
            fs::create_dir_all(directory).with_context(|| format!("cannot create {shown}"))?;
            let pages = write_all(&root, "trefoil", directory)?;
            eprintln!("wrote {pages} pages to {shown}");
            return Ok(());
        }
        let mut command = &root;
        let mut name = "trefoil".to_owned();
        for word in &self.command {
            let found = command.find_subcommand(word);
            command = found
                .ok_or_else(|| NotFound(format!("{name} has no command '{}'", visible(word))))?;
            name = format!("{name}-{}", command.get_name());
        }
        Ok(output.bytes_line(page(command, &name)?.trim_ascii_end())?)
    }
}

/// Writes the pages of a command and of those below it; returns how many.
fn write_all(command: &clap::Command, name: &str, directory: &Path) -> anyhow::Result<u64> {
    let path = directory.join(format!("{name}.1"));
    let written = fs::write(&path, page(command, name)?);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    let mut pages = 1;
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            let name = format!("{name}-{}", below.get_name());
            pages += write_all(below, &name, directory)?;
        }
    }
    Ok(pages)
}

fn page(command: &clap::Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let titled = command.clone().version(env!("CARGO_PKG_VERSION"));
    let man = Man::new(titled)
        .title(name)
        .source(concat!("trefoil ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render(&mut text)?;
    Ok(text)
}
