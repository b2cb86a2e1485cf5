//! `["stream.get", streamName, {position?, globalPosition?, batchSize?, direction?, type?, tags?,
//! as?}]`
//!
//! Reads a stream and answers an array of rows. `position` is inclusive; `globalPosition` replaces
//! it. A negative `batchSize` means without limit. `direction` ("forwards" or "backwards"), `type`,
//! `tags` (whether rows end with the tags) and `as` go beyond EventoDB.

use trefoil::{Direction, Selection, StartAt};

use super::Context;
use super::arguments::{
    batch_size, direction, flag_option, number_option, options, position, shape_option,
    stream_name, type_option,
};
use super::rows::{EventRows, EventShape};
use crate::error::Result;
use crate::json::RpcCall;
use crate::pages::Pages;
use crate::reading::Reading;
use crate::response::{self, HttpAnswer};

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let (read, shape) = parse(call)?;
    answer_rows(context, read, shape).await
}

/// Returns the events of a read.
pub(super) async fn answer_rows(
    context: Context<'_>,
    read: Selection,
    shape: EventShape,
) -> Result<HttpAnswer> {
    context.access.grant.require_source(&read.source)?;
    let database = context.database().await?;
    let reading = Reading::new(
        Pages::new(database, read)?,
        EventRows::new(shape),
        context.share,
    );
    Ok(response::json_body(reading.body().await?))
}

fn parse(call: &RpcCall<'_>) -> Result<(Selection, EventShape)> {
    let stream = stream_name(call, "stream.get requires at least 1 argument: streamName")?;
    let names = [
        "position",
        "globalPosition",
        "batchSize",
        "direction",
        "type",
        "tags",
        "as",
    ];
    let [start, global, size, order, event_type, tags, shape] = options(call.argument(1), names)?;
    let start = number_option(start, "options.position")?;
    let global = number_option(global, "options.globalPosition")?;
    let mut read = Selection::stream(stream).limit(batch_size(size)?);
    read.direction = direction(order)?;
    read.from = match (global, start) {
        (Some(global), _) => StartAt::Position(position(global)),
        (None, Some(start)) => StartAt::StreamPosition(position(start)),
        (None, None) if read.direction == Direction::Backwards => StartAt::Edge,
        (None, None) => StartAt::StreamPosition(0),
    };
    read.filter.event_type = type_option(event_type)?;
    let usual = EventShape::Row {
        has_stream: false,
        has_tags: flag_option(tags, "options.tags")?,
    };
    Ok((read, shape_option(shape, usual)?))
}
