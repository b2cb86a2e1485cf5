//! `GET /export?categories=a,b&since=time&until=time&position=n`: events in NDJSON, as `/import`
//! takes them. With `state=true`, all events, and after them the state after the last of them.
//!
//! `since` is inclusive, `until` exclusive; both are RFC 3339 times or dates. It goes beyond
//! EventoDB, whose command line pages through `category.get` instead.

mod state;

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use trefoil::category;
use trefoil::{Database, Event, Selection, Timestamp};

use crate::auth::Access;
use crate::budget::Share;
use crate::error::{Failure, Result};
use crate::pages::Pages;
use crate::query::QueryString;
use crate::reading::{EventWriter, Reading};
use crate::record::put_line;
use crate::response::{self, HttpAnswer};
use crate::service::Shared;
use state::StateReading;

/// Answers `/export`.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    access: &Access,
    share: &Share,
    parts: &Parts,
) -> Result<HttpAnswer> {
    let query = QueryString::of(&parts.uri);
    let (lines, position) = parse(query)?;
    let with_state = with_state(query)?;
    let database = access.database(shared).await?;
    let prepare = move |database: &Database| Ok((start(database, &lines, position)?, lines));
    let (read, lines) = database.elsewhere(prepare).await?;
    let body = match with_state {
        false => {
            let pages = Pages::new(database, read)?;
            Reading::new(pages, lines, share).body().await?
        }
        true => {
            let state = database.elsewhere(Database::export_state).await?;
            let pages = Pages::as_of(database.clone(), read, state.position());
            let events = Reading::new(pages, lines, share).body().await?;
            state::append(events, StateReading::new(database, state, share))
        }
    };
    let content_type = HeaderValue::from_static("application/x-ndjson");
    Ok(response::answer(StatusCode::OK, content_type, body))
}

/// Which events are exported. Times are looked at one by one: those of imported events need not
/// ascend.
#[derive(Debug, Default)]
struct ExportLines {
    categories: Vec<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl ExportLines {
    fn wants(&self, event: &Event) -> bool {
        let in_category = |stream| self.categories.iter().any(|name| name == category(stream));
        (self.categories.is_empty() || event.stream().is_some_and(in_category))
            && self.since.is_none_or(|since| event.time() >= since)
            && self.until.is_none_or(|until| event.time() < until)
    }
}

impl EventWriter for ExportLines {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        if self.wants(event) {
            put_line(out, event);
        }
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}

fn parse(query: QueryString<'_>) -> Result<(ExportLines, u64)> {
    let known = query.only(&["position", "categories", "since", "until", "state"]);
    known.map_err(Failure::invalid)?;
    let time = |name: &str| match query.get(name) {
        None => Ok(None),
        Some(text) => parse_time(&text).map(Some).ok_or_else(|| {
            Failure::invalid(format!(
                "{name} must be an RFC 3339 time or a date (YYYY-MM-DD)"
            ))
        }),
    };
    let position = match query.get("position") {
        None => 0,
        Some(text) => text
            .parse()
            .map_err(|_| Failure::invalid("position must be a number"))?,
    };
    let categories = query.get("categories").unwrap_or_default();
    let categories = categories
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let lines = ExportLines {
        categories: categories.map(str::to_owned).collect(),
        since: time("since")?,
        until: time("until")?,
    };
    Ok((lines, position))
}

/// Returns whether the state is wanted. It is that of all events, so none of them may be left out.
fn with_state(query: QueryString<'_>) -> Result<bool> {
    match query.get("state").as_deref() {
        None | Some("false") => return Ok(false),
        Some("true") => {}
        Some(_) => return Err(Failure::invalid("state must be true or false")),
    }
    let names = ["position", "categories", "since", "until"];
    match names.iter().find(|name| query.get(name).is_some()) {
        None => Ok(true),
        Some(name) => Err(Failure::invalid(format!(
            "state=true exports all events, so {name} must be left out"
        ))),
    }
}

/// A date means its first moment, UTC.
fn parse_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")))
}

/// The read that finds the events: no earlier than it must begin.
fn start(database: &Database, lines: &ExportLines, position: u64) -> trefoil::Result<Selection> {
    let first = match lines.since {
        None => position,
        Some(since) => {
            let none = database.head()?.saturating_add(1);
            database.position_at(since)?.unwrap_or(none).max(position)
        }
    };
    let read = match lines.categories.as_slice() {
        [only] => Selection::category(only),
        _ => Selection::all(),
    };
    Ok(read.from_position(first))
}
