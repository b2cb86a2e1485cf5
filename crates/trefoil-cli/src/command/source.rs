//! Which events a command is about: a stream, a category, or all.

use crate::exit::UsageError;

/// A name with a dash is a stream's, one without a category's.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SourceArguments {
    /// A stream (account-1) or a category (account)
    #[arg(
        value_name = "NAME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    name: Option<String>,

    /// NAME is a stream although it has no dash
    #[arg(long, conflicts_with = "all")]
    stream: bool,

    /// Every event of the namespace
    #[arg(long)]
    all: bool,
}

/// What the arguments name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadSource {
    Stream(String),
    Category(String),
    All,
}

impl SourceArguments {
    pub(crate) fn source(&self) -> anyhow::Result<ReadSource> {
        match &self.name {
            None => Ok(ReadSource::All),
            Some(name) if name.is_empty() => {
                Err(UsageError("NAME must not be empty".into()).into())
            }
            Some(name) if self.stream || name.contains('-') => Ok(ReadSource::Stream(name.clone())),
            Some(name) => Ok(ReadSource::Category(name.clone())),
        }
    }
}

impl ReadSource {
    /// How a query string names it.
    pub(crate) fn parameter(&self) -> (&str, &str) {
        match self {
            Self::Stream(name) => ("stream", name),
            Self::Category(name) => ("category", name),
            Self::All => ("all", "true"),
        }
    }
}
