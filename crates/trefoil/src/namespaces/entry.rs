//! What the registry knows of a namespace, and the form in which a registry file keeps it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use trefoil_core::{Error, NamespaceId, Result, Timestamp, Token};

use super::quota::Quotas;
use super::token::{MAIN_TOKEN, StoredToken, TokenHash, TokenRecord};

/// The version of the registry file's format.
const FORMAT: u32 = 2;

/// The first one: a namespace had one token, `tokenSha256`.
const FIRST_FORMAT: u32 = 1;

/// The largest weight of one namespace.
const CACHE_SHARE_MAX: u32 = 1000;

/// What is known of a namespace without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceEntry {
    /// Its name.
    pub id: NamespaceId,
    /// What people wrote about it.
    pub description: String,
    /// When it was created.
    pub created: Timestamp,
    /// A JSON object of the user's.
    pub metadata: Option<String>,
    /// How it is operated.
    pub settings: NamespaceSettings,
}

/// How a namespace is operated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NamespaceSettings {
    /// Has no effect any more, as memory for caches goes to whatever is read the most. At least 1.
    pub cache_share: u32,
    /// Whether it is opened at start rather than when it is first used.
    pub warm: bool,
    /// How much of everything it may take.
    #[serde(skip_serializing_if = "Quotas::is_empty")]
    pub quotas: Quotas,
}

impl Default for NamespaceSettings {
    fn default() -> Self {
        Self {
            cache_share: 1,
            warm: false,
            quotas: Quotas::default(),
        }
    }
}

impl NamespaceSettings {
    pub(super) fn validate(self) -> Result<()> {
        if (1..=CACHE_SHARE_MAX).contains(&self.cache_share) {
            return self.quotas.validate();
        }
        Err(Error::invalid(format!(
            "cache share is {}, it must lie between 1 and {CACHE_SHARE_MAX}",
            self.cache_share
        )))
    }
}

/// A namespace that is to be created.
#[derive(Debug, Clone, Default)]
pub struct NewNamespace {
    /// What people should know about it.
    pub description: String,
    /// Its token; a random one if there is none.
    pub token: Option<Token>,
    /// A JSON object of the user's.
    pub metadata: Option<String>,
    /// How it is operated.
    pub settings: NamespaceSettings,
}

/// One namespace as the registry holds it.
#[derive(Debug, Clone)]
pub(super) struct RegistryRecord {
    pub(super) entry: NamespaceEntry,
    pub(super) tokens: Vec<TokenRecord>,
    /// Whether its database has been made. If it is not there then, it is lost.
    pub(super) is_made: bool,
}

/// A registry file: JSON, so that people can read it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stored {
    format: u32,
    id: String,
    /// Of the first format.
    #[serde(default, skip_serializing)]
    token_sha256: Option<String>,
    description: String,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
    #[serde(default)]
    settings: NamespaceSettings,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    made: bool,
    #[serde(default)]
    tokens: Vec<StoredToken>,
    /// Written by hand: it is of all that stands before it.
    #[serde(default, skip_serializing)]
    check: Option<String>,
}

/// What a registry file ends with: the beginning of the SHA-256 of all that stands before.
const CHECK: &str = ",\n  \"check\": \"";
const CHECK_END: &str = "\"\n}\n";
const CHECK_BYTES: usize = 8;

fn check_of(text: &[u8]) -> String {
    hex::encode(&Sha256::digest(text)[..CHECK_BYTES])
}

/// Whether the text of a registry file is what its check says.
fn agrees(text: &[u8], check: &str) -> bool {
    let end = format!("{CHECK}{check}{CHECK_END}");
    let before = text.strip_suffix(end.as_bytes());
    before.is_some_and(|before| check_of(before) == check)
}

impl RegistryRecord {
    /// Returns the token of this name.
    pub(super) fn token(&self, name: &str) -> Result<&TokenRecord> {
        let found = self.tokens.iter().find(|token| token.entry.name == name);
        found.ok_or_else(|| Error::TokenNotFound(name.to_owned()))
    }

    /// Returns the token of this name, to be changed.
    pub(super) fn token_mut(&mut self, name: &str) -> Result<&mut TokenRecord> {
        let mut tokens = self.tokens.iter_mut();
        let found = tokens.find(|token| token.entry.name == name);
        found.ok_or_else(|| Error::TokenNotFound(name.to_owned()))
    }

    /// Returns whether this is the token that the namespace was created with.
    pub(super) fn has_main(&self, hash: &TokenHash) -> bool {
        let main = self.token(MAIN_TOKEN);
        main.is_ok_and(|main| main.hash.matches(hash))
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, String> {
        let entry = &self.entry;
        let metadata = entry
            .metadata
            .clone()
            .map(RawValue::from_string)
            .transpose();
        let stored = Stored {
            format: FORMAT,
            id: entry.id.to_string(),
            token_sha256: None,
            description: entry.description.clone(),
            created: entry.created.to_string(),
            metadata: metadata.map_err(|error| error.to_string())?,
            settings: entry.settings,
            made: self.is_made,
            tokens: self.tokens.iter().map(StoredToken::from).collect(),
            check: None,
        };
        let mut text = serde_json::to_string_pretty(&stored).map_err(|error| error.to_string())?;
        let open = text.strip_suffix('}').unwrap_or(&text).trim_end().len();
        text.truncate(open);
        let check = check_of(text.as_bytes());
        Ok(format!("{text}{CHECK}{check}{CHECK_END}").into_bytes())
    }

    /// Reads a registry file; the error says what is wrong with it.
    pub(super) fn decode(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let version: Version = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if !(FIRST_FORMAT..=FORMAT).contains(&version.format) {
            let found = version.format;
            return Err(format!(
                "format is {found}, this version reads {FIRST_FORMAT} to {FORMAT}"
            ));
        }
        let stored: Stored = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        // Files from before there were checks have none, nor do those that were changed by hand.
        if stored
            .check
            .as_ref()
            .is_some_and(|check| !agrees(text, check))
        {
            return Err("it is not what `check` says; who changed it by hand removes that".into());
        }
        let created = Timestamp::parse(&stored.created)
            .ok_or_else(|| format!("created is no time: {:?}", stored.created))?;
        let tokens = match &stored.token_sha256 {
            Some(hash) => vec![TokenRecord::of_first_format(hash, created)?],
            None if version.format == FIRST_FORMAT => {
                return Err("missing field `tokenSha256`".to_owned());
            }
            None => { stored.tokens.into_iter() }
                .map(StoredToken::read)
                .collect::<Result<_, String>>()?,
        };
        let entry = NamespaceEntry {
            id: NamespaceId::new(&stored.id).map_err(|error| error.to_string())?,
            description: stored.description,
            created,
            metadata: stored.metadata.map(|metadata| metadata.get().to_owned()),
            settings: stored.settings,
        };
        entry
            .settings
            .validate()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            entry,
            tokens,
            is_made: stored.made,
        })
    }
}
