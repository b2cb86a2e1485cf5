//! Everything that is stored: every key with its type, its value and when it expires.

use std::collections::BTreeMap;

use crate::harness::{Resp, Value};

/// Of each key: its type, its value in an order of its own, and when it and its fields expire.
pub(crate) type Dump = BTreeMap<Value, [Value; 4]>;

/// Reads everything.
pub(crate) fn dump(client: &mut Resp) -> Dump {
    let keys = client.line("KEYS *");
    let keys = keys.elements().unwrap().iter();
    keys.map(|key| (key.clone(), entry(client, key.bytes())))
        .collect()
}

fn entry(client: &mut Resp, key: &[u8]) -> [Value; 4] {
    let mut ask = |words: &[&[u8]]| client.call(&[&words[..1], &[key], &words[1..]].concat());
    let kind = ask(&[b"TYPE"]);
    let expires = ask(&[b"PEXPIRETIME"]);
    let mut fields_expire = Value::NilArray;
    let value = match kind.bytes() {
        b"string" => ask(&[b"GET"]),
        b"list" => ask(&[b"LRANGE", b"0", b"-1"]),
        b"zset" => ask(&[b"ZRANGE", b"0", b"-1", b"WITHSCORES"]),
        b"set" => in_order(&ask(&[b"SMEMBERS"]), 1),
        b"hash" => {
            let fields = in_order(&ask(&[b"HKEYS"]), 1);
            let n_fields = fields.elements().unwrap().len().to_string();
            let mut words: Vec<&[u8]> = vec![b"HPEXPIRETIME", b"FIELDS", n_fields.as_bytes()];
            words.extend(fields.elements().unwrap().iter().map(Value::bytes));
            fields_expire = ask(&words);
            in_order(&ask(&[b"HGETALL"]), 2)
        }
        other => panic!("{} is a {}", key.escape_ascii(), other.escape_ascii()),
    };
    [kind, value, expires, fields_expire]
}

/// The elements of a list, taken in groups of `size`, in order.
fn in_order(list: &Value, size: usize) -> Value {
    let mut parts: Vec<_> = list.elements().unwrap().chunks(size).collect();
    parts.sort();
    Value::Array(parts.concat())
}
