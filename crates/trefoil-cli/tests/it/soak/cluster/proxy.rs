//! The way of one node to the store, which can be cut.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const OPEN: u8 = 0;
const HELD: u8 = 1;
const CUT: u8 = 2;

/// Passes bytes on. Its threads end with the process.
pub(super) struct Proxy {
    pub(super) port: u16,
    way: Arc<Way>,
}

struct Way {
    to: u16,
    state: AtomicU8,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub(super) fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let way = Arc::new(Way {
            to: port,
            state: AtomicU8::new(OPEN),
            sockets: Mutex::default(),
        });
        let port = listener.local_addr().unwrap().port();
        let serving = Arc::clone(&way);
        thread::spawn(move || serve(&listener, &serving));
        Self { port, way }
    }

    /// Nothing gets through. What is sent meanwhile arrives when it is opened, long after others went on.
    pub(super) fn hold(&self) {
        self.way.state.store(HELD, Ordering::SeqCst);
    }

    /// All connections are closed, and none can be made.
    pub(super) fn cut(&self) {
        self.way.state.store(CUT, Ordering::SeqCst);
        for socket in self.way.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn open(&self) {
        self.way.state.store(OPEN, Ordering::SeqCst);
    }
}

impl Way {
    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::SeqCst) == state
    }

    /// Notes both ends, so that they can be cut.
    fn note(&self, sockets: [&TcpStream; 2]) {
        let mut noted = self.sockets.lock().unwrap();
        noted.retain(|socket| socket.peer_addr().is_ok());
        noted.extend(sockets.map(|socket| socket.try_clone().unwrap()));
    }
}

fn serve(listener: &TcpListener, way: &Arc<Way>) {
    for client in listener.incoming() {
        let (Ok(client), false) = (client, way.is(CUT)) else {
            continue;
        };
        let Ok(store) = TcpStream::connect(("127.0.0.1", way.to)) else {
            continue;
        };
        let _ = (client.set_nodelay(true), store.set_nodelay(true));
        way.note([&client, &store]);
        let (from_client, from_store) = (client.try_clone(), store.try_clone());
        let (Ok(from_client), Ok(from_store)) = (from_client, from_store) else {
            continue;
        };
        for (from, to) in [(from_client, store), (from_store, client)] {
            let way = Arc::clone(way);
            thread::spawn(move || pass(&way, from, to));
        }
    }
}

fn pass(way: &Way, mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(n) = from.read(&mut bytes) {
        while way.is(HELD) {
            thread::sleep(Duration::from_millis(10));
        }
        if n == 0 || to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
