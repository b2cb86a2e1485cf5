//! The settings of the gRPC listener.

use std::net::SocketAddr;

use trefoil_server::{CONNECTION_THREADS_MAX, GrpcConfig};

use super::{SettingLayers, parse};

/// How gRPC is served beside HTTP on `listen`; `None` if it is off. A port or an address that
/// somebody gave must be free.
pub(super) fn config(
    layers: &SettingLayers,
    listen: &[SocketAddr],
) -> anyhow::Result<Option<GrpcConfig>> {
    let Some(port) = layers.parse("grpc-port", parse::port_or_off)? else {
        return Ok(None);
    };
    let has_own = layers.is_given("grpc-listen");
    let listen = if has_own {
        layers.parse("grpc-listen", |text| parse::addresses(text, port))?
    } else {
        let address = |address: &SocketAddr| SocketAddr::new(address.ip(), port);
        listen.iter().map(address).collect()
    };
    Ok(Some(GrpcConfig {
        listen,
        required: has_own || layers.is_given("grpc-port"),
        threads: layers.parse("grpc-threads", |text| {
            parse::count_within(text, CONNECTION_THREADS_MAX)
        })?,
        ..GrpcConfig::default()
    }))
}
