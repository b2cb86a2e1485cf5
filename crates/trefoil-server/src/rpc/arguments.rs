//! Arguments and options that several methods have in common, with the error texts of EventoDB.

use std::borrow::Cow;

use serde_json::value::RawValue;
use trefoil::limits::{
    BATCH_SIZE_DEFAULT, BATCH_SIZE_MAX, EVENT_TYPE_BYTES_MAX, STREAM_LIST_MAX,
    STREAM_NAME_BYTES_MAX,
};
use trefoil::{ConsumerGroup, Direction, Error, List};

use super::rows::EventShape;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, fields, number, present, text};
use crate::strict;

/// How many names are listed if the client does not say.
const LIST_LIMIT_DEFAULT: usize = 100;

/// The first argument, a stream's name.
pub(super) fn stream_name<'a>(call: &RpcCall<'a>, missing: &str) -> Result<Cow<'a, str>> {
    let name = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let name = text(name).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Failure::invalid("streamName must be a non-empty string"))?;
    check_length("stream name length", &name, STREAM_NAME_BYTES_MAX)?;
    Ok(name)
}

/// The first argument, a namespace's id.
pub(super) fn namespace_id<'a>(call: &RpcCall<'a>, missing: &str) -> Result<Cow<'a, str>> {
    let id = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let id = text(id).filter(|id| !id.is_empty());
    id.ok_or_else(|| Failure::invalid("namespace ID must be a non-empty string"))
}

/// Refuses a text that is longer than a limit.
pub(super) fn check_length(what: &str, text: &str, limit: usize) -> Result<()> {
    if text.len() > limit {
        return Err(Error::over_limit(what, text.len(), limit).into());
    }
    Ok(())
}

/// The named options; each is `None` if it is missing or `null`, as are all if there are no
/// options.
pub(super) fn options<'a, const N: usize>(
    options: Option<&'a RawValue>,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N]> {
    let Some(options) = present(options) else {
        return Ok([None; N]);
    };
    let values = fields(options, names);
    let values = values.ok_or_else(|| Failure::invalid("options must be an object"))?;
    Ok(values.map(present))
}

/// An option that is a number.
pub(super) fn number_option(value: Option<&RawValue>, name: &str) -> Result<Option<i64>> {
    let Some(value) = value else { return Ok(None) };
    let found = number(value);
    found
        .map(Some)
        .ok_or_else(|| Failure::invalid(format!("{name} must be a number")))
}

/// An option that is a text.
pub(super) fn text_option<'a>(
    value: Option<&'a RawValue>,
    name: &str,
) -> Result<Option<Cow<'a, str>>> {
    let Some(value) = value else { return Ok(None) };
    let found = text(value);
    found
        .map(Some)
        .ok_or_else(|| Failure::invalid(format!("{name} must be a string")))
}

/// An option that is true or false; false if it is missing.
pub(super) fn flag_option(value: Option<&RawValue>, name: &str) -> Result<bool> {
    match value.map(RawValue::get) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Failure::invalid(format!("{name} must be true or false"))),
    }
}

/// The option `as`: how events are written if not in their usual shape.
pub(super) fn shape_option(value: Option<&RawValue>, usual: EventShape) -> Result<EventShape> {
    let asked = text_option(value, "options.as")?;
    usual.or_as_asked(asked.as_deref(), "options.as")
}

/// The option `type`: an empty one filters nothing.
pub(super) fn type_option(value: Option<&RawValue>) -> Result<Option<String>> {
    let found = text_option(value, "options.type")?.filter(|name| !name.is_empty());
    if let Some(name) = &found {
        check_length("event type length", name, EVENT_TYPE_BYTES_MAX)?;
    }
    Ok(found.map(Cow::into_owned))
}

