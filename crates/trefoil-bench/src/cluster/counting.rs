//! Counts requests on their way to an S3 service, as the service bills them.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result};

const BUFFER_BYTES: usize = 64 * 1024;

/// How many requests there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Requests {
    /// PUT, POST, and GET that lists: one price.
    pub(super) writing: u64,
    /// All other GET, and HEAD.
    pub(super) reading: u64,
    /// DELETE costs nothing.
    pub(super) deleting: u64,
}

impl Requests {
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            writing: self.writing - before.writing,
            reading: self.reading - before.reading,
            deleting: self.deleting - before.deleting,
        }
    }
}

/// Passes everything on to the service. Its threads end with the process.
pub(super) struct Counting {
    pub(super) address: SocketAddr,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    writing: AtomicU64,
    reading: AtomicU64,
    deleting: AtomicU64,
}

impl Counting {
    /// Listens, and connects to the service for each connection.
    pub(super) fn before(service: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let counters = Arc::new(Counters::default());
        let own = Arc::clone(&counters);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A service that is away is an error at the other end.
                let _ = pass(client, service, &own);
            }
        });
        Ok(Self { address, counters })
    }

    pub(super) fn counts(&self) -> Requests {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Requests {
            writing: read(&self.counters.writing),
            reading: read(&self.counters.reading),
            deleting: read(&self.counters.deleting),
        }
    }
}

fn pass(client: TcpStream, service: SocketAddr, counters: &Arc<Counters>) -> Result<()> {
    let service = TcpStream::connect(service).context("cannot connect to the service")?;
    client.set_nodelay(true)?;
    service.set_nodelay(true)?;
    let (client_too, service_too) = (client.try_clone()?, service.try_clone()?);
    let counters = Arc::clone(counters);
    thread::spawn(move || {
        let mut heads = Heads::default();
        copy(client, service, |bytes| heads.take(bytes, &counters));
    });
    thread::spawn(move || copy(service_too, client_too, |_| ()));
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream, mut look: impl FnMut(&[u8])) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(length) = from.read(&mut buffer) {
        look(&buffer[..length]);
        if length == 0 || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Finds the heads of requests in the bytes of a connection.
#[derive(Default)]
struct Heads {
    head: Vec<u8>,
    body_left: usize,
}

impl Heads {
    fn take(&mut self, mut bytes: &[u8], counters: &Counters) {
        while !bytes.is_empty() {
            let skipped = self.body_left.min(bytes.len());
            self.body_left -= skipped;
            bytes = &bytes[skipped..];
            let Some((first, rest)) = bytes.split_first() else {
                return;
            };
            self.head.push(*first);
            bytes = rest;
            if self.head.ends_with(b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.head).into_owned();
                self.head.clear();
                self.body_left = body_length(&head);
                counters.count(&head);
            }
        }
    }
}

impl Counters {
    fn count(&self, head: &str) {
        let mut words = head.split(' ');
        let (method, path) = (words.next(), words.next().unwrap_or_default());
        let counter = match method {
            Some("GET") if path.contains("list-type=") => &self.writing,
            Some("GET" | "HEAD") => &self.reading,
            Some("DELETE") => &self.deleting,
            _ => &self.writing,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn body_length(head: &str) -> usize {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_whatever_their_bodies_say() {
        let text = b"PUT /a HTTP/1.1\r\nContent-Length: 22\r\n\r\nGET /x HTTP/1.1\r\n\r\n...\
                     GET /b HTTP/1.1\r\nhost: x\r\n\r\n\
                     GET /?list-type=2&prefix=a HTTP/1.1\r\n\r\n\
                     DELETE /a HTTP/1.1\r\n\r\n";
        for size in [1, 7, text.len()] {
            let (mut heads, counters) = (Heads::default(), Counters::default());
            for part in text.chunks(size) {
                heads.take(part, &counters);
            }
            let counts = [&counters.writing, &counters.reading, &counters.deleting];
            let counts = counts.map(|counter| counter.load(Ordering::Relaxed));
            assert_eq!(counts, [2, 1, 1], "in parts of {size}");
        }
    }
}
