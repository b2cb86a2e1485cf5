//! The settings of the continuous archive.

use std::path::{Path, PathBuf};

use super::SettingLayers;
use crate::exit::UsageError;
use crate::places::HomePlace;

/// Where everything is archived.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveSetting {
    pub(crate) place: HomePlace,
    /// `None`: it is not encrypted.
    pub(crate) key_file: Option<PathBuf>,
}

/// Returns where everything is archived; `None` if nothing is.
pub(super) fn setting(
    layers: &SettingLayers,
    test_mode: bool,
) -> anyhow::Result<Option<ArchiveSetting>> {
    let text = layers.parse("archive", |text| Ok(text.to_owned()))?;
    let key_file = layers.parse("archive-key-file", |text| match text {
        "" => Ok(None),
        text => Ok(Some(PathBuf::from(text))),
    })?;
    match (text.as_str(), &key_file) {
        ("", None) => Ok(None),
        ("", Some(_)) => Err(UsageError("archive-key-file needs archive".to_owned()).into()),
        _ if test_mode => {
            let text = "test mode keeps nothing, so there is nothing to archive";
            Err(UsageError(text.to_owned()).into())
        }
        (text, _) => {
            let cache: PathBuf = layers.parse("cache-dir", |text| Ok(PathBuf::from(text)))?;
            Ok(Some(ArchiveSetting {
                place: HomePlace::parse(text, Path::new(&cache))?,
                key_file,
            }))
        }
    }
}
