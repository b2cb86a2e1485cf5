//! Types and tags on the command line: `type=A,type=B,tag=x,tag=y`, or the same as JSON.

use serde::{Deserialize, Serialize};

/// One alternative of a query: any of the types, all of the tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct ItemArguments {
    pub(super) types: Vec<String>,
    pub(super) tags: Vec<String>,
}

/// Which events are meant, as the server takes it.
#[derive(Debug, Serialize)]
pub(super) struct QueryArguments<'a> {
    pub(super) items: Vec<&'a ItemArguments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) category: Option<&'a str>,
}

/// An alternative, and the position up to which events do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardArguments {
    pub(super) item: ItemArguments,
    pub(super) after: Option<u64>,
}

/// What the JSON form may hold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemJson {
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    after: Option<u64>,
}

impl ItemArguments {
    /// Reads an alternative.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let GuardArguments { item, after } = GuardArguments::parse(text)?;
        match after {
            None => Ok(item),
            Some(_) => Err("after=… does not belong here: see --after".to_owned()),
        }
    }
}

impl GuardArguments {
    /// Reads an alternative that may also have `after=N`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('{') {
            let ItemJson { types, tags, after } =
                serde_json::from_str(text).map_err(|error| error.to_string())?;
            let item = ItemArguments { types, tags };
            return Ok(Self { item, after });
        }
        let mut guard = Self {
            item: ItemArguments::default(),
            after: None,
        };
        for term in text.split(',') {
            match term.split_once('=') {
                Some((_, "")) => return Err(format!("{term:?} names nothing")),
                Some(("type", name)) => guard.item.types.push(name.to_owned()),
                Some(("tag", name)) => guard.item.tags.push(name.to_owned()),
                Some(("after", position)) => guard.after = Some(parse_position(position)?),
                _ => {
                    return Err(format!(
                        "{term:?} is neither type=… nor tag=…; a name with a comma needs JSON, \
                         as in {{\"types\":[\"A\"],\"tags\":[\"a,b\"]}}"
                    ));
                }
            }
        }
        Ok(guard)
    }
}

fn parse_position(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("after={text} is not a position"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(types: &[&str], tags: &[&str]) -> ItemArguments {
        let strings = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        ItemArguments {
            types: strings(types),
            tags: strings(tags),
        }
    }

    #[test]
    fn terms_are_read_in_both_forms() {
        for (text, expected) in [
            ("type=A", item(&["A"], &[])),
            (
                "type=A,tag=course:c1,type=B,tag=k=v",
                item(&["A", "B"], &["course:c1", "k=v"]),
            ),
            (r#"{"tags":["a,b"]}"#, item(&[], &["a,b"])),
            ("{}", item(&[], &[])),
        ] {
            assert_eq!(ItemArguments::parse(text).unwrap(), expected, "{text}");
        }
        for text in ["tag=x,after=7", r#"{"tags":["x"],"after":7}"#] {
            let guard = GuardArguments::parse(text).unwrap();
            assert_eq!((guard.item, guard.after), (item(&[], &["x"]), Some(7)));
        }
    }

    #[test]
    fn what_is_no_term_is_told() {
        for (text, expected) in [
            ("", "neither type"),
            ("course:c1", "neither type"),
            ("tag=a,b", "\"b\" is neither"),
            ("tag=", "names nothing"),
            ("tag=a,", "neither type"),
            ("tags=a", "neither type"),
            ("tag=a,after=x", "after=x is not a position"),
            ("tag=a,after=-1", "after=-1 is not a position"),
            ("tag=a,after=1", "does not belong here"),
            ("{", "EOF"),
            (r#"{"tag":["x"]}"#, "unknown field"),
            (r#"{"tags":"x"}"#, "invalid type"),
        ] {
            let error = ItemArguments::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
