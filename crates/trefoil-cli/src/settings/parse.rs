//! Texts of settings, understood. An error says what would be right.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use tracing::Level;
use trefoil::{DEFAULT_NAMESPACE, Token};
use trefoil_server::CLIENT_MEMORY_MIN;

use crate::logging::Format;

type Parsed<T> = Result<T, String>;

pub(super) fn port(text: &str) -> Parsed<u16> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a port, 0 to 65535"))
}

/// A port, or `None` for `off`.
pub(super) fn port_or_off(text: &str) -> Parsed<Option<u16>> {
    if text == "off" {
        return Ok(None);
    }
    let wrong = |_| format!("{text:?} is neither a port, 0 to 65535, nor off");
    text.parse().map(Some).map_err(wrong)
}

/// The texts that Go takes for a boolean.
pub(super) fn boolean(text: &str) -> Parsed<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

/// Addresses separated by commas, each with a port of its own or with `port`.
pub(super) fn addresses(text: &str, port: u16) -> Parsed<Vec<SocketAddr>> {
    let address = |part: &str| {
        let bare = part.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = IpAddr::from_str(bare) {
            return Ok(SocketAddr::new(ip, port));
        }
        let wrong = || format!("{part:?} is not an IP address, with or without a port");
        SocketAddr::from_str(part).map_err(|_| wrong())
    };
    text.split(',').map(str::trim).map(address).collect()
}

/// A name or an IP address, with a port or without; `None` if it is empty.
pub(super) fn address(text: &str) -> Parsed<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    let is_ip = IpAddr::from_str(text).is_ok();
    let host = match text.rsplit_once(':') {
        Some((host, port)) if !is_ip && port.parse::<u16>().is_ok() => host,
        _ => text,
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_right = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_ip || !host.is_empty() && !host.contains([':', '/', '@', ' ', ',', '[', ']']),
    };
    match is_right {
        // An address of IPv6 is told as others need it.
        true if is_ip && text.contains(':') => Ok(Some(format!("[{text}]"))),
        true => Ok(Some(text.to_owned())),
        false => Err(format!(
            "{text:?} is not a name or an IP address, with or without a port"
        )),
    }
}

/// Names of hosts separated by commas, or `*`.
pub(super) fn hosts(text: &str) -> Parsed<Vec<String>> {
    let host = |part: &str| match part.contains(['/', '@', ' ']) || has_port(part) {
        true => Err(format!(
            "{part:?} is not the name of a host, without a port"
        )),
        false => Ok(part.to_owned()),
    };
    parts(text).map(host).collect()
}

fn has_port(host: &str) -> bool {
    let is_address = host.starts_with('[') && host.ends_with(']');
    !is_address && host.contains(':')
}

/// Origins of web pages separated by commas, `null` or `*`.
pub(super) fn origins(text: &str) -> Parsed<Vec<String>> {
    let origin = |part: &str| {
        let rest = part.split_once("://").map_or("", |(_, rest)| rest);
        let is_origin = !rest.is_empty() && !rest.contains(['/', '@', ' ']);
        match is_origin || matches!(part, "*" | "null") {
            true => Ok(part.to_owned()),
            false => Err(format!(
                "{part:?} is not an origin, like https://app.example:8443"
            )),
        }
    };
    parts(text).map(origin).collect()
}

/// The parts of a list; an empty one has none.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

pub(super) fn count(text: &str) -> Parsed<usize> {
    match count_or_none(text)? {
        0 => Err("it must be at least 1".to_owned()),
        count => Ok(count),
    }
}

/// A count from 1 to a limit.
pub(super) fn count_within(text: &str, limit: usize) -> Parsed<usize> {
    match count(text)? {
        count if count > limit => Err(format!("it must be at most {limit}")),
        count => Ok(count),
    }
}

pub(super) fn count_or_none(text: &str) -> Parsed<usize> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}

/// A number of milliseconds; 0 stands for none.
pub(super) fn millis_or_none(text: &str) -> Parsed<Option<Duration>> {
    let millis: u32 = text
        .parse()
        .map_err(|_| format!("{text:?} is not a number of milliseconds"))?;
    Ok((millis > 0).then(|| Duration::from_millis(millis.into())))
}

/// A number of bytes, with a unit or without.
pub(crate) fn bytes(text: &str) -> Parsed<u64> {
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let shift = match text[digits.len()..].trim() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        unit => return Err(format!("{unit:?} is not a unit: use KiB, MiB or GiB")),
    };
    let number = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift));
    match number {
        Some(0) => Err("it must be at least 1".to_owned()),
        Some(number) => Ok(number),
        None => Err(format!("{text:?} is not a number of bytes, like 64MiB")),
    }
}

