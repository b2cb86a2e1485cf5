//! Words that make no sense: each request gets one reply, whatever it says, and the server lives.

use super::{Client, request};
use crate::harness::TestServer;

/// Commands that the server itself carries out, and a few on state.
const COMMANDS: &[&str] = &[
    "ACL CAT",
    "ACL",
    "AUTH",
    "CLIENT GETNAME",
    "CLIENT INFO",
    "CLIENT KILL ID",
    "CLIENT KILL USER",
    "CLIENT LIST",
    "CLIENT NO-EVICT",
    "CLIENT SETINFO",
    "CLIENT SETNAME",
    "CLIENT",
    "COMMAND DOCS",
    "COMMAND GETKEYS",
    "COMMAND INFO",
    "COMMAND LIST",
    "CONFIG GET",
    "CONFIG RESETSTAT",
    "CONFIG SET",
    "DISCARD",
    "ECHO",
    "EVENT.APPEND",
    "EVENT.CATEGORY",
    "EVENT.HEAD",
    "EVENT.LAST",
    "EVENT.QUERY",
    "EVENT.READ",
    "EVENT.REQUIRE",
    "EVENT.VERSION",
    "EXEC",
    "HELLO 2",
    "INFO",
    "MULTI",
    "PING",
    "ROLE",
    "SELECT",
    "SET",
    "HSET",
    "HGETALL",
    "SLOWLOG GET",
    "SLOWLOG LEN",
    "TREFOIL.COMMITID",
    "TREFOIL.STRICT",
    "UNWATCH",
    "WAIT",
    "WAITAOF",
    "WATCH",
];

const WORDS: &[&str] = &[
    "",
    "-",
    "0",
    "1",
    "-1",
    "7",
    "9223372036854775807",
    "9223372036854775808",
    "x",
    "account-1",
    "account",
    "T",
    "{}",
    "[",
    "\u{e9}",
    "\r\n",
    "*",
    "$",
    "%s",
    "FROM",
    "COUNT",
    "REV",
    "TYPE",
    "TAG",
    "OR",
    "AFTER",
    "VERSION",
    "NOMATCH",
    "EXPECT",
    "ID",
    "META",
    "GROUP",
    "STRICT",
    "IFEQ",
    "HIFNE",
    "NX",
    "HXX",
    "ON",
    "OFF",
    "LIB-NAME",
    "FILTERBY",
    "PATTERN",
    "SETNAME",
    "all",
    "7c9e6679-7425-40de-944b-e07fc1f90ae7",
];

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

#[test]
fn every_request_gets_one_reply() {
    let server = TestServer::test_mode();
    let mut client = Client::connect(&server);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..300 {
        let mut bytes = Vec::new();
        let n = 1 + random.below(40);
        for _ in 0..n {
            let mut words: Vec<&str> = COMMANDS[random.below(COMMANDS.len())].split(' ').collect();
            for _ in 0..random.below(7) {
                words.push(WORDS[random.below(WORDS.len())]);
            }
            bytes.extend(request(&words));
        }
        let mark = format!("round {round}");
        bytes.extend(request(&["DISCARD"]));
        bytes.extend(request(&["ECHO", &mark]));
        client.write(&bytes);
        for _ in 0..=n {
            client.reply();
        }
        assert_eq!(client.reply().to_string(), format!("\"{mark}\""));
    }
    assert_eq!(Client::connect(&server).say("PING"), "+PONG");
}
