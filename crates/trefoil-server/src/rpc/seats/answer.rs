//! What a reply becomes: JSON with names in camel case, or an error with its status.

use bytes::Bytes;
use hyper::StatusCode;
use trefoil::Reply;

use crate::error::{Failure, Result};
use crate::response::{self, HttpAnswer};
use crate::rpc::state;

/// What refusals begin with, and the status of each.
const REFUSALS: [(&str, StatusCode); 11] = [
    ("SEATTAKEN", StatusCode::CONFLICT),
    ("NOSEATS", StatusCode::CONFLICT),
    ("LIMIT", StatusCode::CONFLICT),
    ("NOTOWNER", StatusCode::CONFLICT),
    ("SEATSTATE", StatusCode::CONFLICT),
    ("BOOKINGEXISTS", StatusCode::CONFLICT),
    ("EXPIRED", StatusCode::CONFLICT),
    ("WRONGTYPE", StatusCode::CONFLICT),
    ("NOSECTION", StatusCode::NOT_FOUND),
    ("NOBOOKING", StatusCode::NOT_FOUND),
    ("BADSEAT", StatusCode::BAD_REQUEST),
];

/// The answer to a request, or why it was refused.
pub(super) fn of_reply(mut reply: Reply) -> Result<HttpAnswer> {
    if let Reply::Error(text) = &reply {
        return Err(refusal(text));
    }
    rename(&mut reply);
    let mut out = Vec::with_capacity(256);
    state::put_reply(&mut out, &reply);
    Ok(response::json(out))
}

fn refusal(text: &str) -> Failure {
    let (word, message) = text.split_once(' ').unwrap_or((text, text));
    let known = REFUSALS.iter().find(|(code, _)| *code == word);
    match known {
        Some((code, status)) => Failure::new(*status, code, message),
        None if word == "ERR" => Failure::invalid(message),
        None => Failure::invalid(text),
    }
}

/// Gives the entries of maps the names that JSON has elsewhere.
fn rename(reply: &mut Reply) {
    let Reply::Map(pairs) = reply else { return };
    for (name, value) in pairs {
        if let Reply::Bulk(bytes) = name {
            *bytes = camel_case(bytes);
        }
        rename(value);
    }
}

fn camel_case(name: &[u8]) -> Bytes {
    let mut is_begin = false;
    let mut renamed = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'_' => is_begin = true,
            byte if std::mem::take(&mut is_begin) => renamed.push(byte.to_ascii_uppercase()),
            byte => renamed.push(*byte),
        }
    }
    renamed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_word_and_its_text() {
        for (text, status, code, message) in [
            (
                "SEATTAKEN seat 1-5 is sold",
                409,
                "SEATTAKEN",
                "seat 1-5 is sold",
            ),
            (
                "NOBOOKING there is no booking b",
                404,
                "NOBOOKING",
                "there is no booking b",
            ),
            ("BADSEAT x", 400, "BADSEAT", "x"),
            ("ERR syntax error", 400, "INVALID_REQUEST", "syntax error"),
            ("OTHER text", 400, "INVALID_REQUEST", "OTHER text"),
        ] {
            let failure = refusal(text);
            assert_eq!(
                (failure.status.as_u16(), failure.code, &*failure.message),
                (status, code, message)
            );
        }
    }

    #[test]
    fn names_are_in_camel_case() {
        assert_eq!(camel_case(b"seats_per_row"), "seatsPerRow");
        assert_eq!(camel_case(b"booking"), "booking");
    }
}
