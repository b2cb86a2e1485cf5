//! What a server says about itself, as far as it says it: older ones lack a method, and some are for
//! the administrator only.

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use trefoil::{Timestamp, Token};

use super::{HttpClient, ServerError};

/// Whose token it is.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CurrentNamespace {
    pub(crate) namespace: String,
    #[serde(rename = "admin")]
    pub(crate) is_admin: bool,
}

/// Counts and times of a namespace.
#[derive(Debug, Clone, serde::Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamespaceInfo {
    pub(crate) namespace: String,
    pub(crate) description: String,
    pub(crate) created_at: String,
    pub(crate) message_count: u64,
    pub(crate) stream_count: u64,
    pub(crate) last_activity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refuses_writes: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Health {
    #[serde(default)]
    refusing_writes: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct NamedSetting {
    name: String,
    value: Option<String>,
}

/// Whether the server can do its work.
#[derive(Debug, Deserialize)]
struct Readiness {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ReportedVersion {
    version: String,
}

impl HttpClient {
    /// The version of the server. It needs no token.
    pub(crate) fn version(&self) -> anyhow::Result<String> {
        let text = self.text("/version")?;
        let reported: ReportedVersion =
            serde_json::from_str(&text).context("this is no server of Trefoil")?;
        Ok(reported.version)
    }

    /// Why the server is not ready; nothing if it is.
    pub(crate) fn not_ready(&self) -> anyhow::Result<Option<String>> {
        let readiness: Readiness = serde_json::from_str(&self.text_of_any_status("/ready")?)
            .context("the server's answer is not what was expected")?;
        Ok(readiness.reason)
    }

    /// The namespaces that refuse writes, of those that the token may see.
    pub(crate) fn refusing_writes(&self) -> anyhow::Result<Vec<String>> {
        let health: Health = self.call(&("sys.health",))?;
        Ok(health.refusing_writes)
    }

    /// Whose token it is. A server that is older than the question is not asked: most tokens say it
    /// themselves.
    pub(crate) fn current(&self) -> anyhow::Result<Option<CurrentNamespace>> {
        if let Some(current) = self.call_if_known("ns.current")? {
            return Ok(Some(current));
        }
        let named = Token::parse(self.token()).ok();
        let named = named.and_then(|token| token.namespace().map(str::to_owned));
        Ok(named.map(|namespace| CurrentNamespace {
            is_admin: namespace == trefoil::DEFAULT_NAMESPACE,
            namespace,
        }))
    }

    /// Counts and times of a namespace.
    pub(crate) fn namespace_info(&self, id: &str) -> anyhow::Result<NamespaceInfo> {
        self.call(&("ns.info", id))
    }

    /// A setting of the server, for the administrator.
    pub(crate) fn setting(&self, name: &str) -> anyhow::Result<Option<String>> {
        let settings: Option<Vec<NamedSetting>> = self.call_if_known("sys.settings")?;
        let mut settings = settings.unwrap_or_default().into_iter();
        let found = settings.find(|setting| setting.name == name);
        Ok(found.and_then(|setting| setting.value))
    }

    /// The time by the server's clock, to a second.
    pub(crate) fn time(&self) -> anyhow::Result<Option<Timestamp>> {
        let date = self.date("/health")?;
        Ok(date.as_deref().and_then(parse_date))
    }

    /// Calls a method without arguments; nothing if there is no such method or the token may not.
    fn call_if_known<T: DeserializeOwned>(&self, method: &str) -> anyhow::Result<Option<T>> {
        match self.call(&(method,)) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => match error.downcast_ref::<ServerError>() {
                Some(refused) if refused.code == "METHOD_NOT_FOUND" || refused.status == 403 => {
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// `Mon, 16 Nov 2026 07:35:11 GMT`, as HTTP writes times.
fn parse_date(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split(' ').collect();
    let [_, day, month, year, time, "GMT"] = words.as_slice() else {
        return None;
    };
    let month = 1 + MONTHS.iter().position(|known| known == month)?;
    Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_http_are_read() {
        let expected = Timestamp::parse("2026-11-06T07:35:11Z");
        assert_eq!(parse_date("Fri, 06 Nov 2026 07:35:11 GMT"), expected);
        for text in ["", "06 Nov 2026", "Fri, 06 Foo 2026 07:35:11 GMT"] {
            assert_eq!(parse_date(text), None);
        }
    }
}
