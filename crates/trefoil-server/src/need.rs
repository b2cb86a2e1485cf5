//! What a method or a command needs to be permitted. Each has its need in the table that it is found in.

use trefoil::{Grant, Result, Scope};

/// What something needs of the token that it is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Any token will do.
    Nothing,
    /// A scope. It names the streams and keys that it touches, and checks these names itself.
    Named(Scope),
    /// A scope, and no prefixes: it touches more than it names.
    Whole(Scope),
    /// What it consists of decides, which it checks itself.
    Contents,
    /// A scope of the namespace that it names, or the administrator of the server. It checks this itself.
    Of(Scope),
    /// The administrator of the server.
    Server,
}

impl Need {
    /// Refuses a token that lacks a scope, or has prefixes. The rest is checked elsewhere.
    pub(crate) fn check(self, grant: &Grant) -> Result<()> {
        match self {
            Self::Nothing | Self::Contents | Self::Of(_) | Self::Server => Ok(()),
            Self::Named(scope) => grant.require(scope),
            Self::Whole(scope) => {
                grant.require(scope)?;
                grant.require_unconfined()
            }
        }
    }

    /// Returns it as the documentation writes it.
    #[cfg(test)]
    pub(crate) fn shown(self) -> (&'static str, bool) {
        match self {
            Self::Nothing => ("any", true),
            Self::Named(scope) => (scope.name(), true),
            Self::Whole(scope) | Self::Of(scope) => (scope.name(), false),
            Self::Contents => ("write, state, seats", true),
            Self::Server => ("server", false),
        }
    }
}
