//! How a query finds its events, as JSON:
//! `{"strategy", "range": [first, last], "estimate", "items": [{"terms": [{"kind", "names",
//! "events", "role"}]}]}`.

use trefoil::{ExplainedTerm, Explanation, Role, Strategy};

use crate::json::{put_array, put_number, put_string};

pub(super) fn to_json(explanation: &Explanation) -> Vec<u8> {
    let mut out = b"{\"strategy\":".to_vec();
    put_string(&mut out, strategy(explanation.strategy));
    out.extend_from_slice(b",\"range\":[");
    put_number(&mut out, explanation.range.0);
    out.push(b',');
    put_number(&mut out, explanation.range.1);
    out.extend_from_slice(b"],\"estimate\":");
    put_number(&mut out, explanation.estimate);
    out.extend_from_slice(b",\"items\":");
    put_array(&mut out, &explanation.items, |out, item| {
        out.extend_from_slice(b"{\"terms\":");
        put_array(out, &item.terms, put_term);
        out.push(b'}');
    });
    out.push(b'}');
    out
}

fn put_term(out: &mut Vec<u8>, term: &ExplainedTerm) {
    out.extend_from_slice(b"{\"kind\":");
    put_string(out, term.kind);
    out.extend_from_slice(b",\"names\":");
    put_array(out, &term.names, |out, name| put_string(out, name));
    out.extend_from_slice(b",\"events\":");
    put_number(out, term.events);
    out.extend_from_slice(b",\"role\":");
    put_string(out, role(term.role));
    out.push(b'}');
}

fn strategy(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Nothing => "nothing",
        Strategy::Index => "index",
        Strategy::Scan => "scan",
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Lead => "lead",
        Role::Intersect => "intersect",
        Role::Verify => "verify",
    }
}
