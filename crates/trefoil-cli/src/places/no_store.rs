//! What a program without object storage says when it is asked for it.

use std::sync::Arc;

use trefoil::Clock;
use trefoil::home::Home;

use super::StoragePlace;
use crate::backups::BackupStore;

/// The URL of a storage, of which this program knows none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StorageUrl {}

/// Says how to get a program that can do it.
pub(crate) fn parse_url(_text: &str) -> Result<StorageUrl, String> {
    Err(
        "this program was built without object storage; build one that has it with `cargo build \
         --release --features object-storage`"
            .to_owned(),
    )
}

impl std::fmt::Display for StorageUrl {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

pub(super) fn open(place: &StoragePlace, _clock: &Clock) -> anyhow::Result<Arc<dyn Home>> {
    match place.url {}
}

pub(super) fn objects(place: &StoragePlace) -> anyhow::Result<Box<dyn BackupStore>> {
    match place.url {}
}
