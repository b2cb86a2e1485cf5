//! `["stream.truncate", streamName, {position | globalPosition | time, expectedVersion?}]`
//!
//! Removes the events of a stream before a place, and answers `{"removed": n, "version": v}`: how many
//! those were, and the version of the stream, which stays. It goes beyond EventoDB.

use serde_json::value::RawValue;
use trefoil::{OpenDatabase, RemoveBefore, Timestamp, Truncated};

use super::Context;
use super::arguments::{number_option, stream_name};
use super::audit::{AuditedCall, NotingOrder};
use crate::error::{Failure, Result};
use crate::json::{ObjectWriter, RpcCall, present, text};
use crate::response::{self, HttpAnswer};
use crate::strict;

/// What stands before the place at which a stream is cut.
enum CutPlace {
    At(RemoveBefore),
    Time(Timestamp),
}

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let missing = "stream.truncate requires 2 arguments: streamName and a place";
    let stream = stream_name(call, missing)?;
    let place = call.argument(1).ok_or_else(|| Failure::invalid(missing))?;
    let names = ["position", "globalPosition", "time", "expectedVersion"];
    let [position, global, time, expected] =
        strict::object(place, "the place", names)?.map(present);
    let expected = number_option(expected, "expectedVersion")?;
    let place = parse_place(position, global, time)?;
    let database = context.database().await?;
    let before = match place {
        CutPlace::At(before) => before,
        CutPlace::Time(time) => {
            database
                .elsewhere(move |database| database.before_time(time))
                .await?
        }
    };
    let audited = audited_removal(&context, "stream.truncate", &stream, Some(before));
    let removed = remove(database, stream.into_owned(), before, expected);
    let order = NotingOrder::MakeRoomFirst;
    audited.run_async(&context, order, removed).await
}

/// What the audit log is told of a removal.
pub(super) fn audited_removal(
    context: &Context<'_>,
    method: &str,
    stream: &str,
    before: Option<RemoveBefore>,
) -> AuditedCall {
    let audited = AuditedCall::new(context, method, context.access.namespace.as_str());
    audited.with_details(|object| {
        object.text("stream", stream);
        match before {
            Some(RemoveBefore::Position(position)) => object.number("globalPosition", position),
            Some(RemoveBefore::StreamPosition(position)) => object.number("position", position),
            _ => {}
        }
    })
}

fn parse_place(
    position: Option<&RawValue>,
    global: Option<&RawValue>,
    time: Option<&RawValue>,
) -> Result<CutPlace> {
    match (position, global, time) {
        (Some(_), None, None) => {
            let position = strict::position(position, "position")?;
            Ok(CutPlace::At(RemoveBefore::StreamPosition(position)))
        }
        (None, Some(_), None) => {
            let position = strict::position(global, "globalPosition")?;
            Ok(CutPlace::At(RemoveBefore::Position(position)))
        }
        (None, None, Some(time)) => {
            let time = text(time).and_then(|time| Timestamp::parse(&time));
            let wrong = || Failure::invalid("time must be an RFC 3339 time");
            Ok(CutPlace::Time(time.ok_or_else(wrong)?))
        }
        _ => Err(Failure::invalid(
            "the place must have one of position, globalPosition and time",
        )),
    }
}

/// Removes events of a stream and answers how many.
pub(super) async fn remove(
    database: OpenDatabase,
    stream: String,
    before: RemoveBefore,
    expected: Option<i64>,
) -> Result<HttpAnswer> {
    let Truncated {
        removed, version, ..
    } = database.truncate_async(&stream, before, expected).await?;
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    object.number("removed", removed);
    object.number_or_null("version", version);
    object.end();
    Ok(response::json(out))
}