/// A number of seconds, minutes, hours or days.
pub(crate) fn duration(text: &str) -> Parsed<Duration> {
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let seconds = match text[digits.len()..].trim() {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        unit => return Err(format!("{unit:?} is not a unit: use s, m, h or d")),
    };
    let number = digits.parse::<u64>().ok();
    match number.and_then(|number| number.checked_mul(seconds)) {
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => Err(format!("{text:?} is not a duration, like 24h")),
    }
}

pub(super) fn bytes_within(text: &str, limit: u64) -> Parsed<u64> {
    match bytes(text)? {
        bytes if bytes > limit => Err(format!("it is {bytes}, the limit is {limit}")),
        bytes => Ok(bytes),
    }
}

/// Memory for clients; `None` if nobody says how much.
pub(super) fn client_memory(text: &str) -> Parsed<Option<usize>> {
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = usize::try_from(bytes(text)?).unwrap_or(usize::MAX);
    match bytes < CLIENT_MEMORY_MIN {
        true => Err(format!("it is {bytes}, the least is {CLIENT_MEMORY_MIN}")),
        false => Ok(Some(bytes)),
    }
}

/// A token of the default namespace or of the server. The errors of tokens do not repeat the secret.
pub(super) fn token(text: &str) -> Parsed<Option<Token>> {
    if text.is_empty() {
        return Ok(None);
    }
    let token = Token::read(text).map_err(|error| error.to_string())?;
    match token.namespace() {
        None | Some(DEFAULT_NAMESPACE) => Ok(Some(token)),
        Some(other) => Err(format!(
            "it is for namespace {other:?}, not {DEFAULT_NAMESPACE:?}"
        )),
    }
}

pub(super) fn level(text: &str) -> Parsed<Level> {
    let wrong = || format!("{text:?} is not one of error, warn, info, debug, trace");
    Level::from_str(text).map_err(|_| wrong())
}

pub(super) fn format(text: &str) -> Parsed<Format> {
    match text {
        "console" => Ok(Format::Console),
        "json" => Ok(Format::Json),
        _ => Err(format!("{text:?} is neither console nor json")),
    }
}

/// What EventoDB's `-db-url` means here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DatabaseUrl {
    Missing,
    Directory(PathBuf),
    Sqlite,
}

pub(super) fn database_url(text: &str) -> Parsed<DatabaseUrl> {
    let (scheme, rest) = text.split_once("://").unwrap_or((text, ""));
    match scheme {
        "" => Ok(DatabaseUrl::Missing),
        "pebble" if !rest.is_empty() => Ok(DatabaseUrl::Directory(rest.into())),
        "pebble" => Err("pebble:// needs a directory".to_owned()),
        "sqlite" => Ok(DatabaseUrl::Sqlite),
        // A URL of PostgreSQL holds a password: it is not repeated.
        "postgres" | "postgresql" => Err(
            "Trefoil keeps its data itself and cannot use PostgreSQL: give --data-dir, and bring \
             the events along with `eventodb export` and `trefoil import`"
                .to_owned(),
        ),
        _ => Err("it is not a URL that begins with pebble:// or sqlite://".to_owned()),
    }
}

pub(super) fn database_type(text: &str) -> Parsed<()> {
    match text {
        "" | "pebble" | "sqlite" => Ok(()),
        other => Err(format!(
            "Trefoil keeps its data itself and cannot use {other:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("1"), Ok(1));
        assert_eq!(bytes("3MiB"), Ok(3 << 20));
        assert_eq!(bytes("64 KiB"), Ok(64 << 10));
        for text in ["", "MiB", "0", "1MB", "-1", "99999999999GiB", "1.5GiB"] {
            assert!(bytes(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn hosts_and_origins_are_told_apart() {
        let owned = |names: &[&str]| Ok(names.iter().map(|name| name.to_string()).collect());
        assert_eq!(hosts(""), owned(&[]));
        assert_eq!(
            hosts("a.example, [::1],*"),
            owned(&["a.example", "[::1]", "*"])
        );
        for wrong in ["http://a.example", "a.example:80", "a/b"] {
            assert!(hosts(wrong).is_err(), "{wrong}");
        }
        let origin = "https://a.example:8443";
        assert_eq!(
            origins(&format!("{origin},null,*")),
            owned(&[origin, "null", "*"])
        );
        for wrong in [
            "a.example",
            "https://",
            "https://a.example/page",
            "https://a.example/",
        ] {
            assert!(origins(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_may_bring_their_port() {
        let expected = ["127.0.0.1:80", "[::1]:80", "[::]:80", "0.0.0.0:9"];
        let parsed = addresses("127.0.0.1, ::1,[::],0.0.0.0:9", 80).unwrap();
        assert_eq!(
            parsed.iter().map(ToString::to_string).collect::<Vec<_>>(),
            expected
        );
        assert!(addresses("localhost", 80).is_err());
        assert!(addresses("", 80).is_err());
    }
}