/// The option `batchSize`: negative means without limit.
pub(super) fn batch_size(value: Option<&RawValue>) -> Result<usize> {
    let Some(size) = number_option(value, "options.batchSize")? else {
        return Ok(BATCH_SIZE_DEFAULT);
    };
    if size > BATCH_SIZE_MAX {
        return Err(Failure::invalid(format!(
            "options.batchSize must be <= {BATCH_SIZE_MAX} or -1 for unlimited"
        )));
    }
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

/// The option `direction`.
pub(super) fn direction(value: Option<&RawValue>) -> Result<Direction> {
    let given = text_option(value, "options.direction")?;
    match given.as_deref() {
        None | Some("forwards") => Ok(Direction::Forwards),
        Some("backwards") => Ok(Direction::Backwards),
        Some(_) => Err(Failure::invalid(
            "options.direction must be \"forwards\" or \"backwards\"",
        )),
    }
}

/// The option `limit` of a list of names.
pub(super) fn list_limit(limit: Option<i64>) -> Result<usize> {
    let Some(limit) = limit else {
        return Ok(LIST_LIMIT_DEFAULT);
    };
    usize::try_from(limit)
        .ok()
        .filter(|limit| (1..=STREAM_LIST_MAX).contains(limit))
        .ok_or_else(|| Failure::invalid(format!("limit must be between 1 and {STREAM_LIST_MAX}")))
}

/// The first argument of a list of names, `{prefix?, limit?, cursor?}`.
pub(super) fn lenient_list(call: &RpcCall<'_>) -> Result<List> {
    let [prefix, limit, cursor] = options(call.argument(0), ["prefix", "limit", "cursor"])?;
    let limit = list_limit(number_option(limit, "limit")?)?;
    let prefix = text_option(prefix, "prefix")?.unwrap_or_default();
    let cursor = text_option(cursor, "cursor")?.unwrap_or_default();
    Ok(List::new(limit).with_prefix(prefix).after(cursor))
}

/// The option `limit` of a list of a method that is ours alone.
pub(super) fn strict_limit(value: Option<&RawValue>) -> Result<usize> {
    let limit = strict::optional_position(value, "limit")?;
    list_limit(limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)))
}

/// The first argument, `{prefix?, limit?, cursor?}`, of a list of a method that is ours alone.
pub(super) fn strict_list(call: &RpcCall<'_>) -> Result<List> {
    let [prefix, limit, cursor] = match present(call.argument(0)) {
        None => [None; 3],
        Some(options) => strict::object(options, "options", ["prefix", "limit", "cursor"])?,
    };
    let limit = strict_limit(present(limit))?;
    let prefix = text_option(present(prefix), "prefix")?.unwrap_or_default();
    let cursor = text_option(present(cursor), "cursor")?.unwrap_or_default();
    Ok(List::new(limit).with_prefix(prefix).after(cursor))
}

/// A position that may be given as a negative number.
pub(super) fn position(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The option `consumerGroup`: an empty object is no group.
pub(super) fn consumer_group(value: Option<&RawValue>) -> Result<Option<ConsumerGroup>> {
    let Some(value) = value else { return Ok(None) };
    let values = fields(value, ["member", "size"]);
    let [member, size] =
        values.ok_or_else(|| Failure::invalid("options.consumerGroup must be an object"))?;
    let member = number_option(present(member), "options.consumerGroup.member")?;
    let size = number_option(present(size), "options.consumerGroup.size")?;
    if member.is_some_and(|member| member < 0) {
        return Err(Failure::invalid(
            "options.consumerGroup.member must be non-negative",
        ));
    }
    if size.is_some_and(|size| size <= 0) {
        return Err(Failure::invalid(
            "options.consumerGroup.size must be positive",
        ));
    }
    match (member, size) {
        (None, None) => Ok(None),
        (Some(member), Some(size)) if member >= size => Err(Failure::invalid(
            "options.consumerGroup.member must be < size",
        )),
        (Some(member), Some(size)) => {
            Ok(Some(ConsumerGroup::new(position(member), position(size))?))
        }
        _ => Err(Failure::invalid(
            "options.consumerGroup requires both member and size",
        )),
    }
}
