//! `/rpc`: a JSON array of a method and its arguments. One file per method.

mod arguments;
mod category_get;
mod changes;
mod commit;
mod commit_get;
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
mod ns_streams;
mod ns_subscriptions;
mod ns_token;
mod ns_tracking;
mod place;
mod position_at;
pub(crate) mod rows;
mod seats;
mod state;
mod stream_delete;
mod stream_get;
mod stream_last;
mod stream_truncate;
mod stream_version;
mod stream_write;
mod sys;
mod sys_nodes;
mod sys_settings;

use bytes::Bytes;
use hyper::StatusCode;
use trefoil::OpenDatabase;

use crate::auth::Access;
use crate::budget::Share;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, present, text};
use crate::metrics::RequestLabels;
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
        "commit" | "events.tags" | "events.tracking" | "events.types" | "ns.subscriptions"
        | "ns.tracking" | "position.at" | "sys.nodes" => 1,
        "commit.get" | "events.get" | "events.query" | "stream.delete" | "stream.truncate" => 2,
        seats if seats.starts_with("seats.") => 1,
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
/// a description does not compile.
macro_rules! methods {
    ($($name:literal => $run:path,)*) => {
        /// Every method, and the file that describes it.
        pub(crate) const METHODS: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../openapi/methods/", $name, ".json"))),)*
        ];

        async fn run(
            context: Context<'_>,
            method: &str,
            call: &RpcCall<'_>,
            labels: &mut RequestLabels,
        ) -> Result<HttpAnswer> {
            match method {
                $($name => {
                    labels.method = $name;
                    $run(context, call).await
                })*
                _ => Err(unknown(method)),
            }
        }
    };
}

methods! {
    "stream.write" => stream_write::run,
    "stream.get" => stream_get::run,
    "stream.last" => stream_last::run,
    "stream.version" => stream_version::run,
    "stream.truncate" => stream_truncate::run,
    "stream.delete" => stream_delete::run,
    "category.get" => category_get::run,
    "commit" => commit::run,
    "commit.get" => commit_get::run,
    "events.get" => events_get::run,
    "events.query" => events_query::run,
    "events.head" => events_head::run,
    "events.tags" => events_names::tags,
    "events.tracking" => events_tracking::run,
    "events.types" => events_names::types,
    "position.at" => position_at::run,
    "ns.create" => ns_create::run,
    "ns.current" => ns_current::run,
    "ns.delete" => ns_delete::run,
    "ns.token" => ns_token::run,
    "ns.list" => ns_list::run,
    "ns.info" => ns_info::run,
    "ns.reopen" => ns_reopen::run,
    "ns.streams" => ns_streams::run,
    "ns.subscriptions" => ns_subscriptions::run,
    "ns.tracking" => ns_tracking::run,
    "ns.categories" => ns_categories::run,
    "seats.init" => seats::init,
    "seats.sections" => seats::sections,
    "seats.stats" => seats::stats,
    "seats.map" => seats::map,
    "seats.reserve" => seats::reserve,
    "seats.finalize" => seats::finalize,
    "seats.release" => seats::release,
    "seats.booking" => seats::booking,
    "seats.check" => seats::check,
    "sys.version" => sys::version,
    "sys.health" => sys::health,
    "sys.nodes" => sys_nodes::run,
    "sys.settings" => sys_settings::run,
}

/// The longest method name that an error repeats.
const METHOD_NAME_SHOWN_MAX: usize = 100;

fn unknown(method: &str) -> Failure {
    let shown: String = method.chars().take(METHOD_NAME_SHOWN_MAX).collect();
    let message = format!("Unknown method: {shown}");
    Failure::new(StatusCode::NOT_FOUND, "METHOD_NOT_FOUND", message)
}
