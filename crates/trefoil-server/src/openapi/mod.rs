//! `/openapi.json`: the HTTP API in OpenAPI 3.1.
//!
//! `document.json` describes the endpoints and what several methods have in common. Each method of
//! `/rpc` has a file in `methods`, without which it does not compile. The places in `document.json`
//! that begin with a `$` are filled in from these files when the first client asks.

use std::sync::LazyLock;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::VERSION;
use crate::response::HttpAnswer;
use crate::rpc::METHODS;
use crate::served_file::ServedFile;

const DOCUMENT: &str = include_str!("document.json");

/// What a file of `methods` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MethodDescription<'a> {
    summary: String,
    /// The schema of the call, a tuple of the name and the arguments.
    #[serde(borrow)]
    request: &'a RawValue,
    #[serde(borrow)]
    result: &'a RawValue,
    /// The codes of the errors that are its own; others may occur everywhere.
    #[serde(borrow)]
    errors: &'a RawValue,
    #[serde(borrow)]
    example: MethodExample<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MethodExample<'a> {
    #[serde(borrow)]
    request: &'a RawValue,
    #[serde(borrow)]
    result: &'a RawValue,
}

static FILE: LazyLock<ServedFile> = LazyLock::new(|| {
    // A test sees to it that every file can be read.
    let document = document().unwrap_or_default();
    let content_type = HeaderValue::from_static("application/json");
    ServedFile::new(content_type, Bytes::from(document))
});

/// Answers `/openapi.json`.
pub(crate) fn answer(headers: &HeaderMap) -> HttpAnswer {
    FILE.answer(headers)
}

fn document() -> serde_json::Result<String> {
    let mut parts = MethodParts::default();
    for (name, text) in METHODS {
        parts.add(name, &serde_json::from_str(text)?)?;
    }
    let filled = DOCUMENT.replace("$version", VERSION);
    let filled = filled.replace("$list", parts.list.trim_end());
    let filled = filled.replace("\"$requests\"", &parts.requests.join(","));
    let filled = filled.replace("\"$results\"", &parts.results.join(","));
    let filled = filled.replace("\"$examples\": true", &parts.examples.join(","));
    let filled = filled.replace("\"$methods\": true", &parts.methods.join(","));
    Ok(filled.replace("\"$schemas\": true", &parts.schemas.join(",")))
}

/// What the methods add to the document.
#[derive(Debug, Default)]
struct MethodParts {
    /// Lines of Markdown, escaped as in a text of JSON.
    list: String,
    requests: Vec<String>,
    results: Vec<String>,
    examples: Vec<String>,
    methods: Vec<String>,
    schemas: Vec<String>,
}

impl MethodParts {
    fn add(&mut self, name: &str, method: &MethodDescription<'_>) -> serde_json::Result<()> {
        let MethodDescription {
            summary,
            request,
            result,
            errors,
            example,
        } = method;
        let summary = serde_json::to_string(summary)?;
        let (call, answer) = (reference(name), reference(&format!("{name}.result")));
        self.list += &format!("- `{name}`: {}\\n", summary.trim_matches('"'));
        self.examples.push(format!(
            "\"{name}\":{{\"summary\":{summary},\"value\":{}}}",
            example.request
        ));
        self.methods.push(format!(
            "\"{name}\":{{\"summary\":{summary},\"request\":{call},\"result\":{answer},\"errors\":{errors}}}"
        ));
        self.schemas.push(format!(
            "\"{name}\":{},\"{name}.result\":{}",
            described(
                request,
                &[("title", &format!("\"{name}\"")), ("description", &summary)]
            ),
            described(result, &[("examples", &format!("[{}]", example.result))]),
        ));
        self.requests.push(call);
        self.results.push(answer);
        Ok(())
    }
}

fn reference(name: &str) -> String {
    format!("{{\"$ref\":\"#/components/schemas/{name}\"}}")
}

/// A schema with further members, which come first.
fn described(schema: &RawValue, members: &[(&str, &str)]) -> String {
    let mut out = String::from("{");
    for (name, value) in members {
        out += &format!("\"{name}\":{value},");
    }
    out += schema.get().trim_start_matches('{');
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::metrics::labels::ENDPOINTS;

    fn parsed() -> Value {
        serde_json::from_str(&document().unwrap()).unwrap()
    }

    fn names(object: &Value) -> BTreeSet<&str> {
        object
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect()
    }

    #[test]
    fn every_method_is_described_once_and_nothing_else_is() {
        let document = parsed();
        let operation = &document["paths"]["/rpc"]["post"];
        let methods: BTreeSet<&str> = METHODS.iter().map(|(name, _)| *name).collect();
        assert_eq!(methods.len(), METHODS.len());
        assert_eq!(names(&operation["x-methods"]), methods);
        let content = &operation["requestBody"]["content"]["application/json"];
        assert_eq!(names(&content["examples"]), methods);
        for name in &methods {
            let schema = &document["components"]["schemas"][name];
            assert_eq!(schema["prefixItems"][0]["const"], *name);
            assert_eq!(content["examples"][name]["value"][0], *name);
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi/methods");
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.collect();
        let expected: BTreeSet<String> =
            methods.iter().map(|name| format!("{name}.json")).collect();
        assert_eq!(files, expected);
        assert_eq!(document["info"]["version"], VERSION);
        assert!(!document.to_string().contains("\"$schemas\""));
    }

    #[test]
    fn every_endpoint_is_described() {
        let document = parsed();
        let paths = names(&document["paths"]);
        let console = ["/", "/console/{file}", "/console.json"];
        let expected: BTreeSet<&str> = ENDPOINTS.into_iter().chain(console).collect();
        assert_eq!(paths, expected);
    }

    #[test]
    fn references_lead_somewhere() {
        let document = parsed();
        let text = document.to_string();
        let references = text.split("\"$ref\":\"#").skip(1);
        let mut n_references = 0;
        for reference in references.map(|rest| rest.split('"').next().unwrap()) {
            n_references += 1;
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
        assert!(n_references > 100, "{n_references}");
    }
}
