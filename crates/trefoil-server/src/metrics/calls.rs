//! What is counted of gRPC calls and of HTTP requests.
//!
//! A histogram of durations is kept for each method and code: it says how many calls there were, and
//! together with those of other codes how long they took.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::RwLock;
use trefoil::{Histogram, HistogramSnapshot, Striped};

use super::exposition::{Buckets, Exposition, MetricKind};
use super::labels::RequestLabels;

/// Calls of a protocol that has few methods and codes, by their numbers.
#[derive(Debug)]
pub(crate) struct CallTable {
    methods: &'static [&'static str],
    codes: &'static [&'static str],
    /// Those of the first method by code, then those of the second, and so on; made when they are
    /// needed.
    cells: Box<[OnceLock<Box<Striped<Histogram>>>]>,
}

impl CallTable {
    pub(super) fn new(methods: &'static [&'static str], codes: &'static [&'static str]) -> Self {
        let cells = (0..methods.len() * codes.len()).map(|_| OnceLock::new());
        Self {
            methods,
            codes,
            cells: cells.collect(),
        }
    }

    /// Counts a call that has ended.
    pub(crate) fn count(&self, method: usize, code: usize, elapsed: Duration) {
        if let Some(cell) = self.cells.get(method * self.codes.len() + code) {
            cell.get_or_init(Box::default).record_duration(elapsed);
        }
    }

    pub(super) fn put(&self, out: &mut Exposition) {
        let rows = self.cells.chunks(self.codes.len());
        let rows: Vec<(&str, Vec<(&str, HistogramSnapshot)>)> = { self.methods.iter().copied() }
            .zip(rows.map(|row| self.used(row)))
            .filter(|(_, row)| !row.is_empty())
            .collect();
        let mut calls = out.family(MetricKind::Counter, "grpc_calls", "gRPC calls that ended");
        for (method, row) in &rows {
            for (code, cell) in row {
                let labels = [("method", *method), ("code", *code)];
                calls.put(&labels, cell.count());
            }
        }
        let help = "Time from the head of a gRPC call to its end";
        let mut seconds = out.family(MetricKind::Histogram, "grpc_call_seconds", help);
        for (method, row) in rows {
            let cells = row.into_iter().map(|(_, cell)| cell);
            let all = HistogramSnapshot::of_all(cells);
            seconds.put_histogram(&[("method", method)], &all, Buckets::SECONDS);
        }
    }

    /// Returns the codes of a method that there were.
    fn used(
        &self,
        row: &[OnceLock<Box<Striped<Histogram>>>],
    ) -> Vec<(&'static str, HistogramSnapshot)> {
        let cells = self.codes.iter().zip(row);
        let used = cells.filter_map(|(code, cell)| Some((*code, cell.get()?.snapshot())));
        used.collect()
    }
}

/// HTTP requests by what they are told apart by.
#[derive(Debug, Default)]
pub(crate) struct RequestTable(RwLock<HashMap<RequestLabels, Arc<Histogram>>>);

impl RequestTable {
    /// Counts a request that has been answered.
    pub(crate) fn count(&self, labels: RequestLabels, elapsed: Duration) {
        let known = self.0.read().get(&labels).cloned();
        let histogram = known.unwrap_or_else(|| {
            let mut table = self.0.write();
            Arc::clone(table.entry(labels).or_default())
        });
        histogram.record_duration(elapsed);
    }

    pub(super) fn put(&self, out: &mut Exposition) {
        let mut rows: Vec<(RequestLabels, HistogramSnapshot)> = {
            let table = self.0.read();
            let rows = table.iter();
            rows.map(|(labels, histogram)| (*labels, histogram.snapshot()))
                .collect()
        };
        rows.sort_unstable_by_key(|(labels, _)| *labels);
        let help = "HTTP requests that were answered";
        let mut requests = out.family(MetricKind::Counter, "http_requests", help);
        for (labels, histogram) in &rows {
            let RequestLabels {
                endpoint, method, ..
            } = labels;
            let status = labels.status.to_string();
            let labels = [
                ("endpoint", *endpoint),
                ("method", *method),
                ("status", &status),
            ];
            requests.put(&labels, histogram.count());
        }
        let help = "Time from the head of an HTTP request to the head of its answer";
        let mut seconds = out.family(MetricKind::Histogram, "http_request_seconds", help);
        let is_same = |a: &(RequestLabels, _), b: &(RequestLabels, _)| {
            (a.0.endpoint, a.0.method) == (b.0.endpoint, b.0.method)
        };
        for same in rows.chunk_by(is_same) {
            let RequestLabels {
                endpoint, method, ..
            } = same[0].0;
            let all = HistogramSnapshot::of_all(same.iter().map(|(_, cell)| cell.clone()));
            let labels = [("endpoint", endpoint), ("method", method)];
            seconds.put_histogram(&labels, &all, Buckets::SECONDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_all_codes_are_those_of_a_method() {
        let calls = CallTable::new(&["Read", "Append"], &["OK", "UNKNOWN"]);
        calls.count(1, 0, Duration::from_secs(1));
        calls.count(1, 1, Duration::from_secs(2));
        let mut out = Exposition::default();
        calls.put(&mut out);
        let requests = RequestTable::default();
        for status in [200, 503, 200] {
            let labels = RequestLabels {
                status,
                ..RequestLabels::of_path("/rpc")
            };
            requests.count(labels, Duration::from_secs(4));
        }
        requests.put(&mut out);
        let text = out.finish();
        for line in [
            "trefoil_grpc_calls_total{method=\"Append\",code=\"OK\"} 1",
            "trefoil_grpc_calls_total{method=\"Append\",code=\"UNKNOWN\"} 1",
            "trefoil_grpc_call_seconds_sum{method=\"Append\"} 3",
            "trefoil_grpc_call_seconds_count{method=\"Append\"} 2",
            "trefoil_http_requests_total{endpoint=\"/rpc\",method=\"\",status=\"200\"} 2",
            "trefoil_http_requests_total{endpoint=\"/rpc\",method=\"\",status=\"503\"} 1",
            "trefoil_http_request_seconds_sum{endpoint=\"/rpc\",method=\"\"} 12",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("method=\"Read\""), "{text}");
    }
}
