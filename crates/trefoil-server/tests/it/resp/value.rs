//! Replies read back from bytes, independently of how they were written.

/// A reply of either version of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Double(String),
    /// `$-1`, `*-1` or `_`, as it was written.
    Nil(&'static str),
    Array(Vec<Value>),
    Set(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Verbatim(Vec<u8>),
}

/// Reads a reply from the beginning of `bytes`, and how long it is; `None` if it is not all there.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Value, usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let line = String::from_utf8(bytes[1..end].to_vec()).unwrap();
    let mut at = end + 2;
    let length = || line.parse::<usize>().unwrap();
    let value = match bytes[0] {
        b'+' => Value::Simple(line),
        b'-' => Value::Error(line),
        b':' => Value::Integer(line.parse().unwrap()),
        b',' => Value::Double(line),
        b'_' => Value::Nil("_"),
        b'$' if line == "-1" => Value::Nil("$-1"),
        b'*' if line == "-1" => Value::Nil("*-1"),
        marker @ (b'$' | b'=') => {
            let text = bytes.get(at..at + length())?.to_vec();
            assert_eq!(bytes.get(at + text.len()..at + text.len() + 2)?, b"\r\n");
            at += text.len() + 2;
            match marker {
                b'$' => Value::Bulk(text),
                _ => Value::Verbatim(text),
            }
        }
        marker @ (b'*' | b'~') => {
            let items = decode_all(bytes, &mut at, length())?;
            match marker {
                b'*' => Value::Array(items),
                _ => Value::Set(items),
            }
        }
        b'%' => {
            let items = decode_all(bytes, &mut at, length() * 2)?;
            let pairs = items.chunks(2);
            Value::Map(
                pairs
                    .map(|pair| (pair[0].clone(), pair[1].clone()))
                    .collect(),
            )
        }
        other => panic!("a reply begins with {:?}", char::from(other)),
    };
    Some((value, at))
}

fn decode_all(bytes: &[u8], at: &mut usize, count: usize) -> Option<Vec<Value>> {
    let next = |_| {
        let (value, length) = decode(bytes.get(*at..)?)?;
        *at += length;
        Some(value)
    };
    (0..count).map(next).collect()
}

/// As case files show it.
impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |items: &[Value]| {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            items.join(" ")
        };
        match self {
            Self::Simple(text) => write!(formatter, "+{text}"),
            Self::Error(text) => write!(formatter, "-{text}"),
            Self::Integer(n) => write!(formatter, "{n}"),
            Self::Bulk(bytes) => write!(formatter, "\"{}\"", bytes.escape_ascii()),
            Self::Double(text) => write!(formatter, ",{text}"),
            Self::Nil(nil) => formatter.write_str(nil),
            Self::Array(items) => write!(formatter, "[{}]", list(items)),
            Self::Set(items) => write!(formatter, "~[{}]", list(items)),
            Self::Map(pairs) => {
                let pair = |(key, value): &(Value, Value)| format!("{key}={value}");
                let pairs: Vec<String> = pairs.iter().map(pair).collect();
                write!(formatter, "{{{}}}", pairs.join(" "))
            }
            Self::Verbatim(bytes) => write!(formatter, "={}", bytes.escape_ascii()),
        }
    }
}
