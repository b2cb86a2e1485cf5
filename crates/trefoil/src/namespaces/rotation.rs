//! Another token for a namespace: the way out when one is lost, or known to too many.

use std::sync::Arc;

use trefoil_core::limits::TOKEN_BYTES_MIN;
use trefoil_core::{NamespaceId, Result, Token};

use super::entry::TokenHash;
use super::registry::Registry;
use super::{Namespaces, check_token, random_token};
use crate::home::Home;

impl Namespaces {
    /// Gives a namespace another token, `token` or a random one, and returns it. From then on the
    /// one that it had opens nothing.
    pub fn rotate_token(&self, id: &str, token: Option<Token>) -> Result<Token> {
        let bytes_min = self.inner.options.token_bytes_min;
        rotate(&self.inner.registry, id, token, bytes_min)
    }
}

/// The same in a home that no process has open. No namespace is opened for it.
pub(crate) fn rotate_token(home: Arc<dyn Home>, id: &str, token: Option<Token>) -> Result<Token> {
    rotate(&Registry::open(home)?, id, token, TOKEN_BYTES_MIN)
}

fn rotate(registry: &Registry, id: &str, token: Option<Token>, bytes_min: usize) -> Result<Token> {
    let id: NamespaceId = registry.get(id)?.entry.id;
    let token = match token {
        Some(token) => token,
        None => random_token(&id)?,
    };
    check_token(&token, &id, bytes_min)?;
    registry.replace_token(&id, TokenHash::of(&token))?;
    Ok(token)
}
