//! What web pages may do: which of their requests are refused, and whose answers a browser lets
//! them read.
//!
//! Every page can make a browser send requests to a server on this machine, also under a name that
//! leads here only since a moment ago (DNS rebinding). Where a token keeps strangers out, that is
//! harmless, and it is the browser that must be told which pages may read the answers. Where the
//! token is known to everybody, the server looks at the names that browsers cannot be made to
//! forge: `Host`, which name was asked for, and `Origin`, whose page asks.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode, Uri};

use crate::error::{Failure, Result};
use crate::response::{self, HttpAnswer};

/// Which web pages may use the server.
#[derive(Debug, Clone, Default)]
pub struct Web {
    /// Whether requests must name this machine, and pages from elsewhere are refused: for a server
    /// whose token is no secret.
    pub is_local: bool,
    /// Names besides this machine's own by which requests may address the server; `*` is any. If
    /// there are none and the server is not local, names are not looked at.
    pub hosts: Vec<String>,
    /// Origins whose pages may read answers; `*` is any.
    pub origins: Vec<String>,
}

const ANY: &str = "*";

/// What pages may send: see `docs/http.md`.
const PREFLIGHT: [(HeaderName, HeaderValue); 3] = [
    (
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST"),
    ),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("authorization, content-type, last-event-id"),
    ),
    (
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    ),
];

impl Web {
    /// Refuses a request that names another host than it may, or that a page from elsewhere sends.
    /// `listen` is where the server listens.
    pub(crate) fn admit(&self, parts: &Parts, listen: &[SocketAddr]) -> Result<()> {
        if self.is_local || !self.hosts.is_empty() {
            self.check_host(parts, listen)?;
        }
        self.check_origin(parts, listen)
    }

    /// Every host that the request names must be allowed. What names none is no browser's.
    fn check_host(&self, parts: &Parts, listen: &[SocketAddr]) -> Result<()> {
        let headers = parts.headers.get_all(header::HOST).into_iter();
        let named = headers.map(|value| value.to_str().unwrap_or_default());
        let mut named = named.chain(parts.uri.authority().map(Authority::as_str));
        let is_allowed = |named: &str| {
            let host = named.parse::<Authority>();
            host.is_ok_and(|host| {
                is_this_machine(host.host(), listen) || has(&self.hosts, host.host())
            })
        };
        match named.find(|named| !is_allowed(named)) {
            None => Ok(()),
            Some(named) => Err(Failure::new(
                StatusCode::MISDIRECTED_REQUEST,
                "HOST_NOT_ALLOWED",
                format!("{named:?} is not a name of this server: --allow-host allows it"),
            )),
        }
    }

    /// Refuses the page of another machine, if pages need no secret to use this server.
    pub(crate) fn check_origin(&self, parts: &Parts, listen: &[SocketAddr]) -> Result<()> {
        if !self.is_local || !parts.headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        match self.allowed_origin(parts, listen) {
            Some(_) => Ok(()),
            None => Err(Failure::new(
                StatusCode::FORBIDDEN,
                "ORIGIN_NOT_ALLOWED",
                "pages of this origin may not use this server: --allow-origin allows it",
            )),
        }
    }

