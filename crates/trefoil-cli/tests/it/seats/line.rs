//! A client of the seats that speaks RESP or HTTP: the same request, and an answer of the same form.

use std::io;

use serde_json::{Map, Value as Json, json};

use crate::harness::{ADMIN, Client, Resp, Server, Value};

/// A request that was refused: the first word, and the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) text: String,
}

/// What a request led to.
pub(super) type Outcome = Result<Json, Refusal>;

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    resp: u16,
    http: u16,
}

impl Ports {
    pub(super) fn of(server: &Server) -> Self {
        Self {
            resp: server.resp_port,
            http: server.port,
        }
    }
}

/// How to speak to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Resp,
    Http,
}

impl Protocol {
    pub(super) const BOTH: [Self; 2] = [Self::Resp, Self::Http];
}

/// A connection over one of the protocols.
pub(super) enum Line {
    Resp(Box<Resp>),
    Http(Box<Client>),
}

/// The fields of a request that stand at the begin of a command, in this order.
const PLACES: [&str; 4] = ["event", "section", "booking", "buyer"];

/// The fields of a request that are words of a command.
const WORDS: [(&str, &str); 13] = [
    ("rows", "ROWS"),
    ("seatsPerRow", "SEATS"),
    ("price", "PRICE"),
    ("maxPerBooking", "MAXBOOKING"),
    ("maxPerBuyer", "MAXBUYER"),
    ("seats", "SEATS"),
    ("best", "BEST"),
    ("hold", "HOLD"),
    ("holdMs", "HOLDMS"),
    ("max", "MAX"),
    ("row", "ROW"),
    ("range", "RANGE"),
    ("prefix", "PREFIX"),
];

impl Line {
    pub(super) fn open(ports: Ports, protocol: Protocol) -> io::Result<Self> {
        match protocol {
            Protocol::Resp => {
                let mut line = Resp::connect(ports.resp)?;
                line.try_call(&["HELLO", "3", "AUTH", "default", ADMIN])?;
                Ok(Self::Resp(Box::new(line)))
            }
            Protocol::Http => Ok(Self::Http(Box::new(Client::new(ports.http, Some(ADMIN))))),
        }
    }

    /// A line to a server that is there.
    pub(super) fn to(server: &Server, protocol: Protocol) -> Self {
        Self::open(Ports::of(server), protocol).unwrap()
    }

    /// Calls a method such as `seats.reserve`, which a RESP client knows as a command.
    pub(super) fn try_call(&mut self, method: &str, arguments: &Json) -> io::Result<Outcome> {
        match self {
            Self::Resp(line) => Ok(of_reply(&line.try_call(&command(method, arguments))?)),
            Self::Http(client) => {
                let answer = client.try_rpc(&json!([method, arguments]))?;
                let body = answer.json();
                if answer.status == 200 {
                    return Ok(Ok(body));
                }
                let part = |name: &str| body["error"][name].as_str().unwrap().to_owned();
                Ok(Err(Refusal {
                    code: part("code"),
                    text: part("message"),
                }))
            }
        }
    }

    #[track_caller]
    pub(super) fn call(&mut self, method: &str, arguments: &Json) -> Outcome {
        self.try_call(method, arguments).unwrap()
    }

    /// Calls what must succeed.
    #[track_caller]
    pub(super) fn ok(&mut self, method: &str, arguments: &Json) -> Json {
        let outcome = self.call(method, arguments);
        outcome.unwrap_or_else(|refusal| panic!("{method} {arguments}: {refusal:?}"))
    }
}

/// The words of a command for the fields of a request.
fn command(method: &str, arguments: &Json) -> Vec<String> {
    let text = |value: &Json| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut words = vec![method.to_ascii_uppercase()];
    words.extend(
        PLACES
            .iter()
            .filter_map(|name| arguments.get(name))
            .map(text),
    );
    for (name, word) in WORDS {
        let Some(value) = arguments.get(name) else {
            continue;
        };
        words.push(word.to_owned());
        match value.as_array() {
            Some(values) => words.extend(values.iter().map(text)),
            None => words.push(text(value)),
        }
    }
    words
}

fn of_reply(reply: &Value) -> Outcome {
    match reply {
        Value::Error(error) => {
            let (code, text) = error.split_once(' ').unwrap();
            Err(Refusal {
                // What no other word tells is a wrong request.
                code: code.replace("ERR", "INVALID_REQUEST"),
                text: text.to_owned(),
            })
        }
        reply => Ok(to_json(reply)),
    }
}

/// As HTTP answers it.
fn to_json(reply: &Value) -> Json {
    let string = |value: &Value| String::from_utf8(value.bytes().to_vec()).unwrap();
    match reply {
        Value::Null => Json::Null,
        Value::Integer(integer) => json!(integer),
        Value::Array(elements) => elements.iter().map(to_json).collect(),
        Value::Map(pairs) => {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, value)| (camel_case(&string(name)), to_json(value)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
        other => json!(string(other)),
    }
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |name, part| {
        let (initial, rest) = part.split_at(1);
        name + &initial.to_ascii_uppercase() + rest
    })
}
