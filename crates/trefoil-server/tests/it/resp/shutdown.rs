//! The end of a server: what has arrived is answered, and nobody keeps it waiting.

use std::time::{Duration, Instant};

use super::{Client, request};
use crate::harness::TestServer;

#[test]
fn idle_clients_are_hung_up_on_and_requests_under_way_are_answered() {
    let mut server = TestServer::test_mode();
    let mut idle = Client::connect(&server);
    assert_eq!(idle.say("PING"), "+PONG");
    let mut queueing = Client::connect(&server);
    assert_eq!(queueing.say("MULTI"), "+OK");
    let mut half = Client::connect(&server);
    half.write(b"*2\r\n$4\r\nECHO\r\n$100\r\n");
    let mut busy = Client::connect(&server);
    let mut bytes = request(&["SET", "k", "1"]);
    bytes.extend(request(&["DEBUG", "SLEEP", "0.5"]));
    bytes.extend(request(&["INCR", "k"]));
    busy.write(&bytes);
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    server.begin_shutdown();
    for client in [&mut idle, &mut queueing, &mut half] {
        client.check_closed();
    }
    let replies: Vec<String> = (0..3).map(|_| busy.reply().to_string()).collect();
    assert_eq!(replies, ["+OK", "+OK", "2"]);
    busy.check_closed();
    server.wait();
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn whoever_does_not_finish_is_cut_off() {
    let mut server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    client.send(&["DEBUG", "SLEEP", "60"]);
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    server.begin_shutdown();
    server.wait();
    client.check_closed();
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}
