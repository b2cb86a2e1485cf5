//! What a token permits: scopes say what may be done, prefixes with which streams and keys.

use crate::limits::{STREAM_NAME_BYTES_MAX, TOKEN_PREFIXES_MAX};
use crate::{Error, Result, Source};

/// Something that a token may permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// To read events, and what is known of them.
    Read,
    /// To append events, under conditions or without.
    Write,
    /// To read and change keys.
    State,
    /// To use the commands of seats.
    Seats,
    /// To follow events.
    Subscribe,
    /// To administer the namespace: its tokens, its settings, what is kept of it, and copies of it as a
    /// whole.
    Admin,
}

impl Scope {
    /// All of them.
    pub const EVERY: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::State,
        Self::Seats,
        Self::Subscribe,
        Self::Admin,
    ];

    /// Returns what it is called everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::State => "state",
            Self::Seats => "seats",
            Self::Subscribe => "subscribe",
            Self::Admin => "admin",
        }
    }

    /// Returns the scope of this name.
    pub fn parse(name: &str) -> Result<Self> {
        let found = Self::EVERY.into_iter().find(|scope| scope.name() == name);
        found.ok_or_else(|| {
            let names = Self::EVERY.map(Self::name).join(", ");
            Error::invalid(format!("there is no scope {name:?}, only {names}"))
        })
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// All that there are.
    pub const ALL: Self = Self((1 << Scope::EVERY.len()) - 1);

    /// Returns whether the scope is one of them.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// Returns whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns them in the usual order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        let every = Scope::EVERY.into_iter();
        every.filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let add = |set, scope| set | (1 << scope as u8);
        Self(scopes.into_iter().fold(0, add))
    }
}

/// What a token permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// What may be done.
    pub scopes: Scopes,
    /// What the names of streams begin with, one of these; any name if there is none.
    pub streams: Vec<String>,
    /// What the names of keys begin with, one of these; any name if there is none.
    pub keys: Vec<String>,
}

impl Permission {
    /// Everything.
    pub const ALL: Self = Self {
        scopes: Scopes::ALL,
        streams: Vec::new(),
        keys: Vec::new(),
    };

    /// Returns whether it permits everything.
    pub fn is_all(&self) -> bool {
        self.scopes == Scopes::ALL && !self.is_confined()
    }

    /// Returns whether it has prefixes. Then nothing is permitted that goes beyond what is named: no
    /// query over all streams, no list of all keys.
    pub fn is_confined(&self) -> bool {
        !self.streams.is_empty() || !self.keys.is_empty()
    }

    /// Checks that it makes sense.
    pub fn validate(&self) -> Result<()> {
        if self.scopes.is_empty() {
            return Err(Error::invalid("a token needs at least one scope"));
        }
        for (what, prefixes) in [("stream", &self.streams), ("key", &self.keys)] {
            if prefixes.len() > TOKEN_PREFIXES_MAX {
                let what = format!("number of {what} prefixes");
                return Err(Error::over_limit(&what, prefixes.len(), TOKEN_PREFIXES_MAX));
            }
            for prefix in prefixes {
                if prefix.is_empty() {
                    let text = format!("a {what} prefix must be a non-empty string");
                    return Err(Error::invalid(text));
                }
                if prefix.len() > STREAM_NAME_BYTES_MAX {
                    let what = format!("length of a {what} prefix");
                    let limit = STREAM_NAME_BYTES_MAX;
                    return Err(Error::over_limit(&what, prefix.len(), limit));
                }
            }
        }
        // Neither names what it touches.
        for scope in [Scope::Seats, Scope::Admin] {
            if self.is_confined() && self.scopes.contains(scope) {
                return Err(Error::invalid(format!(
                    "a token with prefixes cannot have the scope '{scope}'"
                )));
            }
        }
        Ok(())
    }

    /// Returns whether a stream may be used. The prefix `account-` stands for the category `account`, so it
    /// permits a stream of that name, too.
    pub fn permits_stream(&self, name: &str) -> bool {
        let begins = |prefix: &String| {
            name.starts_with(prefix.as_str()) || prefix.strip_suffix('-') == Some(name)
        };
        self.streams.is_empty() || self.streams.iter().any(begins)
    }

    /// Returns whether a key may be used.
    pub fn permits_key(&self, name: &[u8]) -> bool {
        let begins = |prefix: &String| name.starts_with(prefix.as_bytes());
        self.keys.is_empty() || self.keys.iter().any(begins)
    }

