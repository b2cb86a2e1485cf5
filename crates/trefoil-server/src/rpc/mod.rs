//! `/rpc`: a JSON array of a method and its arguments. One file per method.

mod arguments;
mod audit;
mod category_get;
mod changes;
mod commit;
mod commit_get;
mod event_redact;
mod events_get;
mod events_head;
mod events_names;
mod events_query;
mod events_tracking;
mod explanation;
mod ns_categories;
mod ns_create;
mod ns_current;
mod ns_delete;
mod ns_info;
mod ns_list;
mod ns_reopen;
mod ns_settings;
mod ns_streams;
mod ns_subscriptions;
mod ns_token;
mod ns_tracking;
mod place;
mod position_at;
mod retention;
pub(crate) mod rows;
mod seats;
pub(crate) mod state;
mod stream_delete;
mod stream_get;
mod stream_last;
mod stream_truncate;
mod stream_version;
mod stream_write;
mod sys;
mod sys_nodes;
mod sys_settings;
mod token;

pub(crate) use audit::{AuditedCall, NotedCall};
use bytes::Bytes;
use hyper::StatusCode;
use trefoil::{OpenDatabase, Scope};

use crate::auth::Access;
use crate::budget::Share;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, present, text};
use crate::metrics::RequestLabels;
use crate::need::Need;
use crate::response::HttpAnswer;
use crate::service::Shared;

/// What a method may use besides its arguments.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    shared: &'a Shared,
    access: &'a Access,
    /// What the answer may take of the memory for clients.
    share: &'a Share,
    /// The whole request: what is stored of it is not copied.
    body: &'a Bytes,
}

impl Context<'_> {
    /// The database of the token's namespace.
    async fn database(&self) -> Result<OpenDatabase> {
        self.access.database(self.shared).await
    }
}

/// Answers a request.
pub(crate) async fn answer(
    shared: &Shared,
    access: &Access,
    share: &Share,
    body: &Bytes,
    labels: &mut RequestLabels,
) -> Result<HttpAnswer> {
    labels.method = "unknown";
    let call = RpcCall::parse(body).map_err(|error| {
        Failure::invalid("Malformed JSON request").with_text("error", &error.to_string())
    })?;
    let method = call
        .method()
        .ok_or_else(|| Failure::invalid("Missing method name"))?;
    let method = text(method).ok_or_else(|| Failure::invalid("Method name must be a string"))?;
    let context = Context {
        shared,
        access,
        share,
        body,
    };
    check_arguments(&method, &call)?;
    run(context, &method, &call, labels).await
}

/// Refuses further arguments to a method that is ours alone. Those of EventoDB ignore them.
fn check_arguments(method: &str, call: &RpcCall<'_>) -> Result<()> {
    let n_arguments = match method {
        "events.head" | "ns.current" | "sys.settings" => 0,
        "audit.read" | "commit" | "event.redact" | "events.tags" | "events.tracking"
        | "events.types" | "ns.subscriptions" | "ns.tracking" | "position.at" | "sys.nodes" => 1,
        "commit.get" | "events.get" | "events.query" | "ns.settings" | "stream.delete"
        | "stream.truncate" => 2,
        ours if ["retention.", "seats.", "token."]
            .iter()
            .any(|of| ours.starts_with(of)) =>
        {
            1
        }
        _ => return Ok(()),
    };
    match present(call.argument(n_arguments)) {
        None => Ok(()),
        Some(_) => Err(Failure::invalid(format!(
            "too many arguments: {method} takes {n_arguments}"
        ))),
    }
}

/// Runs a method, and lists all of them with their descriptions in `/openapi.json`. A method without
/// a description, or without what it needs, does not compile.
macro_rules! methods {
    ($($name:literal => $run:path, $need:expr;)*) => {
        /// Every method, and the file that describes it.
        pub(crate) const METHODS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../openapi/methods/", $name, ".json"))),)*
        ];

        /// What every method needs.
        #[cfg(test)]
        const NEEDS: &[(&str, Need)] = &[$(($name, $need),)*];

        async fn run(
            context: Context<'_>,
            method: &str,
            call: &RpcCall<'_>,
            labels: &mut RequestLabels,
        ) -> Result<HttpAnswer> {
            match method {
                $($name => {
                    labels.method = $name;
                    context.access.require($need)?;
                    $run(context, call).await
                })*
                _ => Err(unknown(method)),
            }
        }
    };
}

