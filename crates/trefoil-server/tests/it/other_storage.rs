//! A server whose namespaces are kept by a home and a storage of another crate.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use trefoil::{Namespaces, NamespacesOptions, Token};
use trefoil_sample_storage::VecHome;
use trefoil_server::Config;

use crate::client::rpc;
use crate::harness::TestServer;

/// Sends commands of RESP and returns the replies to all of them.
pub(crate) fn resp(address: SocketAddr, commands: &[&[&str]]) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    for command in commands {
        let mut bytes = format!("*{}\r\n", command.len());
        for word in *command {
            bytes += &format!("${}\r\n{word}\r\n", word.len());
        }
        socket.write_all(bytes.as_bytes()).unwrap();
    }
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut replies = String::new();
    socket.read_to_string(&mut replies).unwrap();
    replies
}

#[test]
fn clients_are_served_from_a_storage_of_another_crate() {
    let home = Arc::new(VecHome::default());
    for round in 1..4 {
        // The next server finds what the last one has left.
        let options = NamespacesOptions::default();
        let namespaces = Namespaces::open_in(Arc::clone(&home) as _, options).unwrap();
        let mut server = TestServer::on(Config::default(), namespaces);
        let body = r#"["stream.write","a-1",{"type":"T","data":{"n":1}}]"#;
        let written = rpc(server.address, body);
        assert_eq!(written.status, 200, "{}", written.text());
        let read = rpc(server.address, r#"["stream.get","a-1"]"#);
        let events: Vec<serde_json::Value> = serde_json::from_slice(&read.body).unwrap();
        assert_eq!(events.len(), round);
        let token = Token::development();
        let commands: [&[&str]; 3] = [&["AUTH", token.reveal()], &["INCR", "n"], &["GET", "n"]];
        let replies = resp(server.resp, &commands);
        assert_eq!(replies, format!("+OK\r\n:{round}\r\n$1\r\n{round}\r\n"));
        server.begin_shutdown();
        server.wait();
    }
}
