//! `["stream.delete", streamName, {expectedVersion?}]`
//!
//! Removes all events that a stream has, and answers `{"removed": n, "version": v}`: how many those
//! were, and the version of the stream, which its next event continues. It goes beyond EventoDB.

use trefoil::RemoveBefore;

use super::Context;
use super::arguments::{number_option, stream_name};
use super::audit::NotingOrder;
use super::stream_truncate::{audited_removal, remove};
use crate::error::Result;
use crate::json::{RpcCall, present};
use crate::response::HttpAnswer;
use crate::strict;

pub(super) async fn run(context: Context<'_>, call: &RpcCall<'_>) -> Result<HttpAnswer> {
    let stream = stream_name(
        call,
        "stream.delete requires at least 1 argument: streamName",
    )?;
    let [expected] = match present(call.argument(1)) {
        None => [None],
        Some(options) => strict::object(options, "options", ["expectedVersion"])?.map(present),
    };
    let expected = number_option(expected, "expectedVersion")?;
    let database = context.database().await?;
    let audited = audited_removal(&context, "stream.delete", &stream, None);
    let removed = remove(database, stream.into_owned(), RemoveBefore::End, expected);
    let order = NotingOrder::MakeRoomFirst;
    audited.run_async(&context, order, removed).await
}
