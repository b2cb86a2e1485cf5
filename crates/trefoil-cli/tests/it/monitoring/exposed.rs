//! What `/metrics` says.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::Server;

/// The metrics of a server at one moment.
pub(super) struct Exposed {
    /// The name of each metric as it is written in queries, without those of a histogram's parts.
    pub(super) names: BTreeSet<String>,
    /// The values by name, in the order of their labels.
    values: BTreeMap<String, Vec<(String, f64)>>,
}

impl Exposed {
    pub(super) fn of(server: &Server) -> Self {
        let answer = server.anonymous().get("/metrics");
        assert_eq!(answer.status, 200);
        let text = answer.text().to_owned();
        assert!(text.ends_with("# EOF\n"), "{text}");
        let mut exposed = Self {
            names: BTreeSet::new(),
            values: BTreeMap::new(),
        };
        for line in text.lines() {
            exposed.take(line);
        }
        exposed
    }

    fn take(&mut self, line: &str) {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            let suffix = if kind == "counter" { "_total" } else { "" };
            assert!(self.names.insert(format!("{name}{suffix}")), "{name} twice");
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap().to_owned();
            let value: f64 = value.parse().unwrap();
            let values = self.values.entry(name).or_default();
            values.push((series.to_owned(), value));
        }
    }

    /// The values of what a query names; of a histogram, how much it has counted.
    pub(super) fn values(&self, name: &str) -> &[(String, f64)] {
        let values = self.values.get(name);
        let values = values.or_else(|| self.values.get(&format!("{name}_count")));
        values.map_or(&[], Vec::as_slice)
    }

    /// The sum of a metric over its labels.
    pub(super) fn total(&self, name: &str) -> f64 {
        self.values(name).iter().map(|(_, value)| value).sum()
    }

    /// Whether a query may name this: a metric, or a part of a histogram.
    pub(super) fn has(&self, name: &str) -> bool {
        let whole = ["_bucket", "_sum", "_count"];
        let whole = whole.iter().filter_map(|part| name.strip_suffix(part));
        self.names.contains(name) || { whole }.any(|name| self.names.contains(name))
    }
}

/// The names of metrics in a text.
pub(super) fn names_in(text: &str) -> BTreeSet<String> {
    let is_part = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
    let words = text.split(|byte: char| !is_part(byte));
    let names = words.filter(|word| word.starts_with("trefoil_"));
    names.map(str::to_owned).collect()
}
