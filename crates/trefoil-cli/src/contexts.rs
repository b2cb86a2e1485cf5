//! Contexts: servers that have a name, with where their tokens are, in a file of the user.
//!
//! The file is `trefoil/contexts.toml` in the user's directory for settings. Nobody else may read it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::exit::{NotFound, UsageError};

/// What stands for the context that was selected before.
pub(crate) const PREVIOUS: &str = "-";

/// The longest file that is read, for contexts or for a token.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The permissions of everybody but the owner, and those of everybody but owner and group.
const OTHERS: u32 = 0o077;
const EVERYBODY: u32 = 0o007;

/// All contexts. There is no `Debug`: one may hold a token.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Contexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, NamedServer>,
}

/// A server, and its token or the file that has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct NamedServer {
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The file with the certificates of those who vouch for the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cacert: Option<PathBuf>,
}

impl NamedServer {
    /// The token, if there is one.
    pub(crate) fn token(&self) -> anyhow::Result<Option<String>> {
        match (&self.token, &self.token_file) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(path)) => read_token(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Where the token is, in words.
    pub(crate) fn token_place(&self) -> String {
        match (&self.token, &self.token_file) {
            (Some(_), _) => "stored".to_owned(),
            (None, Some(path)) => format!("file {}", path.display()),
            (None, None) => "none".to_owned(),
        }
    }
}

impl Contexts {
    /// Reads the file; no file is one without contexts.
    pub(crate) fn load() -> anyhow::Result<Self> {
        match path() {
            Some(path) => Self::load_from(&path),
            None => Ok(Self::default()),
        }
    }

    fn load_from(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            opened => opened.with_context(|| format!("cannot read {shown}"))?,
        };
        if file.metadata()?.permissions().mode() & OTHERS != 0 {
            let text = format!("others may use {shown}: run `chmod 600 {shown}`");
            return Err(UsageError(text).into());
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .with_context(|| format!("cannot read {shown}"))?;
        toml::from_str(&text).map_err(|error| {
            // The error itself would show the line, and with it a token.
            let before = error.span().map_or("", |span| &text[..span.start]);
            let line = before.matches('\n').count() + 1;
            UsageError(format!("{shown}, line {line}: {}", error.message())).into()
        })
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let path = path().context("neither XDG_CONFIG_HOME nor HOME names a directory")?;
        // Where the file is a link, what it leads to is replaced.
        let path = path.canonicalize().unwrap_or(path);
        let shown = path.display();
        let cannot = || format!("cannot write {shown}");
        let text = toml::to_string(self)?;
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).with_context(cannot)?;
        }
        let partial = path.with_extension(format!("{}.partial", std::process::id()));
        let created = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial);
        let mut file = created.with_context(cannot)?;
        file.write_all(text.as_bytes()).with_context(cannot)?;
        file.sync_all().with_context(cannot)?;
        fs::rename(&partial, &path).with_context(cannot)
    }

    /// The context of this name.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<&NamedServer> {
        self.contexts.get(name).ok_or_else(|| {
            let text = format!("there is no context '{name}'; see `trefoil context ls`");
            NotFound(text).into()
        })
    }

    /// Selects a context, or the one that was selected before. Returns its name.
    pub(crate) fn select(&mut self, name: &str) -> anyhow::Result<&str> {
        let name = match name {
            PREVIOUS => self.previous.clone(),
            name => Some(name.to_owned()),
        };
        let Some(name) = name else {
            bail!(NotFound("no context was selected before".to_owned()));
        };
        self.find(&name)?;
        if self.selected.as_ref() != Some(&name) {
            self.previous = self.selected.replace(name);
        }
        Ok(self.selected.as_deref().unwrap_or_default())
    }

    /// Removes a context.
    pub(crate) fn remove(&mut self, name: &str) -> anyhow::Result<()> {
        self.find(name)?;
        self.contexts.remove(name);
        for place in [&mut self.selected, &mut self.previous] {
            place.take_if(|selected| selected == name);
        }
        Ok(())
    }
}

/// Where the file is, if the user has a place for settings.
pub(crate) fn path() -> Option<PathBuf> {
    let directory = |name| {
        let directory = PathBuf::from(std::env::var_os(name)?);
        // A relative one is to be ignored.
        directory.is_absolute().then_some(directory)
    };
    let settings = directory("XDG_CONFIG_HOME");
    let settings = settings.or_else(|| Some(directory("HOME")?.join(".config")))?;
    Some(settings.join("trefoil/contexts.toml"))
}

/// The token in a file, without the end of its line.
pub(crate) fn read_token(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("cannot read the token file {shown}"))?;
    if file.metadata()?.permissions().mode() & EVERYBODY != 0 {
        eprintln!("warning: everybody may use the token file {shown}: run `chmod 600 {shown}`");
    }
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read the token file {shown}"))?;
    check_token(&text).map_err(|wrong| UsageError(format!("the token file {shown} {wrong}")).into())
}

/// The one word that a text is.
pub(crate) fn check_token(text: &str) -> Result<String, &'static str> {
    let token = text.trim();
    match token {
        "" => Err("is empty"),
        token if token.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Err("holds more than one word")
        }
        token => Ok(token.to_owned()),
    }
}
