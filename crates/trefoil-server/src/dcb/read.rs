//! `GET /dcb/read?query=<json>&options=<json>`, or `POST /dcb/read {"query", "options"}`:
//! answers `[{"type", "tags", "data", "position"}]`.
//!
//! Options are `from`, inclusive in either direction, `backwards` and `limit`.

use hyper::Method;
use hyper::http::request::Parts;
use serde_json::value::RawValue;
use trefoil::{Event, Selection};

use crate::auth::Access;
use crate::budget::Share;
use crate::criteria::Criteria;
use crate::error::{Failure, Result};
use crate::json::{present, put_number, put_string};
use crate::pages::Pages;
use crate::query::QueryString;
use crate::reading::{EventWriter, Reading};
use crate::response::{self, HttpAnswer};
use crate::rpc::rows::{put_data, put_tags};
use crate::service::Shared;
use crate::strict;

/// Answers `/dcb/read`; the body is empty unless the request is a POST.
pub(crate) async fn answer(
    shared: &Shared,
    access: &Access,
    share: &Share,
    parts: &Parts,
    body: &[u8],
) -> Result<HttpAnswer> {
    let parameters = QueryString::of(&parts.uri);
    let read = if parts.method == Method::POST {
        parameters.only(&[]).map_err(Failure::invalid)?;
        let request = json(body, "request body")?;
        let [query, options] = strict::object(request, "request", ["query", "options"])?;
        parse(present(query), present(options))?
    } else {
        let known = parameters.only(&["query", "options"]);
        known.map_err(Failure::invalid)?;
        let (query, options) = (parameters.get("query"), parameters.get("options"));
        let query = query.as_deref().map(|text| json(text.as_bytes(), "query"));
        let options = options
            .as_deref()
            .map(|text| json(text.as_bytes(), "options"));
        parse(present(query.transpose()?), present(options.transpose()?))?
    };
    let database = access.database(shared).await?;
    let reading = Reading::new(
        Pages::new(database, read)?,
        Objects { is_first: true },
        share,
    );
    Ok(response::json_body(reading.body().await?))
}

pub(super) fn json<'a>(text: &'a [u8], what: &str) -> Result<&'a RawValue> {
    let value = serde_json::from_slice(text);
    value.map_err(|error| Failure::invalid(format!("{what} is not JSON: {error}")))
}

fn parse(query: Option<&RawValue>, options: Option<&RawValue>) -> Result<Selection> {
    let criteria = query.map(|query| Criteria::parse(query, "query"));
    let mut read = criteria
        .transpose()?
        .map_or_else(Selection::all, Criteria::into_read);
    let Some(options) = options else {
        return Ok(read);
    };
    let options = strict::object(options, "options", ["from", "backwards", "limit"])?;
    let [from, backwards, limit] = options.map(present);
    if let Some(from) = strict::optional_position(from, "options.from")? {
        read = read.from_position(from);
    }
    if strict::flag(backwards, "options.backwards")? {
        read = read.backwards();
    }
    if let Some(limit) = strict::optional_position(limit, "options.limit")? {
        read.limit = usize::try_from(limit).unwrap_or(usize::MAX);
    }
    Ok(read)
}

/// Writes an array of objects.
struct Objects {
    is_first: bool,
}

impl EventWriter for Objects {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.push(b'[');
    }

    fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        if !std::mem::take(&mut self.is_first) {
            out.push(b',');
        }
        out.reserve(event.stored_bytes() + 64);
        out.extend_from_slice(b"{\"type\":");
        put_string(out, event.event_type());
        out.extend_from_slice(b",\"tags\":");
        put_tags(out, event);
        out.extend_from_slice(b",\"data\":");
        put_data(out, event);
        out.extend_from_slice(b",\"position\":");
        put_number(out, event.position());
        out.push(b'}');
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.push(b']');
    }
}
