//! The layers of settings: which value counts, and where it came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use trefoil_server::ShownSetting;

use super::keys::{Given, Key, SERVE_KEYS};
use super::parse;
use crate::exit::UsageError;
use crate::logging::Format;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SettingSource {
    Flag,
    Variable(String),
    File(PathBuf),
    Default,
}

impl std::fmt::Display for SettingSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag => formatter.write_str("flag"),
            Self::Variable(name) => write!(formatter, "environment {name}"),
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// The value of every setting with its source.
#[derive(Debug)]
pub(crate) struct SettingLayers {
    values: Vec<SettingValue>,
}

#[derive(Debug)]
struct SettingValue {
    name: &'static str,
    text: String,
    source: SettingSource,
    secret: bool,
    /// Whether the command has this setting.
    own: bool,
}

/// A setting as `--print-config` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) source: String,
}

impl SettingLayers {
    /// Puts the layers together for a command that has the settings `is_own`; the others keep their
    /// defaults. `variable` looks up the environment.
    pub(crate) fn new(
        is_own: fn(&Key) -> bool,
        flags: &Given,
        file: Option<&Path>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let from_file = file.map_or(Ok(BTreeMap::new()), read_file)?;
        let value = |key: &Key| {
            let own = is_own(key);
            let (text, source) = if !own {
                ((key.default)(), SettingSource::Default)
            } else if let Some(text) = flags.get(key.name) {
                (text.clone(), SettingSource::Flag)
            } else if let Some((name, text)) = find_variable(key, &variable) {
                (text, SettingSource::Variable(name))
            } else if let (Some(text), Some(path)) = (from_file.get(key.name), file) {
                (text.clone(), SettingSource::File(path.to_owned()))
            } else {
                ((key.default)(), SettingSource::Default)
            };
            SettingValue {
                name: key.name,
                text,
                source,
                secret: key.secret,
                own,
            }
        };
        Ok(Self {
            values: SERVE_KEYS.iter().map(value).collect(),
        })
    }

    fn get(&self, name: &str) -> Option<&SettingValue> {
        self.values.iter().find(|value| value.name == name)
    }

    /// Whether somebody set it.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.source != SettingSource::Default)
    }

    /// Understands one value; an error names the setting and the source.
    pub(crate) fn parse<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> anyhow::Result<T> {
        let value = self
            .get(name)
            .with_context(|| format!("there is no setting {name}"))?;
        parse(&value.text).map_err(|problem| {
            let source = &value.source;
            UsageError(format!("{name} ({source}): {problem}")).into()
        })
    }

    /// How the log is written, which must be known before anything is said.
    pub(crate) fn log_format(&self) -> anyhow::Result<Format> {
        self.parse("log-format", parse::format)
    }

    /// Every setting as the server tells its administrator, without secrets.
    pub(super) fn told(&self) -> Vec<ShownSetting> {
        let tell = |value: &SettingValue| ShownSetting {
            name: value.name.to_owned(),
            value: Some(value.text.clone()).filter(|text| !text.is_empty() && !value.secret),
            source: value.source.to_string(),
            is_secret: value.secret,
        };
        let own = self.values.iter().filter(|value| value.own);
        own.map(tell).collect()
    }

    /// Every setting for people to see, without secrets.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let show = |value: &SettingValue| Shown {
            name: value.name,
            value: match value.text.as_str() {
                "" => "(not set)".to_owned(),
                _ if value.secret => "(hidden)".to_owned(),
                text => text.to_owned(),
            },
            source: value.source.to_string(),
        };
        let own = self.values.iter().filter(|value| value.own);
        own.map(show).collect()
    }
}

/// The variable that sets `key`. An empty variable counts as missing.
fn find_variable(
    key: &Key,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<(String, String)> {
    key.variables().into_iter().find_map(|name| {
        let text = variable(&name).filter(|text| !text.is_empty())?;
        Some((name, text))
    })
}

/// The settings of a file, as text. What is no setting is an error: it may be a misspelt one.
fn read_file(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let table: toml::Table = toml::from_str(&text)
        .map_err(|error| UsageError(format!("{shown} is not valid TOML: {error}")))?;
    let mut values = BTreeMap::new();
    for (name, value) in table {
        if !SERVE_KEYS.iter().any(|key| key.name == name) {
            return Err(UsageError(format!("{shown}: there is no setting {name:?}")).into());
        }
        let Some(text) = text_of(&value) else {
            let kind = value.type_str();
            return Err(UsageError(format!("{shown}: {name} cannot be a {kind}")).into());
        };
        values.insert(name, text);
    }
    Ok(values)
}

/// A value as it would be written on the command line.
fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(boolean) => Some(boolean.to_string()),
        toml::Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(text_of).collect();
            items.map(|items| items.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(
        flags: &[(&'static str, &str)],
        variables: &[(&str, &str)],
        file: &str,
    ) -> BTreeMap<&'static str, (String, String)> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trefoil.toml");
        std::fs::write(&path, file).unwrap();
        let flags: Given = flags
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let layers = SettingLayers::new(|_| true, &flags, Some(&path), variable).unwrap();
        let file = format!("file {}", path.display());
        let plain = |source: String| {
            if source == file {
                "file".to_owned()
            } else {
                source
            }
        };
        let shown = layers.shown().into_iter();
        shown
            .map(|shown| (shown.name, (shown.value, plain(shown.source))))
            .collect()
    }

    #[track_caller]
    fn check(shown: &BTreeMap<&str, (String, String)>, name: &str, value: &str, source: &str) {
        let (actual, from) = &shown[name];
        assert_eq!((actual.as_str(), from.as_str()), (value, source), "{name}");
    }

    #[test]
    fn flag_wins_over_environment_over_file_over_default() {
        let file = "port = 1\ndata-dir = 'f'\nlog-level = 'warn'\nlisten = ['::1', '0.0.0.0']";
        let variables = [
            ("TREFOIL_PORT", "2"),
            ("EVENTODB_PORT", "3"),
            ("EVENTODB_DATA_DIR", "e"),
            ("TREFOIL_LOG_LEVEL", ""),
        ];
        let all = shown(&[("port", "4")], &variables, file);
        check(&all, "port", "4", "flag");
        check(&all, "data-dir", "e", "environment EVENTODB_DATA_DIR");
        check(&all, "log-level", "warn", "file");
        check(&all, "listen", "::1,0.0.0.0", "file");
        check(&all, "log-format", "console", "default");
        check(
            &shown(&[], &variables, file),
            "port",
            "2",
            "environment TREFOIL_PORT",
        );
    }

    #[test]
    fn secrets_are_hidden_wherever_they_come_from() {
        let secret = "ns_ZGVmYXVsdA_0";
        check(&shown(&[], &[], ""), "token", "(not set)", "default");
        check(
            &shown(&[("token", secret)], &[], ""),
            "token",
            "(hidden)",
            "flag",
        );
        let file = format!("token = '{secret}'");
        check(&shown(&[], &[], &file), "token", "(hidden)", "file");
    }

    #[test]
    fn a_file_with_a_mistake_is_refused_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        for (text, expected) in [
            ("prot = 1", "there is no setting \"prot\""),
            ("port = {}", "port cannot be a table"),
            ("port =", "not valid TOML"),
        ] {
            std::fs::write(&path, text).unwrap();
            let layers = SettingLayers::new(|_| true, &Given::default(), Some(&path), |_| None);
            let error = layers.unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("c.toml"),
                "{error}"
            );
        }
    }
}