    /// The origin of the page that sends the request, if that page may read the answer: one that
    /// was named, and where the server is local also those of this machine and of the server's own
    /// name.
    fn allowed_origin<'a>(
        &self,
        parts: &'a Parts,
        listen: &[SocketAddr],
    ) -> Option<&'a HeaderValue> {
        let value = parts.headers.get(header::ORIGIN)?;
        let origin = value.to_str().ok()?;
        if has(&self.origins, origin) {
            return Some(value);
        }
        let uri = origin.parse::<Uri>().ok().filter(|_| self.is_local)?;
        let is_own = uri.authority().map(Authority::as_str) == own_name(&parts.headers);
        (is_own || is_this_machine(uri.host()?, listen)).then_some(value)
    }

    /// The answer to a browser that asks whether a page may send a request. One that may not is
    /// answered like any other method.
    pub(crate) fn preflight(&self, parts: &Parts, listen: &[SocketAddr]) -> Option<HttpAnswer> {
        let headers = &parts.headers;
        if parts.method != Method::OPTIONS
            || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        self.allowed_origin(parts, listen)?;
        let mut answer = response::text(StatusCode::NO_CONTENT, "");
        answer.headers_mut().extend(PREFLIGHT);
        Some(answer)
    }

    /// Lets a browser hand the answer to the page that asked for it, if that page may read it.
    pub(crate) fn permit(&self, parts: &Parts, listen: &[SocketAddr], answer: &mut HttpAnswer) {
        let Some(origin) = self.allowed_origin(parts, listen) else {
            return;
        };
        let headers = answer.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// The name by which a request addresses the server.
fn own_name(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

fn has(allowed: &[String], name: &str) -> bool {
    let is_it = |allowed: &String| allowed == ANY || allowed.eq_ignore_ascii_case(name);
    allowed.iter().any(is_it)
}

/// Whether a host is this machine by its name, or by an address that it has here for certain.
fn is_this_machine(host: &str, listen: &[SocketAddr]) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let Ok(address) = address.parse::<IpAddr>().map(|ip| ip.to_canonical()) else {
        return false;
    };
    let is_bound = |bound: &SocketAddr| bound.ip() == address && !address.is_unspecified();
    address.is_loopback() || listen.iter().any(is_bound)
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn request(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/rpc");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn listen() -> Vec<SocketAddr> {
        ["127.0.0.1:80", "192.0.2.7:80", "0.0.0.0:80"]
            .map(|address| address.parse().unwrap())
            .into()
    }

    fn status(web: &Web, headers: &[(&str, &str)]) -> u16 {
        let admitted = web.admit(&request(headers), &listen());
        admitted.map_or_else(|failure| failure.status.as_u16(), |()| 200)
    }

    #[test]
    fn a_local_server_is_addressed_by_a_name_of_this_machine() {
        let web = Web {
            is_local: true,
            hosts: vec!["dev.example".into()],
            origins: Vec::new(),
        };
        for host in [
            "localhost",
            "LOCALHOST:9",
            "127.0.0.1:8080",
            "127.8.9.1",
            "[::1]:8080",
            "[::ffff:127.0.0.1]",
            "192.0.2.7",
            "Dev.Example:1",
        ] {
            assert_eq!(status(&web, &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0:8080",
            "192.0.2.8",
            "evil@",
            "",
        ] {
            assert_eq!(status(&web, &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&web, &[]), 200);
        let both = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status(&web, &both), 421);
        let mut absolute = request(&[("host", "localhost")]);
        absolute.uri = "http://evil.example/rpc".parse().unwrap();
        assert!(web.admit(&absolute, &listen()).is_err());
        assert_eq!(status(&Web::default(), &[("host", "evil.example")]), 200);
    }

    #[test]
    fn pages_of_elsewhere_may_not_use_a_local_server_nor_read_from_another() {
        let local = Web {
            is_local: true,
            hosts: vec!["dev.example".into()],
            origins: vec!["https://app.example".into()],
        };
        let elsewhere = Web {
            is_local: false,
            hosts: Vec::new(),
            ..local.clone()
        };
        // The origin; whether a local server takes its requests; whether its page may read answers
        // of a local server, and of another.
        for (origin, is_taken, is_read, is_read_elsewhere) in [
            ("https://app.example", true, true, true),
            ("http://localhost:3000", true, true, false),
            ("http://127.0.0.1:8080", true, true, false),
            ("http://dev.example:8080", true, true, false),
            ("http://dev.example", false, false, false),
            ("http://app.example", false, false, false),
            ("https://evil.example", false, false, false),
            ("http://localhost.evil.example", false, false, false),
            ("null", false, false, false),
            ("", false, false, false),
        ] {
            let headers = [("host", "dev.example:8080"), ("origin", origin)];
            let expected = if is_taken { 200 } else { 403 };
            assert_eq!(status(&local, &headers), expected, "{origin}");
            assert_eq!(status(&elsewhere, &headers), 200, "{origin}");
            let parts = request(&headers);
            let read = |web: &Web| web.allowed_origin(&parts, &listen()).is_some();
            assert_eq!(read(&local), is_read, "{origin}");
            assert_eq!(read(&elsewhere), is_read_elsewhere, "{origin}");
        }
        let any = Web {
            origins: vec!["*".into()],
            ..elsewhere
        };
        let parts = request(&[("origin", "https://any.example")]);
        assert!(any.allowed_origin(&parts, &listen()).is_some());
    }
}