methods! {
    "stream.write" => stream_write::run, Need::Named(Scope::Write);
    "stream.get" => stream_get::run, Need::Named(Scope::Read);
    "stream.last" => stream_last::run, Need::Named(Scope::Read);
    "stream.version" => stream_version::run, Need::Named(Scope::Read);
    "stream.truncate" => stream_truncate::run, Need::Whole(Scope::Admin);
    "stream.delete" => stream_delete::run, Need::Whole(Scope::Admin);
    "category.get" => category_get::run, Need::Named(Scope::Read);
    "commit" => commit::run, Need::Contents;
    "commit.get" => commit_get::run, Need::Whole(Scope::Read);
    "event.redact" => event_redact::run, Need::Whole(Scope::Admin);
    "events.get" => events_get::run, Need::Whole(Scope::Read);
    "events.query" => events_query::run, Need::Named(Scope::Read);
    "events.head" => events_head::run, Need::Whole(Scope::Read);
    "events.tags" => events_names::tags, Need::Whole(Scope::Read);
    "events.tracking" => events_tracking::run, Need::Whole(Scope::Read);
    "events.types" => events_names::types, Need::Whole(Scope::Read);
    "retention.set" => retention::set, Need::Whole(Scope::Admin);
    "retention.list" => retention::list, Need::Whole(Scope::Read);
    "position.at" => position_at::run, Need::Whole(Scope::Read);
    "ns.create" => ns_create::run, Need::Server;
    "ns.current" => ns_current::run, Need::Nothing;
    "ns.delete" => ns_delete::run, Need::Of(Scope::Admin);
    "ns.token" => ns_token::run, Need::Of(Scope::Admin);
    "ns.list" => ns_list::run, Need::Server;
    "ns.info" => ns_info::run, Need::Of(Scope::Read);
    "ns.reopen" => ns_reopen::run, Need::Of(Scope::Admin);
    "ns.settings" => ns_settings::run, Need::Server;
    "ns.streams" => ns_streams::run, Need::Named(Scope::Read);
    "ns.subscriptions" => ns_subscriptions::run, Need::Whole(Scope::Read);
    "ns.tracking" => ns_tracking::run, Need::Whole(Scope::Read);
    "ns.categories" => ns_categories::run, Need::Whole(Scope::Read);
    "seats.init" => seats::init, Need::Whole(Scope::Seats);
    "seats.sections" => seats::sections, Need::Whole(Scope::Seats);
    "seats.stats" => seats::stats, Need::Whole(Scope::Seats);
    "seats.map" => seats::map, Need::Whole(Scope::Seats);
    "seats.reserve" => seats::reserve, Need::Whole(Scope::Seats);
    "seats.finalize" => seats::finalize, Need::Whole(Scope::Seats);
    "seats.release" => seats::release, Need::Whole(Scope::Seats);
    "seats.booking" => seats::booking, Need::Whole(Scope::Seats);
    "seats.check" => seats::check, Need::Whole(Scope::Seats);
    "sys.version" => sys::version, Need::Nothing;
    "sys.health" => sys::health, Need::Nothing;
    "sys.nodes" => sys_nodes::run, Need::Server;
    "sys.settings" => sys_settings::run, Need::Server;
    "audit.read" => audit::read, Need::Server;
    "token.create" => token::create, Need::Of(Scope::Admin);
    "token.list" => token::list, Need::Of(Scope::Admin);
    "token.rotate" => token::rotate, Need::Of(Scope::Admin);
    "token.revoke" => token::revoke, Need::Of(Scope::Admin);
}

/// The longest method name that an error repeats.
const METHOD_NAME_SHOWN_MAX: usize = 100;

fn unknown(method: &str) -> Failure {
    let shown: String = method.chars().take(METHOD_NAME_SHOWN_MAX).collect();
    let message = format!("Unknown method: {shown}");
    Failure::new(StatusCode::NOT_FOUND, "METHOD_NOT_FOUND", message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::service::endpoint_need;

    /// The endpoints that are about a namespace and have no methods.
    const ENDPOINTS: [&str; 7] = [
        "/dcb/read",
        "/dcb/append",
        "/import",
        "/export",
        "/backup",
        "/events",
        "/subscribe",
    ];

    #[test]
    fn what_everything_needs_is_documented() {
        let page = include_str!("../../../../docs/security.md");
        let table = page.split("| method | scope | with prefixes |").nth(1);
        let rows = table.unwrap().lines().skip(2);
        let mut documented = BTreeMap::new();
        for row in rows.take_while(|row| row.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for name in cells[1].split(", ") {
                let name = name.trim_matches('`').to_owned();
                let before = documented.insert(name, (cells[2], cells[3] == "yes"));
                assert_eq!(before, None, "{row}");
            }
        }
        let endpoints = ENDPOINTS.map(|endpoint| (endpoint, endpoint_need(endpoint)));
        let needs = NEEDS.iter().copied().chain(endpoints);
        let needs = needs.map(|(name, need)| (name.to_owned(), need.shown()));
        assert_eq!(documented, needs.collect());
    }
}
