//! The retention policies of the token's namespace. They go beyond EventoDB.
//!
//! ```text
//! ["retention.set", {stream | category, maxAge?, maxCount?}]
//! ["retention.list", {limit?, after?: {stream | category}}]
//! ```
//!
//! `maxAge` is in seconds. Without both maxima the policy is removed. The answer of the first is the policy as it
//! is now, that of the second a page of policies: those of categories by name, then those of streams.

use serde_json::value::RawValue;
use trefoil::{OpenDatabase, RetentionPolicy, RetentionTarget};

use super::Context;
use super::arguments::strict_limit;
use super::audit::{AuditedCall, NotingOrder};
use crate::error::{Failure, Result};
use crate::json::{ObjectWriter, RpcCall, present, put_array};
use crate::response::{self, HttpAnswer};
use crate::strict;

pub(super) async fn set(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing =
        "retention.set requires 1 argument: {\"stream\": s} or {\"category\": c}, and maxima";
    let argument = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let names = ["stream", "category", "maxAge", "maxCount"];
    let [stream, category, max_age, max_count] =
        strict::object(argument, "the policy", names)?.map(present);
    let target = parse_target("the policy", stream, category)?;
    let mut policy = RetentionPolicy::default();
    policy.max_age = strict::optional_position(max_age, "maxAge")?;
    policy.max_count = strict::optional_position(max_count, "maxCount")?;
    let database = context.database().await?;
    let namespace = context.access.namespace.as_str();
    let audited = AuditedCall::new(&context, "retention.set", namespace)
        .with_details(|object| put_fields(object, &target, policy));
    let set = set_policy(database, target, policy);
    audited
        .run_async(&context, NotingOrder::NoteFirst, set)
        .await
}

async fn set_policy(
    database: OpenDatabase,
    target: RetentionTarget,
    policy: RetentionPolicy,
) -> Result<HttpAnswer> {
    database.set_retention_async(target.clone(), policy).await?;
    let mut out = Vec::new();
    put_policy(&mut out, &target, policy);
    Ok(response::json(out))
}

pub(super) async fn list(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let [limit, after] = match present(call.argument(0)) {
        None => [None; 2],
        Some(options) => strict::object(options, "options", ["limit", "after"])?.map(present),
    };
    let limit = strict_limit(limit)?;
    let after = match after {
        None => None,
        Some(after) => {
            let names = ["stream", "category"];
            let [stream, category] = strict::object(after, "after", names)?.map(present);
            Some(parse_target("after", stream, category)?)
        }
    };
    let database = context.database().await?;
    let policies = database.retention_async(after, limit).await?;
    let mut out = Vec::new();
    put_array(&mut out, policies, |out, (target, policy)| {
        put_policy(out, &target, policy);
    });
    Ok(response::json(out))
}

fn parse_target(
    what: &str,
    stream: Option<&RawValue>,
    category: Option<&RawValue>,
) -> Result<RetentionTarget> {
    match (stream, category) {
        (Some(_), None) => Ok(RetentionTarget::Stream(strict::name(stream, "stream")?)),
        (None, Some(_)) => Ok(RetentionTarget::Category(strict::name(
            category, "category",
        )?)),
        _ => Err(Failure::invalid(format!(
            "{what} must have one of stream and category"
        ))),
    }
}

fn put_policy(out: &mut Vec<u8>, target: &RetentionTarget, policy: RetentionPolicy) {
    let mut object = ObjectWriter::begin(out);
    put_fields(&mut object, target, policy);
    object.end();
}

fn put_fields(object: &mut ObjectWriter<'_>, target: &RetentionTarget, policy: RetentionPolicy) {
    match target {
        RetentionTarget::Category(name) => object.text("category", name),
        RetentionTarget::Stream(name) => object.text("stream", name),
    }
    object.number_or_null("maxAge", policy.max_age);
    object.number_or_null("maxCount", policy.max_count);
}
