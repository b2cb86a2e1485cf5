//! The async forms of what blocks. Each has the name of its blocking form with `_async` behind it,
//! takes the same and returns the same, and works in any runtime.

use std::path::Path;
use std::time::Duration;

use trefoil_core::{NamespaceId, Result, Token};

use super::{
    NamespaceEntry, Namespaces, NamespacesOptions, NewNamespace, NewToken, OpenDatabase, TokenEntry,
};
use crate::Info;
use crate::background::task::on_own_thread;

impl Namespaces {
    /// The async form of [`Self::open`].
    pub async fn open_async(
        directory: impl AsRef<Path>,
        options: NamespacesOptions,
    ) -> Result<Self> {
        let directory = directory.as_ref().to_owned();
        on_own_thread(move || Self::open(directory, options)).await
    }

    /// The async form of [`Self::in_memory`].
    pub async fn in_memory_async(options: NamespacesOptions) -> Result<Self> {
        on_own_thread(move || Self::in_memory(options)).await
    }

    /// The async form of [`Self::ensure_default`].
    pub async fn ensure_default_async(&self, token: Option<&Token>) -> Result<Option<Token>> {
        let token = token.cloned();
        self.elsewhere(move |namespaces| namespaces.ensure_default(token.as_ref()))
            .await
    }

    /// The async form of [`Self::create`].
    pub async fn create_async(
        &self,
        id: &NamespaceId,
        new: NewNamespace,
    ) -> Result<(NamespaceEntry, Token)> {
        let id = id.clone();
        self.elsewhere(move |namespaces| namespaces.create(&id, new))
            .await
    }

    /// The async form of [`Self::delete`].
    pub async fn delete_async(&self, id: &str) -> Result<u64> {
        let id = id.to_owned();
        self.elsewhere(move |namespaces| namespaces.delete(&id))
            .await
    }

    /// The async form of [`Self::counts`].
    pub async fn counts_async(&self, id: &str) -> Result<Info> {
        let id = id.to_owned();
        self.elsewhere(move |namespaces| namespaces.counts(&id))
            .await
    }

    /// The async form of [`Self::database`]. One that is open is returned at once.
    pub async fn database_async(&self, id: &NamespaceId) -> Result<OpenDatabase> {
        if let Some(database) = self.opened(id) {
            return Ok(database);
        }
        let id = id.clone();
        self.elsewhere(move |namespaces| namespaces.database(&id))
            .await
    }

    /// The async form of [`Self::database_here`]. One that is open is returned at once.
    pub async fn database_here_async(&self, id: &NamespaceId) -> Result<OpenDatabase> {
        if let Some(database) = self.opened(id) {
            return Ok(database);
        }
        let id = id.clone();
        self.elsewhere(move |namespaces| namespaces.database_here(&id))
            .await
    }

    /// The async form of [`Self::reopen`].
    pub async fn reopen_async(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.elsewhere(move |namespaces| namespaces.reopen(&id))
            .await
    }

    /// The async form of [`Self::rotate_token`].
    pub async fn rotate_token_async(&self, id: &str, token: Option<Token>) -> Result<Token> {
        let id = id.to_owned();
        self.elsewhere(move |namespaces| namespaces.rotate_token(&id, token))
            .await
    }

    /// The async form of [`Self::create_token`].
    pub async fn create_token_async(&self, id: &str, new: NewToken) -> Result<(TokenEntry, Token)> {
        let id = id.to_owned();
        self.elsewhere(move |namespaces| namespaces.create_token(&id, new))
            .await
    }

    /// The async form of [`Self::replace_token`].
    pub async fn replace_token_async(
        &self,
        id: &str,
        name: &str,
        token: Option<Token>,
        overlap: Duration,
    ) -> Result<Token> {
        let (id, name) = (id.to_owned(), name.to_owned());
        self.elsewhere(move |namespaces| namespaces.replace_token(&id, &name, token, overlap))
            .await
    }

    /// The async form of [`Self::revoke_token`].
    pub async fn revoke_token_async(&self, id: &str, name: &str) -> Result<()> {
        let (id, name) = (id.to_owned(), name.to_owned());
        self.elsewhere(move |namespaces| namespaces.revoke_token(&id, &name))
            .await
    }

    /// The async form of [`Self::free_bytes`].
    pub async fn free_bytes_async(&self) -> Result<Option<u64>> {
        self.elsewhere(Self::free_bytes).await
    }

    /// The async form of [`Self::close`].
    pub async fn close_async(&self) -> Result<()> {
        self.elsewhere(Self::close).await
    }

    async fn elsewhere<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let namespaces = self.clone();
        on_own_thread(move || work(&namespaces)).await
    }
}
