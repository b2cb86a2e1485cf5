//! The settings of TLS, which all listeners share.

use std::path::PathBuf;

use trefoil_server::Tls;

use super::SettingLayers;
use crate::exit::UsageError;

/// Where the certificate is; `None` if connections are not encrypted.
pub(super) fn config(layers: &SettingLayers) -> anyhow::Result<Option<Tls>> {
    let path = |name| match layers.is_given(name) {
        true => layers.parse(name, |text| Ok(Some(PathBuf::from(text)))),
        false => Ok(None),
    };
    match (path("tls-cert")?, path("tls-key")?) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(Tls { certificate, key })),
        _ => {
            Err(UsageError("tls-cert and tls-key go together: give both or none".to_owned()).into())
        }
    }
}
