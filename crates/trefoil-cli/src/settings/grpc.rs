//! The settings of the gRPC listener.

use std::net::SocketAddr;

use anyhow::Context as _;
use trefoil_server::{CONNECTION_THREADS_MAX, GrpcConfig, Tls};

use super::{SettingLayers, parse};
use crate::exit::UsageError;

/// How gRPC is served beside HTTP on `listen`; `None` if it is off. A port or an address that
/// somebody gave must be free.
pub(super) fn config(
    layers: &SettingLayers,
    listen: &[SocketAddr],
) -> anyhow::Result<Option<GrpcConfig>> {
    let tls = tls(layers)?;
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
        tls,
        threads: layers.parse("grpc-threads", |text| {
            parse::count_within(text, CONNECTION_THREADS_MAX)
        })?,
        ..GrpcConfig::default()
    }))
}

fn tls(layers: &SettingLayers) -> anyhow::Result<Option<Tls>> {
    let path = |name| {
        layers.is_given(name).then_some(())?;
        layers.parse(name, |text| Ok(text.to_owned())).ok()
    };
    let read = |path: &str| std::fs::read(path).with_context(|| format!("cannot read {path}"));
    match (path("tls-cert"), path("tls-key")) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(Tls {
            certificate: read(&certificate)?,
            key: read(&key)?,
        })),
        _ => {
            Err(UsageError("tls-cert and tls-key go together: give both or none".to_owned()).into())
        }
    }
}
