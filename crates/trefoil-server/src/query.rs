//! The query string of a request.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::strict;

/// The parameters of a query string, as they stand in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryString<'a>(&'a str);

impl<'a> QueryString<'a> {
    pub(crate) fn of(uri: &'a hyper::Uri) -> Self {
        Self(uri.query().unwrap_or_default())
    }

    /// Refuses parameters that are not among `names`: for endpoints that EventoDB does not have. A token
    /// may always be there.
    pub(crate) fn only(self, names: &[&str]) -> Result<(), String> {
        let pairs = self.0.split('&').filter(|pair| !pair.is_empty());
        let mut given = pairs.map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key));
        let is_unknown = |key: &&str| match decode(key).as_deref() {
            Some("token") => false,
            Some(key) => !names.contains(&key),
            None => true,
        };
        match given.find(is_unknown) {
            None => Ok(()),
            Some(key) => Err(strict::unknown_name(
                "the query string",
                "parameter",
                key,
                names,
            )),
        }
    }

    /// The first parameter of this name that is not empty and is UTF-8 once decoded.
    pub(crate) fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.0
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .filter(|(key, _)| decode(key).as_deref() == Some(name))
            .find_map(|(_, value)| decode(value).filter(|value| !value.is_empty()))
    }

    /// Every parameter of this name; `None` if one of them is empty or not UTF-8 once decoded.
    pub(crate) fn get_all(self, name: &str) -> Option<Vec<String>> {
        self.0
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .filter(|(key, _)| decode(key).as_deref() == Some(name))
            .map(|(_, value)| decode(value).filter(|value| !value.is_empty()))
            .map(|value| value.map(Cow::into_owned))
            .collect()
    }
}

/// Replaces `+` by a space and `%xx` by the byte it stands for; `None` if that is not UTF-8. A form's
/// decoder would replace such bytes, and find a name that was not asked for.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return percent_decode_str(text).decode_utf8().ok();
    }
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(Cow::Owned(decoded.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query =
            QueryString("a=1&b=x%2By+z&%63=%E4%B8%96&empty=&empty=2&bad=%ff&odd=%4&odd2=%zz");
        let cases = [
            ("a", Some("1")),
            ("b", Some("x+y z")),
            ("c", Some("世")),
            ("empty", Some("2")),
            ("bad", None),
            ("odd", Some("%4")),
            ("odd2", Some("%zz")),
            ("none", None),
        ];
        for (name, expected) in cases {
            assert_eq!(query.get(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_parameter_that_is_unknown_is_named() {
        let names = ["position", "categories"];
        for query in ["", "&", "position=1&token=t&c%61tegories=a", "token"] {
            assert_eq!(QueryString(query).only(&names), Ok(()), "{query}");
        }
        for (query, expected) in [
            (
                "positon=1",
                "has no parameter \"positon\": did you mean \"position\"?",
            ),
            (
                "position=1&x",
                "has no parameter \"x\", only position, categories",
            ),
            (
                "%ff=1",
                "has no parameter \"%ff\", only position, categories",
            ),
        ] {
            let refused = QueryString(query).only(&names).unwrap_err();
            assert_eq!(refused, format!("the query string {expected}"), "{query}");
        }
        let refused = QueryString("x=1").only(&[]).unwrap_err();
        assert_eq!(refused, "the query string has no parameter \"x\"");
    }

    #[test]
    fn repeated_parameters_are_all_there_or_refused() {
        let query = QueryString("tag=a&tag=b%3Ac&x=1&t%61g=d&empty=&bad=1&bad=%ff&bare");
        let strings = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect());
        assert_eq!(query.get_all("tag"), strings(&["a", "b:c", "d"]));
        assert_eq!(query.get_all("none"), strings(&[]));
        for name in ["empty", "bad", "bare"] {
            assert_eq!(query.get_all(name), None, "{name}");
        }
    }
}
