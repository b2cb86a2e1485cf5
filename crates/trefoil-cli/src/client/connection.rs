//! Which server a command talks to and with which token: from flags, from the environment, from a
//! context, or the default, in this order.
//!
//! ```text
//! URL    --url, --context, TREFOIL_URL, the context in use, http://127.0.0.1:8080
//! token  --token, --context, TREFOIL_TOKEN, the context in use, the development token
//! CA     --cacert, the context of the URL, TREFOIL_CACERT, SSL_CERT_FILE
//! ```
//!
//! The context in use is the one that `TREFOIL_CONTEXT` names, else the selected one. A token of a
//! context goes to the URL of this context only.

use std::path::PathBuf;

use trefoil::Token;

use super::HttpClient;
use crate::contexts::{Contexts, NamedServer};
use crate::exit::UsageError;

const URL_VARIABLE: &str = "TREFOIL_URL";
const TOKEN_VARIABLE: &str = "TREFOIL_TOKEN";
const CONTEXT_VARIABLE: &str = "TREFOIL_CONTEXT";
const CACERT_VARIABLE: &str = "TREFOIL_CACERT";
/// As other programs have it.
const SYSTEM_CACERT_VARIABLE: &str = "SSL_CERT_FILE";
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// Where the server is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Address {
    /// Address of the server [env: TREFOIL_URL] [default: that of the context, else
    /// http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The context with the address and the token; see `trefoil context` [env: TREFOIL_CONTEXT]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// File with the certificates, in PEM, of those who vouch for an https:// server [env:
    /// TREFOIL_CACERT, SSL_CERT_FILE] [default: that of the context, else those that browsers trust]
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

/// Where the server is and what it lets in.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConnectionArguments {
    #[command(flatten)]
    address: Address,

    /// Token of the namespace [env: TREFOIL_TOKEN] [default: that of the context, else the
    /// development token]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl ConnectionArguments {
    pub(crate) fn client(&self) -> anyhow::Result<HttpClient> {
        self.address.client(self.token.as_deref())
    }

    /// What a command would use, and why.
    pub(crate) fn chosen(&self) -> anyhow::Result<ChosenServer> {
        self.address.chosen(self.token.as_deref())
    }

    /// The same arguments with a context that was named in another way.
    pub(crate) fn with_context(mut self, name: String) -> Self {
        self.address.context = Some(name);
        self
    }
}

/// A server, a token, and where each of them came from. There is no `Debug`: it has the token.
pub(crate) struct ChosenServer {
    pub(crate) url: String,
    pub(crate) url_source: String,
    pub(crate) token: String,
    pub(crate) token_source: String,
    pub(crate) authorities: Option<AuthorityFile>,
}

/// A file with the certificates of those who vouch for a server.
#[derive(Debug)]
pub(crate) struct AuthorityFile {
    pub(crate) path: PathBuf,
    /// What named it.
    pub(crate) source: &'static str,
}

impl Address {
    /// Returns a client that shows this token; if there is none, the one that belongs here.
    pub(crate) fn client(&self, token: Option<&str>) -> anyhow::Result<HttpClient> {
        HttpClient::new(&self.chosen(token)?)
    }

    fn chosen(&self, token: Option<&str>) -> anyhow::Result<ChosenServer> {
        let variable = |name: &str| std::env::var(name).ok();
        self.choose(token, &variable, Contexts::load)
    }

    fn choose(
        &self,
        token: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
        load: impl Fn() -> anyhow::Result<Contexts>,
    ) -> anyhow::Result<ChosenServer> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        // A file that is not needed cannot be in the way.
        let context = match (&self.url, token) {
            (Some(_), Some(_)) => None,
            _ => self.context(&variable, load)?,
        };
        let is_named = self.context.is_some();
        let of_context = |named: bool| context.as_ref().filter(|_| is_named == named);
        let (url, url_source) = first(&[
            &|| Some((self.url.clone()?, "--url".to_owned())),
            &|| of_context(true).map(UsedContext::url),
            &|| Some((variable(URL_VARIABLE)?, URL_VARIABLE.to_owned())),
            &|| of_context(false).map(UsedContext::url),
        ])
        .unwrap_or_else(|| (DEFAULT_URL.to_owned(), "default".to_owned()));
        // Nobody else's server is told the token.
        let trusted = context
            .as_ref()
            .filter(|used| is_same(&used.server.url, &url));
        let authorities = self.authorities(trusted, &variable);
        if let Some(token) = token {
            let source = "the command line".to_owned();
            return Ok(ChosenServer {
                url,
                url_source,
                token: token.to_owned(),
                token_source: source,
                authorities,
            });
        }
        let stored = |named: bool| match trusted.filter(|_| is_named == named) {
            Some(used) => used.token(),
            None => Ok(None),
        };
        let given = || Some((variable(TOKEN_VARIABLE)?, TOKEN_VARIABLE.to_owned()));
        let found = match stored(true)?.or_else(given) {
            Some(found) => Some(found),
            None => stored(false)?,
        };
        let (token, token_source) = found.unwrap_or_else(|| {
            let token = Token::development().reveal().to_owned();
            (token, "the development token".to_owned())
        });
        Ok(ChosenServer {
            url,
            url_source,
            token,
            token_source,
            authorities,
        })
    }

    /// Who vouches for the server, if somebody says so; `used` is the context that it is of.
    fn authorities(
        &self,
        used: Option<&UsedContext>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<AuthorityFile> {
        let of = |source, path: Option<PathBuf>| {
            Some(AuthorityFile {
                path: path?,
                source,
            })
        };
        let named = |name: &'static str| of(name, variable(name).map(PathBuf::from));
        first(&[
            &|| of("--cacert", self.cacert.clone()),
            &|| of("the context", used?.server.cacert.clone()),
            &|| named(CACERT_VARIABLE),
            &|| named(SYSTEM_CACERT_VARIABLE),
        ])
    }

    /// The context that is named or in use.
    fn context(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        load: impl Fn() -> anyhow::Result<Contexts>,
    ) -> anyhow::Result<Option<UsedContext>> {
        let contexts = load()?;
        let name = self.context.clone().or_else(|| variable(CONTEXT_VARIABLE));
        let Some(name) = name.or_else(|| contexts.selected.clone()) else {
            return Ok(None);
        };
        let server = contexts.find(&name)?.clone();
        Ok(Some(UsedContext { name, server }))
    }
}

