//! The sockets the server listens on.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use trefoil::{Error, Result};

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 1024;

/// Binds every address. A machine that does not have one of several is fine; a port that is taken
/// is not.
pub(crate) async fn bind_all(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>> {
    match bind_if_free(addresses).await? {
        Ok(listeners) => Ok(listeners),
        Err(taken) => Err(taken),
    }
}

/// The same, but the inner error tells that a port is taken.
pub(crate) async fn bind_if_free(addresses: &[SocketAddr]) -> Result<Result<Vec<TcpListener>>> {
    let mut listeners = Vec::new();
    let mut missing = None;
    let has_ipv4 = addresses.iter().any(SocketAddr::is_ipv4);
    for address in addresses {
        let failure = |error| Error::io(format!("listen on {address}"), error);
        match listen(*address, has_ipv4) {
            Ok(listener) => listeners.push(listener),
            Err(error) if is_missing(&error) => {
                tracing::warn!(%address, %error, "cannot listen on this address");
                missing = Some(failure(&error));
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(Err(failure(&error))),
            Err(error) => return Err(failure(&error)),
        }
    }
    match missing {
        Some(error) if listeners.is_empty() => Err(error),
        None if listeners.is_empty() => Err(Error::invalid("no address to listen on was given")),
        _ => Ok(Ok(listeners)),
    }
}

/// Listens on an address. `::` takes connections over IPv4 too, unless others are there for them: both
/// could not have the same port.
fn listen(address: SocketAddr, has_ipv4: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() && has_ipv4 {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Returns whether the machine lacks the address or its whole family.
fn is_missing(error: &std::io::Error) -> bool {
    const NO_SUCH_FAMILY: i32 = 97;
    error.kind() == ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(NO_SUCH_FAMILY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_of_another_machine_is_skipped_but_a_taken_port_is_not() {
        let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let elsewhere: SocketAddr = "192.0.2.1:0".parse().unwrap();
        let bound = bind_all(&[elsewhere, here]).await.unwrap();
        assert_eq!(bound.len(), 1);
        let taken = bound[0].local_addr().unwrap();
        let error = bind_all(&[here, taken]).await.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("listen on {taken}: ")),
            "{error}"
        );
        assert!(bind_all(&[elsewhere]).await.is_err());
        assert!(bind_all(&[]).await.is_err());
    }

    #[tokio::test]
    async fn every_interface_of_both_families_can_have_one_port() {
        let any = |port| [format!("0.0.0.0:{port}"), format!("[::]:{port}")];
        let free = bind_all(&["[::]:0".parse().unwrap()]).await.unwrap();
        let port = free[0].local_addr().unwrap().port();
        // Alone it takes both families.
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .unwrap();
        drop(free);
        let both = any(port).map(|address| address.parse().unwrap());
        assert_eq!(bind_all(&both).await.unwrap().len(), 2);
    }
}
