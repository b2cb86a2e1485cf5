//! The settings of the listener for other nodes, which servers have that share an object storage.

use trefoil_server::PeersConfig;

use super::{SettingLayers, parse};
use crate::exit::UsageError;

/// How a server listens for the other nodes; `None` if it does not, or if there are none because its
/// storage is not shared.
pub(super) fn config(
    layers: &SettingLayers,
    is_shared: bool,
) -> anyhow::Result<Option<PeersConfig>> {
    let names = ["peer-listen", "peer-port", "peer-address"];
    let port = layers.parse("peer-port", parse::port_or_off)?;
    let listen = layers.parse("peer-listen", |text| {
        parse::addresses(text, port.unwrap_or_default())
    })?;
    let address = layers.parse("peer-address", parse::address)?;
    if !is_shared {
        return match names.into_iter().find(|name| layers.is_given(name)) {
            None => Ok(None),
            Some(name) => Err(UsageError(format!(
                "{name} is for servers that share an object storage: see --storage"
            ))
            .into()),
        };
    }
    Ok(port.map(|_| PeersConfig { listen, address }))
}
