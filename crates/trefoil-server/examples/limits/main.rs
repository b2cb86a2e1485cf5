//! A server with one application more: `LIMIT.TAKE` and `LIMIT.LEFT`.

mod application;

use application::LIMITS;
use trefoil::{Namespaces, NamespacesOptions, Options, Token};
use trefoil_server::{Config, Server};

#[tokio::main]
async fn main() -> trefoil::Result<()> {
    let options =
        NamespacesOptions::default().with_database(Options::default().with_application(&LIMITS));
    let namespaces = Namespaces::open("data", options)?;
    namespaces.ensure_default(Some(&Token::development()))?;
    let server = Server::bind(Config::default(), namespaces.clone()).await?;
    println!("{:?}", server.resp_addresses());
    server
        .run(async {
            // Nothing is lost if the signal cannot be waited for: the server stops at once.
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    namespaces.close()
}
