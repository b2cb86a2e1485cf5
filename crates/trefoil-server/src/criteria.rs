//! Which events are meant, in JSON:
//! `{"items": [{"types": […], "tags": […]}], "stream"?: s | "category"?: c}`.
//!
//! Every list may be left out: an item without types takes any type, one without tags demands
//! none, and a query without items takes every event.

use serde_json::value::RawValue;
use trefoil::limits::{QUERY_ITEMS_MAX, QUERY_TERMS_MAX, STREAM_NAME_BYTES_MAX};
use trefoil::{Error, Query, QueryItem, Selection, Source};

use crate::error::{Failure, Result};
use crate::json::present;
use crate::strict;

/// Which events are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Criteria {
    pub(crate) source: Source,
    pub(crate) query: Query,
}

impl Criteria {
    /// Reads a query; `what` is how errors call it.
    pub(crate) fn parse(value: &RawValue, what: &str) -> Result<Self> {
        let [items, stream, category] =
            strict::object(value, what, ["items", "stream", "category"])?;
        let items = strict::list(present(items), &format!("{what}.items"), QUERY_ITEMS_MAX)?;
        let items = items
            .into_iter()
            .enumerate()
            .map(|(index, value)| item(value, &format!("{what}.items[{index}]")));
        let query: Query = items.collect::<Result<_>>()?;
        query.validate()?;
        Ok(Self {
            source: source(present(stream), present(category), what)?,
            query,
        })
    }

    /// A read of these events.
    pub(crate) fn into_read(self) -> Selection {
        let mut read = Selection::query(self.query);
        read.source = self.source;
        read
    }
}

fn source(stream: Option<&RawValue>, category: Option<&RawValue>, what: &str) -> Result<Source> {
    let named = |value, field: &str| {
        let field = format!("{what}.{field}");
        let name = strict::name(Some(value), &field)?;
        if name.len() > STREAM_NAME_BYTES_MAX {
            let length = format!("length of {field}");
            return Err(Error::over_limit(&length, name.len(), STREAM_NAME_BYTES_MAX).into());
        }
        Ok::<_, Failure>(name)
    };
    match (stream, category) {
        (None, None) => Ok(Source::All),
        (Some(stream), None) => Ok(Source::Stream(named(stream, "stream")?)),
        (None, Some(category)) => Ok(Source::Category(named(category, "category")?)),
        (Some(_), Some(_)) => Err(Failure::invalid(format!(
            "{what}.stream and {what}.category exclude each other"
        ))),
    }
}

fn item(value: &RawValue, what: &str) -> Result<QueryItem> {
    let [types, tags] = strict::object(value, what, ["types", "tags"])?;
    let names = |value, field: &str| {
        let field = format!("{what}.{field}");
        let names = strict::texts(present(value), &field, QUERY_TERMS_MAX)?;
        if names.iter().any(String::is_empty) {
            return Err(Failure::invalid(format!("{field} holds an empty string")));
        }
        Ok(names)
    };
    Ok(QueryItem {
        types: names(types, "types")?,
        tags: names(tags, "tags")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Criteria, String> {
        let value: &RawValue = serde_json::from_str(text).unwrap();
        Criteria::parse(value, "query").map_err(|failure| failure.message)
    }

    #[test]
    fn what_is_left_out_demands_nothing() {
        let all = Criteria {
            source: Source::All,
            query: Query::all(),
        };
        for text in ["{}", r#"{"items":[]}"#, r#"{"items":null,"stream":null}"#] {
            assert_eq!(parse(text).unwrap(), all, "{text}");
        }
        let any = parse(r#"{"items":[{},{"types":null,"tags":[]}]}"#).unwrap();
        assert_eq!(any.query.items, [QueryItem::any(), QueryItem::any()]);
    }

    #[test]
    fn items_and_a_source_are_read() {
        let text = r#"{"category":"course","items":[{"types":["A","B"],"tags":["x","\u0079"]},{"tags":["z"]}]}"#;
        let first = QueryItem::any()
            .of_type("A")
            .of_type("B")
            .tagged("x")
            .tagged("y");
        let query = Query::from(first).or(QueryItem::any().tagged("z"));
        let source = Source::Category("course".to_owned());
        assert_eq!(parse(text).unwrap(), Criteria { source, query });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = format!(r#"{{"items":[{}]}}"#, vec!["{}"; 10_001].join(","));
        let wide = format!(
            r#"{{"items":[{{"types":[{}],"tags":["t"]}}]}}"#,
            vec!["\"t\""; 10_000].join(",")
        );
        let long = format!(r#"{{"items":[{{"tags":["{}"]}}]}}"#, "t".repeat(4097));
        for (text, expected) in [
            ("[]", "query must be an object"),
            (r#"{"items":{}}"#, "query.items must be an array"),
            (r#"{"items":[1]}"#, "query.items[0] must be an object"),
            (
                r#"{"items":[{},{"type":["A"]}]}"#,
                r#"query.items[1] has no field "type": did you mean "types"?"#,
            ),
            (
                r#"{"items":[{"tags":"x"}]}"#,
                "query.items[0].tags must be an array",
            ),
            (
                r#"{"items":[{"tags":[1]}]}"#,
                "query.items[0].tags must be an array of strings",
            ),
            (
                r#"{"items":[{"types":[""]}]}"#,
                "query.items[0].types holds an empty string",
            ),
            (
                r#"{"stream":""}"#,
                "query.stream must be a non-empty string",
            ),
            (
                r#"{"stream":"a-1","category":"a"}"#,
                "query.stream and query.category exclude each other",
            ),
            (&many, "length of query.items is 10001, the limit is 10000"),
            (
                &wide,
                "number of types and tags in a query is 10001, the limit is 10000",
            ),
            (
                &long,
                "length of a tag in a query is 4097, the limit is 4096",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected);
        }
    }
}
