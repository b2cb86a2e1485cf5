//! The settings of the RESP listener: `resp` says in one what `resp-listen` and `resp-port` say in
//! two.

use std::net::SocketAddr;

use trefoil_server::{CONNECTION_THREADS_MAX, RespConfig};

use super::{SettingLayers, parse};
use crate::exit::UsageError;

/// How RESP is served beside HTTP on `listen`; `None` if it is off. A port or an address that
/// somebody gave must be free.
pub(super) fn config(
    layers: &SettingLayers,
    listen: &[SocketAddr],
) -> anyhow::Result<Option<RespConfig>> {
    let has_port = layers.is_given("resp-port");
    let has_addresses = layers.is_given("resp-listen");
    let is_short = layers.is_given("resp");
    if is_short && (has_port || has_addresses) {
        let text = "resp says what resp-listen and resp-port say: give it or them";
        return Err(UsageError(text.to_owned()).into());
    }
    let Some(port) = layers.parse("resp-port", parse::port_or_off)? else {
        return Ok(None);
    };
    let with_port = |port: u16| {
        let address = |address: &SocketAddr| SocketAddr::new(address.ip(), port);
        listen.iter().map(address).collect()
    };
    let listen = if has_addresses {
        layers.parse("resp-listen", |text| parse::addresses(text, port))?
    } else if is_short {
        let parsed = layers.parse("resp", |text| match parse::port_or_off(text) {
            Ok(None) => Ok(None),
            Ok(Some(port)) => Ok(Some(with_port(port))),
            Err(_) => parse::addresses(text, port).map(Some),
        })?;
        match parsed {
            Some(listen) => listen,
            None => return Ok(None),
        }
    } else {
        with_port(port)
    };
    Ok(Some(RespConfig {
        listen,
        required: has_addresses || has_port || is_short,
        threads: layers.parse("resp-threads", |text| {
            parse::count_within(text, CONNECTION_THREADS_MAX)
        })?,
        ..RespConfig::default()
    }))
}
