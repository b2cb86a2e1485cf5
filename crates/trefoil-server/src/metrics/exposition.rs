//! The text format of OpenMetrics.

use std::fmt::{Display, Write as _};

use trefoil::HistogramSnapshot;

/// What the name of every metric begins with.
const PREFIX: &str = "trefoil_";

/// The names of labels and their values.
type Labels<'a> = [(&'static str, &'a str)];

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricKind {
    /// It only grows.
    Counter,
    Gauge,
    Histogram,
}

/// The limits of the buckets of a histogram. They are powers of two, from 2 to the power of `first` to
/// that of `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buckets {
    first: u32,
    last: u32,
    /// How many of what was recorded make one of the metric's unit.
    per_unit: f64,
}

impl Buckets {
    /// Numbers of something, up to 4096.
    pub(crate) const NUMBERS: Self = Self::powers(0, 12, 1.0);
    /// From 64 bytes to 64 MiB.
    pub(crate) const BYTES: Self = Self::powers(6, 26, 1.0);
    /// From 4 microseconds to 8.6 seconds, recorded in nanoseconds.
    pub(crate) const SECONDS: Self = Self::powers(12, 33, 1e9);
    /// From a millisecond to 2.3 minutes, recorded in nanoseconds.
    pub(crate) const LONG_SECONDS: Self = Self::powers(20, 37, 1e9);

    const fn powers(first: u32, last: u32, per_unit: f64) -> Self {
        Self {
            first,
            last,
            per_unit,
        }
    }
}

/// Metrics as text.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Adds a number that only grows. Its name gets `_total` behind it.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(MetricKind::Counter, name, help).put(&[], value);
    }

    /// Adds a number that goes up and down.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(MetricKind::Gauge, name, help).put(&[], value);
    }

    /// Adds a histogram.
    pub(crate) fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        snapshot: &HistogramSnapshot,
        buckets: Buckets,
    ) {
        self.family(MetricKind::Histogram, name, help)
            .put_histogram(&[], snapshot, buckets);
    }

    /// Begins a metric that has a value for each of several labels.
    pub(crate) fn family(
        &mut self,
        kind: MetricKind,
        name: &'static str,
        help: &str,
    ) -> MetricFamily<'_> {
        let kind_name = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let out = &mut self.text;
        put(out, format_args!("# HELP {PREFIX}{name} {help}.\n"));
        put(out, format_args!("# TYPE {PREFIX}{name} {kind_name}\n"));
        for unit in ["seconds", "bytes"] {
            if name.ends_with(unit) {
                put(out, format_args!("# UNIT {PREFIX}{name} {unit}\n"));
            }
        }
        MetricFamily { out, kind, name }
    }

    /// Returns the text, which is complete.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// A metric whose values are being added.
pub(crate) struct MetricFamily<'a> {
    out: &'a mut String,
    kind: MetricKind,
    name: &'static str,
}

impl MetricFamily<'_> {
    /// Adds the value of some labels.
    pub(crate) fn put(&mut self, labels: &Labels<'_>, value: impl Display) {
        let suffix = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        self.put_sample(suffix, labels, None, value);
    }

    /// Adds the histogram of some labels.
    pub(crate) fn put_histogram(
        &mut self,
        labels: &Labels<'_>,
        snapshot: &HistogramSnapshot,
        buckets: Buckets,
    ) {
        let count = snapshot.count();
        let sum = snapshot.sum() as f64 / buckets.per_unit;
        self.put_sample("_sum", labels, None, sum);
        self.put_sample("_count", labels, None, count);
        for exponent in buckets.first..=buckets.last {
            let limit = 1_u64 << exponent;
            let up_to = (limit as f64 / buckets.per_unit).to_string();
            let below = snapshot.count_up_to(limit);
            self.put_sample("_bucket", labels, Some(&up_to), below);
        }
        self.put_sample("_bucket", labels, Some("+Inf"), count);
    }

    fn put_sample(
        &mut self,
        suffix: &str,
        labels: &Labels<'_>,
        up_to: Option<&str>,
        value: impl Display,
    ) {
        let up_to = up_to.map(|limit| ("le", limit));
        let mut separator = '{';
        put(self.out, format_args!("{PREFIX}{}{suffix}", self.name));
        for (name, value) in labels.iter().copied().chain(up_to) {
            // Nothing that is a label has a character that would have to be escaped.
            put(self.out, format_args!("{separator}{name}=\"{value}\""));
            separator = ',';
        }
        let end = if separator == ',' { "}" } else { "" };
        put(self.out, format_args!("{end} {value}\n"));
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use trefoil::Histogram;

    #[test]
    fn metrics_look_as_openmetrics_wants_them() {
        let mut out = Exposition::default();
        out.counter("writes", "Writes", 7);
        out.gauge("memory_bytes", "Memory", 1.5);
        let mut calls = out.family(MetricKind::Counter, "calls", "Calls");
        calls.put(&[("method", "Read"), ("code", "OK")], 2);
        let histogram = Histogram::default();
        histogram.record(1);
        histogram.record(3);
        let buckets = Buckets::powers(1, 2, 2.0);
        out.histogram("wait_seconds", "Wait", &histogram.snapshot(), buckets);
        let expected = "# HELP trefoil_writes Writes.
# TYPE trefoil_writes counter
trefoil_writes_total 7
# HELP trefoil_memory_bytes Memory.
# TYPE trefoil_memory_bytes gauge
# UNIT trefoil_memory_bytes bytes
trefoil_memory_bytes 1.5
# HELP trefoil_calls Calls.
# TYPE trefoil_calls counter
trefoil_calls_total{method=\"Read\",code=\"OK\"} 2
# HELP trefoil_wait_seconds Wait.
# TYPE trefoil_wait_seconds histogram
# UNIT trefoil_wait_seconds seconds
trefoil_wait_seconds_sum 2
trefoil_wait_seconds_count 2
trefoil_wait_seconds_bucket{le=\"1\"} 1
trefoil_wait_seconds_bucket{le=\"2\"} 2
trefoil_wait_seconds_bucket{le=\"+Inf\"} 2
# EOF
";
        assert_eq!(out.finish(), expected);
    }
}
