//! What HTTP requests are told apart by. No label has more than a few values: names of namespaces and
//! streams are not among them.

use crate::console;

/// What stands for every file of the console.
pub(crate) const CONSOLE_ENDPOINT: &str = "/";

/// What stands for every path that is no endpoint.
pub(crate) const OTHER_ENDPOINT: &str = "other";

pub(crate) const ENDPOINTS: [&str; 13] = [
    "/rpc",
    "/dcb/read",
    "/dcb/append",
    "/subscribe",
    "/events",
    "/import",
    "/export",
    "/backup",
    "/health",
    "/ready",
    "/version",
    "/metrics",
    "/openapi.json",
];

/// What requests are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestLabels {
    pub(crate) endpoint: &'static str,
    /// The method of `/rpc`; empty for other endpoints.
    pub(crate) method: &'static str,
    pub(crate) status: u16,
}

impl RequestLabels {
    /// Returns what the log calls such requests.
    pub(crate) fn name(&self) -> &'static str {
        match self.method {
            "" => self.endpoint,
            method => method,
        }
    }

    /// The labels of a request that has no answer yet.
    pub(crate) fn of_path(path: &str) -> Self {
        let known = ENDPOINTS.into_iter().find(|endpoint| *endpoint == path);
        let known = known.or_else(|| console::has(path).then_some(CONSOLE_ENDPOINT));
        Self {
            endpoint: known.unwrap_or(OTHER_ENDPOINT),
            method: "",
            status: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_paths_share_one_label() {
        assert_eq!(RequestLabels::of_path("/rpc").endpoint, "/rpc");
        assert_eq!(RequestLabels::of_path("/rpc/x").endpoint, OTHER_ENDPOINT);
        assert_eq!(RequestLabels::of_path("/secret").endpoint, OTHER_ENDPOINT);
        for path in ["/", "/console/app.js", "/console/secret", "/console.json"] {
            assert_eq!(RequestLabels::of_path(path).endpoint, CONSOLE_ENDPOINT);
        }
    }
}
