//! The server under measurement, and the requests that it understands.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use trefoil::Token;

use super::client::get;
use crate::running::{Running, free_address};

/// A server that runs on data of its own.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) running: Running,
}

impl Server {
    pub(crate) fn start(name: &'static str, program: &Path, directory: &Path) -> Result<Self> {
        let address = free_address()?;
        let mut running = Running::trefoil(program, directory, address, &[])?;
        running.wait_until(|| get(address, "/health").is_ok())?;
        Ok(Self {
            name,
            address,
            running,
        })
    }
}

/// A whole request to the RPC endpoint of a server.
pub(crate) fn post(address: SocketAddr, body: &str) -> Vec<u8> {
    post_as(Token::development().reveal(), address, body)
}

/// The same with another token.
pub(crate) fn post_as(token: &str, address: SocketAddr, body: &str) -> Vec<u8> {
    format!(
        "POST /rpc HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
