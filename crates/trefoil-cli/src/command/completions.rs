//! `trefoil completions`: scripts that complete commands and flags in a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::output::CommandOutput;

const EXAMPLES: &str = "Examples:
  trefoil completions bash > /etc/bash_completion.d/trefoil
  trefoil completions zsh > \"${fpath[1]}/_trefoil\"
  trefoil completions fish > ~/.config/fish/completions/trefoil.fish";

/// Prints a completion script.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    pub(crate) fn run(self, output: &mut CommandOutput) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "trefoil", &mut script);
        Ok(output.line(String::from_utf8(script)?.trim_end())?)
    }
}
