//! How a server is configured: the arguments that `serve` and `dev` have in common.

use std::path::PathBuf;

use crate::logging::Format;
use crate::output::{Column, CommandOutput, OutputFormat};
use crate::settings::{Flags, KeySet, ServerSettings, SettingLayers, Shown};

/// Settings from flags, from the environment and from a file.
#[derive(Debug, clap::Args)]
pub(super) struct Configured<Set: KeySet> {
    #[command(flatten)]
    flags: Flags<Set>,

    /// TOML file with settings
    #[arg(long, value_name = "FILE", env = "TREFOIL_CONFIG")]
    config: Option<PathBuf>,

    /// Show every setting and where it came from, and stop
    #[arg(long)]
    print_config: bool,
}

const COLUMNS: &[Column<Shown>] = &[
    Column::Text("SETTING", |shown| shown.name.to_owned()),
    Column::Text("VALUE", |shown| shown.value.clone()),
    Column::Text("SOURCE", |shown| shown.source.clone()),
];

impl<Set: KeySet> Configured<Set> {
    /// Every setting, or `None` if they were only to be shown.
    pub(super) fn settings(
        &self,
        output: &mut CommandOutput,
    ) -> anyhow::Result<Option<ServerSettings>> {
        let variable = |name: &str| std::env::var(name).ok();
        let layers = SettingLayers::new(
            Set::has,
            &self.flags.given,
            self.config.as_deref(),
            variable,
        )?;
        if layers.log_format()? == Format::Json {
            // Whoever reads the log line by line reads what else is said, too.
            output.format = OutputFormat::Ndjson;
        }
        let settings = ServerSettings::new(&layers)?;
        if self.print_config {
            output.table(&layers.shown(), COLUMNS)?;
            return Ok(None);
        }
        Ok(Some(settings))
    }
}
