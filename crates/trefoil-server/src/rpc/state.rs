//! State in requests and answers: commands as arrays of words, conditions on keys, replies as JSON.
//!
//! A word is a string, a number, or `{"$base64": …}` for bytes that are not text. A reply is a
//! string, a number, null, an array, an object for a map, or `{"error": …}`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::value::RawValue;
use trefoil::{Call, Commands, Guard, Reply, Wanted};

use crate::error::{Failure, Result};
use crate::json::{put_number, put_string, text};
use crate::limits::WORDS_PER_COMMAND_MAX;
use crate::strict;

/// `["HINCRBY", "key", "field", 1]`
pub(super) fn command(commands: &Commands, value: &RawValue, what: &str) -> Result<Call> {
    let words = strict::list(Some(value), what, WORDS_PER_COMMAND_MAX)?;
    let words = words.into_iter().enumerate();
    let words: Vec<Bytes> = words
        .map(|(index, value)| word(value, &format!("{what}[{index}]")))
        .collect::<Result<_>>()?;
    call(commands, words, what)
}

/// The call that words make.
pub(super) fn call(commands: &Commands, words: Vec<Bytes>, what: &str) -> Result<Call> {
    let name = words.first().map(|name| String::from_utf8_lossy(name));
    let name = name.unwrap_or_default().into_owned();
    match commands.call(words) {
        Some(Ok(call)) => Ok(call),
        Some(Err(trefoil::CommandError::Refused(text))) => {
            Err(Failure::invalid(format!("{what}: {text}")))
        }
        Some(Err(trefoil::CommandError::Engine(error))) => Err(error.into()),
        None => {
            let shown: String = name.chars().take(NAME_SHOWN_MAX).collect();
            Err(Failure::invalid(format!(
                "{what}: there is no command {shown:?} on the state"
            )))
        }
    }
}

/// The longest unknown name that an error repeats.
const NAME_SHOWN_MAX: usize = 100;

/// What must be true of a key, or of a field of the hash under it.
pub(super) struct GuardParts<'a> {
    pub(super) key: &'a RawValue,
    pub(super) field: Option<&'a RawValue>,
    pub(super) equals: Option<&'a RawValue>,
    pub(super) differs: Option<&'a RawValue>,
    pub(super) exists: Option<&'a RawValue>,
}

/// `{"key", "field"?, "equals" | "differs": word}` or `{"key", "field"?, "exists": true | false}`
pub(super) fn guard(parts: &GuardParts<'_>, what: &str) -> Result<Guard> {
    let part = |name: &str| format!("{what}.{name}");
    let wanted = match (parts.equals, parts.differs, parts.exists) {
        (Some(value), None, None) => Wanted::Equal(word(value, &part("equals"))?),
        (None, Some(value), None) => Wanted::NotEqual(word(value, &part("differs"))?),
        (None, None, Some(value)) => match strict::flag(Some(value), &part("exists"))? {
            true => Wanted::Present,
            false => Wanted::Absent,
        },
        _ => {
            let text = format!("{what} must have one of equals, differs and exists");
            return Err(Failure::invalid(text));
        }
    };
    let field = parts.field.map(|field| word(field, &part("field")));
    Ok(Guard {
        key: word(parts.key, &part("key"))?,
        field: field.transpose()?,
        wanted,
    })
}

/// A word of a command.
pub(crate) fn word(value: &RawValue, what: &str) -> Result<Bytes> {
    if let Some(text) = text(value) {
        return Ok(Bytes::from(text.into_owned()));
    }
    let json = value.get();
    if json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Ok(Bytes::copy_from_slice(json.as_bytes()));
    }
    let wrong = || {
        Failure::invalid(format!(
            "{what} must be a string, a number or {{\"$base64\": …}}"
        ))
    };
    let [encoded] = strict::object(value, what, ["$base64"]).map_err(|_| wrong())?;
    let encoded = encoded.and_then(text).ok_or_else(wrong)?;
    let decoded = STANDARD.decode(encoded.as_bytes()).map_err(|_| wrong())?;
    Ok(decoded.into())
}

/// Appends replies as a JSON array.
pub(super) fn put_replies<'a>(out: &mut Vec<u8>, replies: impl Iterator<Item = &'a Reply>) {
    out.push(b'[');
    for (index, reply) in replies.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_reply(out, reply);
    }
    out.push(b']');
}

/// Appends a reply as JSON.
pub(super) fn put_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Simple(word) => put_string(out, word),
        Reply::Text(text) => put_string(out, text),
        Reply::Integer(value) => put_number(out, *value),
        Reply::Bulk(bytes) => put_bytes(out, bytes),
        Reply::Double(value) if value.is_finite() => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        Reply::Double(value) => put_string(out, if *value > 0.0 { "inf" } else { "-inf" }),
        Reply::Nil | Reply::NilArray => out.extend_from_slice(b"null"),
        Reply::Array(replies) | Reply::Set(replies) => put_replies(out, replies.iter()),
        Reply::Pairs(pairs) => put_pairs(out, pairs),
        Reply::Map(pairs) => put_map(out, pairs),
        Reply::Error(text) => {
            out.extend_from_slice(b"{\"error\":");
            put_string(out, text);
            out.push(b'}');
        }
    }
}

/// Appends bytes: as text, if they are some.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => put_string(out, text),
        Err(_) => {
            out.extend_from_slice(b"{\"$base64\":");
            put_string(out, &STANDARD.encode(bytes));
            out.push(b'}');
        }
    }
}

fn put_pairs(out: &mut Vec<u8>, pairs: &[(Reply, Reply)]) {
    out.push(b'[');
    for (index, (first, second)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_replies(out, [first, second].into_iter());
    }
    out.push(b']');
}

/// An object, or an array of pairs if a key is not text.
fn put_map(out: &mut Vec<u8>, pairs: &[(Reply, Reply)]) {
    let key = |reply: &Reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        Reply::Simple(word) => Some((*word).to_owned()),
        _ => None,
    };
    let keys: Option<Vec<String>> = pairs.iter().map(|(name, _)| key(name)).collect();
    let Some(keys) = keys else {
        return put_pairs(out, pairs);
    };
    out.push(b'{');
    for (index, (name, (_, value))) in keys.iter().zip(pairs).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_string(out, name);
        out.push(b':');
        put_reply(out, value);
    }
    out.push(b'}');
}
