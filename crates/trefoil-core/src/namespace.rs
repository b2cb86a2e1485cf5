//! Namespace ids and the tokens that open them.
//!
//! A token that is made here is `ns_` + base64url(namespace id) + `_` + 64 hexadecimal digits. Any
//! other text that does not begin with `ns_` may be one, too, such as an API key that clients of a
//! UmaDB have: it does not name its namespace, which remembers its hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::limits::{NAMESPACE_ID_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::{DEFAULT_NAMESPACE, Error, Result};

/// The name of a namespace, safe to be the name of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceId(String);

impl NamespaceId {
    /// Takes ASCII letters, digits, `-`, `_` and `.`, the first a letter or digit.
    pub fn new(id: &str) -> Result<Self> {
        if id.is_empty() {
            return Err(Error::invalid("namespace must be a non-empty string"));
        }
        if id.len() > NAMESPACE_ID_BYTES_MAX {
            return Err(Error::over_limit(
                "namespace length",
                id.len(),
                NAMESPACE_ID_BYTES_MAX,
            ));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !id.as_bytes()[0].is_ascii_alphanumeric() || !id.bytes().all(allowed) {
            return Err(Error::invalid(format!(
                "namespace {id:?} may hold only ASCII letters, digits, '-', '_' and '.', and must \
                 begin with a letter or digit"
            )));
        }
        Ok(Self(id.to_owned()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the namespace whose token administers the others.
    pub fn is_default(&self) -> bool {
        self.0 == DEFAULT_NAMESPACE
    }
}

impl std::fmt::Display for NamespaceId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A secret that opens one namespace. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
    /// `None` for a text that was brought along.
    namespace: Option<String>,
}

/// Why a text is not a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid token format: {0}")]
pub struct TokenError(String);

/// What every token that is made here begins with.
const PREFIX: &str = "ns_";

/// The hexadecimal digits at the end of every token that is made here.
const SECRET_DIGITS: usize = 64;

impl Token {
    /// Returns the token of `namespace` with this secret.
    pub fn from_secret(namespace: &NamespaceId, secret: &[u8; 32]) -> Self {
        let encoded = URL_SAFE_NO_PAD.encode(namespace.as_str());
        let text = format!("ns_{encoded}_{}", hex::encode(secret));
        Self {
            text,
            namespace: Some(namespace.as_str().to_owned()),
        }
    }

    /// Returns the well-known token of the default namespace in development: its secret is all
    /// zeros.
    pub fn development() -> Self {
        Self::from_secret(&NamespaceId(DEFAULT_NAMESPACE.to_owned()), &[0; 32])
    }

    /// Reads a token of either kind.
    pub fn read(text: &str) -> Result<Self, TokenError> {
        if text.starts_with(PREFIX) {
            return Self::parse(text);
        }
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX {
            let length = text.len();
            return Err(TokenError(format!(
                "length is {length}, it must lie between 1 and {TOKEN_BYTES_MAX}"
            )));
        }
        Ok(Self {
            text: text.to_owned(),
            namespace: None,
        })
    }

    /// Reads a token that was made here. The encoded namespace may itself contain underscores, so
    /// the secret is taken from the end.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let error = |reason: String| Err(TokenError(reason));
        let Some(rest) = text.strip_prefix(PREFIX) else {
            return error("missing 'ns_' prefix".into());
        };
        let Some((encoded, secret)) = rest.rsplit_once('_') else {
            return error("expected 2 parts after prefix, got 1".into());
        };
        if secret.len() != SECRET_DIGITS {
            let got = secret.len();
            return error(format!("random part must be 64 hex characters, got {got}"));
        }
        if let Err(reason) = hex::decode(secret) {
            return error(format!("random part is not valid hexadecimal: {reason}"));
        }
        let namespace = URL_SAFE_NO_PAD
            .decode(encoded)
            .map_err(|reason| reason.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|reason| reason.to_string()));
        match namespace {
            Err(reason) => error(format!("namespace part is not valid base64url: {reason}")),
            Ok(namespace) if namespace.is_empty() => error("namespace is empty".into()),
            Ok(namespace) => Ok(Self {
                text: text.to_owned(),
                namespace: Some(namespace),
            }),
        }
    }

    /// Returns the whole token. Never write it to a log.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns the namespace the token names; not necessarily one that exists or may exist. `None`
    /// for a token that was brought along.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Token")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_leave_the_data_directory_are_refused() {
        for id in [
            "", ".", "..", "../x", "a/b", "a\\b", "_meta", "-a", "a\0", "é", " a",
        ] {
            assert!(NamespaceId::new(id).is_err(), "{id:?}");
        }
        for id in [
            "default",
            "t_0_lx.ab12",
            "A",
            "0",
            "test-write-001-1736-abc",
        ] {
            assert!(NamespaceId::new(id).is_ok(), "{id:?}");
        }
        assert!(NamespaceId::new(&"a".repeat(129)).is_err());
    }

    #[test]
    fn the_development_token_is_the_well_known_one() {
        let zeros = "0".repeat(64);
        assert_eq!(
            Token::development().reveal(),
            format!("ns_ZGVmYXVsdA_{zeros}")
        );
    }

    #[test]
    fn a_token_whose_base64_has_an_underscore_parses() {
        let text = format!("ns_YWI_{}", "a".repeat(64));
        assert_eq!(Token::parse(&text).unwrap().namespace(), Some("ab"));
        let text = format!("ns_bm_DqQ_{}", "A".repeat(64));
        assert_eq!(Token::parse(&text).unwrap().namespace(), Some("noé"));
    }

    #[test]
    fn what_is_no_token_says_why() {
        let hex = "0".repeat(64);
        let cases = [
            (
                "nope".to_owned(),
                "invalid token format: missing 'ns_' prefix",
            ),
            (
                "ns_abc".to_owned(),
                "invalid token format: expected 2 parts after prefix, got 1",
            ),
            (
                "ns_abc_12".to_owned(),
                "invalid token format: random part must be 64 hex characters, got 2",
            ),
            (
                format!("ns__{hex}"),
                "invalid token format: namespace is empty",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(Token::parse(&text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_text_that_was_brought_along_names_no_namespace() {
        for text in ["secret", "a key with spaces", "NS_x", &"k".repeat(1024)] {
            let token = Token::read(text).unwrap();
            assert_eq!((token.reveal(), token.namespace()), (text, None));
            assert!(!format!("{token:?}").contains(text));
        }
        for text in ["", "ns_", "ns_my-own-key-0123456789", &"k".repeat(1025)] {
            assert!(Token::read(text).is_err(), "{text:?}");
        }
        let made = Token::development();
        assert_eq!(Token::read(made.reveal()).unwrap(), made);
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        assert!(!format!("{:?}", Token::development()).contains("0000"));
    }
}
