//! `["category.get", categoryName, {position?, globalPosition?, batchSize?, correlation?,
//! consumerGroup?: {member, size}, direction?, type?, tags?, as?}]`
//!
//! Reads the streams of a category, or everything if the name is empty, by global position, and
//! answers an array of rows with stream names. `globalPosition` is another word for `position`,
//! and wins. `direction`, `type`, `tags` (whether rows end with the tags) and `as` go beyond EventoDB.

use trefoil::limits::STREAM_NAME_BYTES_MAX;
use trefoil::{Direction, Selection, StartAt};

use super::Context;
use super::arguments::{
    batch_size, check_length, consumer_group, direction, flag_option, number_option, options,
    position, shape_option, text_option, type_option,
};
use super::rows::EventShape;
use super::stream_get::answer_rows;
use crate::error::{Failure, Result};
use crate::json::{RpcCall, text};
use crate::response::HttpAnswer;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let (read, shape) = parse(call)?;
    answer_rows(context, read, shape).await
}

fn parse(call: &RpcCall<'_>) -> Result<(Selection, EventShape)> {
    let missing = "category.get requires at least 1 argument: categoryName";
    let name = call.argument(0).ok_or_else(|| Failure::invalid(missing))?;
    let name = text(name).ok_or_else(|| Failure::invalid("categoryName must be a string"))?;
    check_length("category name length", &name, STREAM_NAME_BYTES_MAX)?;
    let names = [
        "position",
        "globalPosition",
        "batchSize",
        "correlation",
        "consumerGroup",
        "direction",
        "type",
        "tags",
        "as",
    ];
    let [
        start,
        global,
        size,
        correlation,
        group,
        order,
        event_type,
        tags,
        shape,
    ] = options(call.argument(1), names)?;
    let start = number_option(start, "options.position")?;
    let global = number_option(global, "options.globalPosition")?;
    let mut read = if name.is_empty() {
        Selection::all()
    } else {
        Selection::category(name)
    };
    read.limit = batch_size(size)?;
    read.direction = direction(order)?;
    read.from = match global.or(start) {
        Some(start) => StartAt::Position(position(start)),
        None if read.direction == Direction::Backwards => StartAt::Edge,
        None => StartAt::Position(1),
    };
    let correlation = text_option(correlation, "options.correlation")?;
    read.filter.correlation = correlation.filter(|name| !name.is_empty()).map(Into::into);
    read.filter.group = consumer_group(group)?;
    read.filter.event_type = type_option(event_type)?;
    let usual = EventShape::Row {
        has_stream: true,
        has_tags: flag_option(tags, "options.tags")?,
    };
    Ok((read, shape_option(shape, usual)?))
}
