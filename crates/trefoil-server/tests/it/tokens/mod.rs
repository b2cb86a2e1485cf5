//! Tokens: what each permits over every protocol, and what becomes of those who use one that counts no more.

mod audit;
mod matrix;
mod methods;
mod quotas;
mod revoked;

use serde_json::Value;
use trefoil::{
    NamespaceId, Namespaces, NamespacesOptions, NewNamespace, NewToken, Permission, Scope,
};
use trefoil_server::Config;

use crate::client::{Reply, bearer_of, request};
use crate::harness::TestServer;

/// A server, and its namespaces.
struct TokenServer {
    server: TestServer,
    namespaces: Namespaces,
}

impl TokenServer {
    fn new() -> Self {
        Self::with(NamespacesOptions::default())
    }

    fn with(options: NamespacesOptions) -> Self {
        let namespaces = Namespaces::in_memory(options).unwrap();
        Self {
            server: TestServer::on(Config::default(), namespaces.clone()),
            namespaces,
        }
    }

    /// Makes a namespace, and returns its main token.
    fn create(&self, name: &str) -> String {
        let id = NamespaceId::new(name).unwrap();
        let created = self.namespaces.create(&id, NewNamespace::default());
        created.unwrap().1.reveal().to_owned()
    }

    /// Makes a token, and returns it.
    fn token(&self, namespace: &str, name: &str, permission: Permission) -> String {
        let new = NewToken::new(name, permission);
        let made = self.namespaces.create_token(namespace, new);
        made.unwrap().1.reveal().to_owned()
    }

    fn rpc(&self, token: &str, body: &str) -> Reply {
        let headers = bearer_of(token);
        let address = self.server.address;
        request(address, "POST", "/rpc", &headers, body.as_bytes())
    }

    /// Calls a method, which must succeed.
    #[track_caller]
    fn call(&self, token: &str, body: &str) -> Value {
        let reply = self.rpc(token, body);
        assert_eq!(reply.status, 200, "{body}: {}", reply.text());
        serde_json::from_slice(&reply.body).unwrap()
    }

    /// Calls a method, which must fail. Returns the code and the text.
    #[track_caller]
    fn refusal(&self, token: &str, body: &str) -> (String, String) {
        let reply = self.rpc(token, body);
        assert!(reply.status >= 400, "{body}: {}", reply.text());
        let error: Value = serde_json::from_slice(&reply.body).unwrap();
        let text = |name: &str| error["error"][name].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }
}

fn scoped(scopes: &[Scope]) -> Permission {
    Permission {
        scopes: scopes.iter().copied().collect(),
        ..Permission::ALL
    }
}