    /// Returns whether all streams may be listed whose names begin with this.
    pub fn permits_streams_with(&self, start: &str) -> bool {
        let begins = |prefix: &String| start.starts_with(prefix.as_str());
        self.streams.is_empty() || self.streams.iter().any(begins)
    }

    /// Returns whether all events of a source may be read. The streams of a category are `name` and those
    /// that begin with `name-`, so a prefix permits all of them or not.
    pub fn permits_source(&self, source: &Source) -> bool {
        match source {
            Source::All => !self.is_confined(),
            Source::Category(name) | Source::Stream(name) => self.permits_stream(name),
        }
    }
}

/// Why a token does not permit something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// It lacks a scope.
    #[error("does not have the scope '{0}'")]
    Scope(Scope),
    /// It has prefixes, and this goes beyond what they may name.
    #[error("has prefixes, so it may use only what names its streams and keys")]
    Unnamed,
    /// None of its prefixes is the beginning of this stream.
    #[error("may not use the stream '{0}'")]
    Stream(String),
    /// None of its prefixes is the beginning of this key.
    #[error("may not use the key '{0}'")]
    Key(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined(streams: &[&str], keys: &[&str]) -> Permission {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Permission {
            scopes: [Scope::Read, Scope::State].into_iter().collect(),
            streams: texts(streams),
            keys: texts(keys),
        }
    }

    #[test]
    fn scopes_have_names_and_are_sets() {
        for scope in Scope::EVERY {
            assert_eq!(Scope::parse(scope.name()).unwrap(), scope);
            assert!(Scopes::ALL.contains(scope));
            assert!(!Scopes::default().contains(scope));
        }
        let some: Scopes = [Scope::Admin, Scope::Read].into_iter().collect();
        assert!(some.iter().eq([Scope::Read, Scope::Admin]));
        assert_eq!(Scope::EVERY.into_iter().collect::<Scopes>(), Scopes::ALL);
        let wrong = Scope::parse("Read").unwrap_err().to_string();
        let names = "read, write, state, seats, subscribe, admin";
        assert_eq!(wrong, format!("there is no scope \"Read\", only {names}"));
    }

    #[test]
    fn a_prefix_permits_what_begins_with_it() {
        let permission = confined(&["account-", "order:"], &["cart:"]);
        for (stream, is_permitted) in [
            ("account-1", true),
            ("account", true),
            ("accounts-1", false),
            ("order:1", true),
            ("order", false),
            ("", false),
        ] {
            assert_eq!(permission.permits_stream(stream), is_permitted, "{stream}");
            let category = Source::Category(stream.to_owned());
            assert_eq!(permission.permits_source(&category), is_permitted);
        }
        assert!(permission.permits_key(b"cart:\xff") && !permission.permits_key(b"cart"));
        assert!(permission.permits_streams_with("account-1"));
        assert!(!permission.permits_streams_with("account"));
        assert!(!permission.permits_source(&Source::All));
        // Prefixes of one kind leave the names of the other kind free, but not what has no name.
        let keys_only = confined(&[], &["cart:"]);
        assert!(keys_only.permits_stream("anything") && !keys_only.permits_source(&Source::All));
        assert!(Permission::ALL.permits_source(&Source::All));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(confined(&["a"], &["b"]).validate().is_ok());
        assert!(Permission::ALL.validate().is_ok());
        let mut none = Permission::ALL;
        none.scopes = Scopes::default();
        let many = vec!["a"; TOKEN_PREFIXES_MAX + 1];
        let long = "x".repeat(STREAM_NAME_BYTES_MAX + 1);
        let mut admin = confined(&["a"], &[]);
        admin.scopes = Scopes::ALL;
        for (wrong, text) in [
            (none, "a token needs at least one scope"),
            (
                confined(&[""], &[]),
                "a stream prefix must be a non-empty string",
            ),
            (
                confined(&[], &many),
                "number of key prefixes is 33, the limit is 32",
            ),
            (
                confined(&[], &[&long]),
                "length of a key prefix is 1025, the limit is 1024",
            ),
            (admin, "a token with prefixes cannot have the scope 'seats'"),
        ] {
            assert_eq!(wrong.validate().unwrap_err().to_string(), text);
        }
    }
}
