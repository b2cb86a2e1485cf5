//! `["stream.get", streamName, {position?, globalPosition?, batchSize?, direction?, type?}]`
//!
//! Reads a stream and answers an array of rows. `position` is inclusive; `globalPosition` replaces
//! it. A negative `batchSize` means without limit. `direction` ("forwards" or "backwards") and
//! `type` go beyond EventoDB.

use trefoil::{Direction, From, Read};

use super::Context;
use super::arguments::{
    batch_size, direction, number_option, options, position, stream_name, type_option,
};
use super::rows::{Rows, Shape};
use crate::error::Result;
use crate::json::Call;
use crate::limits::SHORT_READ_EVENTS_MAX;
use crate::pages::Pages;
use crate::reading::Reading;
use crate::response::{self, Answer};

pub(super) async fn run(context: Context<'_>, call: &Call<'_>) -> Result<Answer> {
    let read = parse(call)?;
    answer_rows(context, read, Shape::Stream).await
}

/// Answers the rows of a read: on this thread if they are few, elsewhere if they may be many.
pub(super) async fn answer_rows(context: Context<'_>, read: Read, shape: Shape) -> Result<Answer> {
    let is_short = read.limit <= SHORT_READ_EVENTS_MAX;
    let database = context.database().await?;
    let reading = Reading::new(Pages::new(database, read), Rows::new(shape));
    let body = if is_short {
        reading.body_inline()?
    } else {
        reading.body().await?
    };
    Ok(response::json_body(body))
}

fn parse(call: &Call<'_>) -> Result<Read> {
    let stream = stream_name(call, "stream.get requires at least 1 argument: streamName")?;
    let names = [
        "position",
        "globalPosition",
        "batchSize",
        "direction",
        "type",
    ];
    let [start, global, size, order, event_type] = options(call.argument(1), names)?;
    let start = number_option(start, "options.position")?;
    let global = number_option(global, "options.globalPosition")?;
    let mut read = Read::stream(stream).limit(batch_size(size)?);
    read.direction = direction(order)?;
    read.from = match (global, start) {
        (Some(global), _) => From::Position(position(global)),
        (None, Some(start)) => From::StreamPosition(position(start)),
        (None, None) if read.direction == Direction::Backwards => From::Edge,
        (None, None) => From::StreamPosition(0),
    };
    read.filter.event_type = type_option(event_type)?;
    Ok(read)
}
