//! The tokens of a namespace, as its entry in the registry keeps them: never themselves, only hashes.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use trefoil_core::limits::TOKEN_NAME_BYTES_MAX;
use trefoil_core::{Error, Permission, Result, Scope, Scopes, Timestamp, Token};

/// The name of the token that a namespace is created with.
pub const MAIN_TOKEN: &str = "main";

/// The name of the token that administers the server.
pub const SERVER_TOKEN: &str = "server";

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEntry {
    /// Its name, which no other token of the namespace has.
    pub name: String,
    /// What it permits.
    pub permission: Permission,
    /// When it was made.
    pub created: Timestamp,
    /// From when on it opens nothing.
    pub expires: Option<Timestamp>,
    /// When it was used last, to the hour if the server was started since.
    pub last_used: Option<Timestamp>,
    /// From when on the one that it has replaced opens nothing, if that still counts.
    pub previous_expires: Option<Timestamp>,
    /// Whether it administers the server.
    pub is_server: bool,
}

/// A token that is to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Its name: ASCII letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it permits.
    pub permission: Permission,
    /// From when on it opens nothing.
    pub expires: Option<Timestamp>,
    /// The token; a random one if there is none.
    pub token: Option<Token>,
}

impl NewToken {
    /// Returns a token of this name that permits this, for ever.
    pub fn new(name: impl Into<String>, permission: Permission) -> Self {
        Self {
            name: name.into(),
            permission,
            expires: None,
            token: None,
        }
    }

    pub(super) fn validate(&self, now: Timestamp) -> Result<()> {
        let name = &self.name;
        if name.is_empty() {
            return Err(Error::invalid("a token needs a name"));
        }
        if name.len() > TOKEN_NAME_BYTES_MAX {
            let limit = TOKEN_NAME_BYTES_MAX;
            return Err(Error::over_limit(
                "length of a token's name",
                name.len(),
                limit,
            ));
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.bytes().all(is_allowed) {
            return Err(Error::invalid(format!(
                "the name of a token {name:?} may hold only ASCII letters, digits, '-', '_' and '.'"
            )));
        }
        if self.expires.is_some_and(|expires| expires <= now) {
            return Err(Error::invalid("a token must expire in the future"));
        }
        self.permission.validate()
    }
}

/// The SHA-256 of a whole token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of no token, with which an unknown token is compared.
    pub(super) const NOBODY: Self = Self([0; 32]);

    pub(super) fn of(token: &Token) -> Self {
        Self(Sha256::digest(token.reveal().as_bytes()).into())
    }

    /// Compares without telling by its duration where the difference lies.
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut hash = [0; 32];
        let decoded = hex::decode_to_slice(text, &mut hash);
        decoded.map_err(|error| error.to_string())?;
        Ok(Self(hash))
    }

    fn to_text(self) -> String {
        hex::encode(self.0)
    }
}

/// A token as the registry knows it.
#[derive(Debug, Clone)]
pub(super) struct TokenRecord {
    pub(super) entry: TokenEntry,
    pub(super) hash: TokenHash,
    /// The one that it has replaced, until [`TokenEntry::previous_expires`].
    pub(super) previous: Option<TokenHash>,
}

impl TokenRecord {
    /// Returns a token that is made now.
    pub(super) fn new(new: NewToken, token: &Token, now: Timestamp) -> Self {
        Self {
            entry: TokenEntry {
                name: new.name,
                permission: new.permission,
                created: now,
                expires: new.expires,
                last_used: None,
                previous_expires: None,
                is_server: false,
            },
            hash: TokenHash::of(token),
            previous: None,
        }
    }

    /// Returns the token that a namespace is created with.
    pub(super) fn main(token: &Token, now: Timestamp) -> Self {
        Self::new(NewToken::new(MAIN_TOKEN, Permission::ALL), token, now)
    }

    /// Returns the only token of a namespace whose entry is of the first format.
    pub(super) fn of_first_format(hash: &str, created: Timestamp) -> Result<Self, String> {
        let hash = TokenHash::parse(hash).map_err(|error| format!("tokenSha256: {error}"))?;
        let mut record = Self::main(&Token::development(), created);
        record.hash = hash;
        Ok(record)
    }

    /// Returns the hashes that open the namespace.
    pub(super) fn hashes(&self) -> impl Iterator<Item = TokenHash> {
        [Some(self.hash), self.previous].into_iter().flatten()
    }
}

/// A token in an entry of the registry.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredToken {
    name: String,
    sha256: String,
    /// All of them, also those that come with a later version, if this is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    streams: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<String>,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_used: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<StoredPrevious>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    server: bool,
}

/// The token that another one has replaced, and until when it counts.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPrevious {
    sha256: String,
    expires: String,
}

impl From<&TokenRecord> for StoredToken {
    fn from(record: &TokenRecord) -> Self {
        let entry = &record.entry;
        let Permission {
            scopes,
            streams,
            keys,
        } = &entry.permission;
        let names = || scopes.iter().map(|scope| scope.name().to_owned()).collect();
        let previous = record.previous.zip(entry.previous_expires);
        Self {
            name: entry.name.clone(),
            sha256: record.hash.to_text(),
            scopes: (*scopes != Scopes::ALL).then(names),
            streams: streams.clone(),
            keys: keys.clone(),
            created: entry.created.to_string(),
            expires: entry.expires.map(|time| time.to_string()),
            last_used: entry.last_used.map(|time| time.to_string()),
            previous: previous.map(|(hash, expires)| StoredPrevious {
                sha256: hash.to_text(),
                expires: expires.to_string(),
            }),
            server: entry.is_server,
        }
    }
}

impl StoredToken {
    /// Returns the token, or what is wrong with it.
    pub(super) fn read(self) -> Result<TokenRecord, String> {
        let wrong = |what: String| format!("token '{}': {what}", self.name);
        let hash =
            |text: &str| TokenHash::parse(text).map_err(|error| wrong(format!("sha256: {error}")));
        let time = |text: &str| {
            let time = Timestamp::parse(text);
            time.ok_or_else(|| wrong(format!("no time: {text:?}")))
        };
        let optional = |text: &Option<String>| text.as_deref().map(time).transpose();
        let scopes = match &self.scopes {
            None => Scopes::ALL,
            Some(names) => names
                .iter()
                .map(|name| Scope::parse(name))
                .collect::<Result<Scopes>>()
                .map_err(|error| wrong(error.to_string()))?,
        };
        let previous = self.previous.as_ref();
        let previous_expires = previous
            .map(|previous| time(&previous.expires))
            .transpose()?;
        let previous = previous
            .map(|previous| hash(&previous.sha256))
            .transpose()?;
        Ok(TokenRecord {
            hash: hash(&self.sha256)?,
            previous,
            entry: TokenEntry {
                created: time(&self.created)?,
                expires: optional(&self.expires)?,
                last_used: optional(&self.last_used)?,
                previous_expires,
                is_server: self.server,
                permission: Permission {
                    scopes,
                    streams: self.streams,
                    keys: self.keys,
                },
                name: self.name,
            },
        })
    }
}