/// The first that there is.
fn first<T>(candidates: &[&dyn Fn() -> Option<T>]) -> Option<T> {
    candidates.iter().find_map(|candidate| candidate())
}

fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// A context whose server or token counts.
struct UsedContext {
    name: String,
    server: NamedServer,
}

impl UsedContext {
    fn url(&self) -> (String, String) {
        (self.server.url.clone(), format!("context {}", self.name))
    }

    fn token(&self) -> anyhow::Result<Option<(String, String)>> {
        let source = format!("context {}", self.name);
        Ok(self.server.token()?.map(|token| (token, source)))
    }
}

/// Returns whether connections to a URL are encrypted, if it is one.
pub(crate) fn is_encrypted(url: &str) -> anyhow::Result<bool> {
    match url.split_once("://") {
        Some(("https", rest)) if !rest.is_empty() => Ok(true),
        Some(("http", rest)) if !rest.is_empty() => Ok(false),
        _ => {
            let text = format!("{url:?} is not a URL that begins with http:// or https://");
            Err(UsageError(text).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts() -> Contexts {
        let server = |url: &str, token: Option<&str>| NamedServer {
            url: url.to_owned(),
            token_file: None,
            token: token.map(str::to_owned),
            cacert: None,
        };
        let mut contexts = Contexts::default();
        contexts.contexts.extend([
            ("prod".to_owned(), server("https://prod", Some("secret"))),
            ("open".to_owned(), server("http://open", None)),
        ]);
        contexts.select("prod").unwrap();
        contexts
    }

    /// The URL and the token for `--url`, `--context` and `--token`, and these variables.
    fn chosen(flags: [Option<&str>; 3], variables: &[(&str, &str)]) -> (String, String) {
        let [url, context, token] = flags;
        let address = Address {
            url: url.map(str::to_owned),
            context: context.map(str::to_owned),
            cacert: None,
        };
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let chosen = address.choose(token, &variable, || Ok(contexts()));
        let chosen = chosen.unwrap();
        (chosen.url, chosen.token)
    }

    #[test]
    fn a_flag_comes_before_the_environment_and_that_before_the_context_in_use() {
        let development = Token::development().reveal().to_owned();
        let (url, token) = (Some("http://u"), Some("t"));
        let of = |url: &str, token: &str| (url.to_owned(), token.to_owned());
        let env = [("TREFOIL_URL", "http://e"), ("TREFOIL_TOKEN", "et")];
        assert_eq!(chosen([None; 3], &[]), of("https://prod", "secret"));
        assert_eq!(chosen([None; 3], &env), of("http://e", "et"));
        assert_eq!(chosen([None; 3], &env[1..]), of("https://prod", "et"));
        assert_eq!(
            chosen([None, Some("prod"), None], &env),
            of("https://prod", "secret")
        );
        assert_eq!(
            chosen([None, Some("open"), None], &env),
            of("http://open", "et")
        );
        assert_eq!(chosen([url, None, token], &env), of("http://u", "t"));
        assert_eq!(chosen([url, None, None], &env), of("http://u", "et"));
        let other = [("TREFOIL_CONTEXT", "open")];
        assert_eq!(chosen([None; 3], &other), of("http://open", &development));
        // What is empty is not there.
        let empty = [("TREFOIL_URL", ""), ("TREFOIL_TOKEN", "")];
        assert_eq!(chosen([None; 3], &empty), of("https://prod", "secret"));
    }

    #[test]
    fn the_token_of_a_context_goes_to_its_own_server_only() {
        let development = Token::development().reveal().to_owned();
        let elsewhere = Some("http://elsewhere");
        for context in [None, Some("prod")] {
            let (url, token) = chosen([elsewhere, context, None], &[]);
            assert_eq!((url.as_str(), &token), ("http://elsewhere", &development));
        }
        let (_, token) = chosen([Some("https://prod/"), None, None], &[]);
        assert_eq!(token, "secret");
        let (_, token) = chosen([None; 3], &[("TREFOIL_URL", "http://elsewhere")]);
        assert_eq!(token, development);
    }
}
