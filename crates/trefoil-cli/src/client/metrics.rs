//! The server's metrics: read as text, and turned into rates, means and percentiles.
//!
//! A metric that the server does not have is 0, and has neither mean nor percentile.

use std::collections::HashMap;
use std::time::Duration;

use super::HttpClient;

/// The labels of a sample.
pub(crate) type MetricLabels = HashMap<String, String>;

/// All samples of one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct MetricsReading {
    at: Duration,
    samples: HashMap<String, Vec<(MetricLabels, f64)>>,
}

impl HttpClient {
    /// Reads `/metrics`; `at` is the time by a steady clock.
    pub(crate) fn metrics(&self, at: Duration) -> anyhow::Result<MetricsReading> {
        Ok(MetricsReading::parse(&self.text("/metrics")?, at))
    }
}

impl MetricsReading {
    /// Reads the text format of Prometheus. A line that is no sample is left out.
    pub(crate) fn parse(text: &str, at: Duration) -> Self {
        let mut samples: HashMap<String, Vec<_>> = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, labels, value)) = sample(line) {
                samples
                    .entry(name.to_owned())
                    .or_default()
                    .push((labels, value));
            }
        }
        Self { at, samples }
    }

    /// Whether the server has the metric.
    fn has(&self, name: &str) -> bool {
        self.samples.contains_key(name)
    }

    /// The sum of a metric over its labels.
    pub(crate) fn total(&self, name: &str) -> f64 {
        self.total_of(name, |_| true)
    }

    /// The sum over the labels that are selected.
    fn total_of(&self, name: &str, select: impl Fn(&MetricLabels) -> bool) -> f64 {
        let found = self.samples.get(name).into_iter().flatten();
        let found = found.filter(|(labels, _)| select(labels));
        found.map(|(_, value)| value).sum()
    }

    /// A gauge, if the server has it and knows it.
    pub(crate) fn gauge(&self, name: &str) -> Option<f64> {
        self.has(name).then(|| self.total(name))
    }

    /// The values of a label that a metric has, in order and each once.
    pub(crate) fn label_values(&self, name: &str, label: &str) -> Vec<String> {
        let found = self.labels(name);
        let mut values: Vec<String> = found
            .filter_map(|labels| labels.get(label).cloned())
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The labels of each sample of a metric.
    pub(crate) fn labels(&self, name: &str) -> impl Iterator<Item = &MetricLabels> {
        let found = self.samples.get(name).into_iter().flatten();
        found.map(|(labels, _)| labels)
    }

    /// The seconds between an earlier reading and this one.
    fn seconds_since(&self, before: &Self) -> f64 {
        self.at.saturating_sub(before.at).as_secs_f64()
    }

    /// How much a counter grew per second since a reading before.
    pub(crate) fn rate(&self, before: &Self, name: &str) -> f64 {
        self.rate_of(before, name, |_| true)
    }

    /// The same over the labels that are selected. After a restart a counter began again at 0.
    pub(crate) fn rate_of(
        &self,
        before: &Self,
        name: &str,
        select: impl Fn(&MetricLabels) -> bool,
    ) -> f64 {
        let (from, to) = (before.total_of(name, &select), self.total_of(name, &select));
        let grown = if to >= from { to - from } else { to };
        let seconds = self.seconds_since(before);
        if seconds > 0.0 { grown / seconds } else { 0.0 }
    }

    /// The mean of what a histogram counted since a reading before.
    pub(crate) fn mean(&self, before: &Self, name: &str) -> Option<f64> {
        let sum = self.rate(before, &format!("{name}_sum"));
        let count = self.rate(before, &format!("{name}_count"));
        (count > 0.0).then(|| sum / count)
    }

    /// A percentile of what a histogram counted since a reading before.
    pub(crate) fn percentile(
        &self,
        before: &Self,
        name: &str,
        share: f64,
        select: impl Fn(&MetricLabels) -> bool,
    ) -> Option<f64> {
        let name = format!("{name}_bucket");
        let mut counts: Vec<(f64, f64)> = Vec::new();
        let mut add = |reading: &Self, sign: f64| {
            for (labels, value) in reading.samples.get(&name).into_iter().flatten() {
                let bound = labels.get("le").and_then(|bound| bound.parse().ok());
                let Some(bound) = bound.filter(|_| select(labels)) else {
                    continue;
                };
                match counts.iter_mut().find(|(known, _)| *known == bound) {
                    Some((_, count)) => *count += sign * value,
                    None => counts.push((bound, sign * value)),
                }
            }
        };
        add(self, 1.0);
        if self.total_of(&name, &select) >= before.total_of(&name, &select) {
            add(before, -1.0);
        }
        counts.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        percentile_of(&counts, share)
    }
}

/// The value below which this share lies, of buckets by their upper bounds.
fn percentile_of(counts: &[(f64, f64)], share: f64) -> Option<f64> {
    let (_, all) = counts.last()?;
    let wanted = all * share;
    if wanted <= 0.0 {
        return None;
    }
    let (mut below, mut under) = (0.0, 0.0);
    for &(bound, count) in counts {
        if count >= wanted {
            return Some(match bound.is_finite() {
                true => below + (bound - below) * (wanted - under) / (count - under),
                false => below,
            });
        }
        (below, under) = (bound, count);
    }
    Some(below)
}

/// `name{label="value",…} number`
fn sample(line: &str) -> Option<(&str, MetricLabels, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (MetricLabels::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}

/// The labels up to the closing brace, and what follows it.
fn labels(mut text: &str) -> Option<(MetricLabels, &str)> {
    let mut labels = MetricLabels::new();
    loop {
        text = text.trim_start_matches(',');
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        text = loop {
            match characters.next()? {
                (index, '"') => break &rest[index + 1..],
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP x y\n# TYPE requests counter\nrequests_total{method=\"a\",status=\"200\"} 5\nrequests_total{method=\"b \\\"q\\\"\",status=\"500\"} 2.5 17\nplain 7\nbroken{ 1\nno number x\n# EOF\n";

    fn reading(text: &str, seconds: u64) -> MetricsReading {
        MetricsReading::parse(text, Duration::from_secs(seconds))
    }

    #[test]
    fn samples_are_read_with_their_labels_and_others_left_out() {
        let reading = reading(TEXT, 0);
        assert_eq!(reading.total("requests_total"), 7.5);
        let of =
            |method: &str| reading.total_of("requests_total", |labels| labels["method"] == method);
        assert_eq!((of("a"), of("b \"q\"")), (5.0, 2.5));
        assert_eq!(reading.gauge("plain"), Some(7.0));
        assert_eq!(reading.gauge("missing"), None);
        let statuses = reading.label_values("requests_total", "status");
        assert_eq!(statuses, ["200", "500"]);
    }

    #[test]
    fn rates_survive_a_restart() {
        let (before, after) = (reading("c_total 100\n", 10), reading("c_total 140\n", 14));
        assert_eq!(after.rate(&before, "c_total"), 10.0);
        assert_eq!(reading("c_total 8\n", 12).rate(&before, "c_total"), 4.0);
        assert_eq!(after.rate(&after, "c_total"), 0.0);
        assert_eq!(after.rate(&before, "missing"), 0.0);
    }

    #[test]
    fn percentiles_lie_within_their_buckets() {
        let text = |counts: [u64; 3]| {
            let [one, two, all] = counts;
            format!(
                "t_bucket{{le=\"1.0\"}} {one}\nt_bucket{{le=\"2.0\"}} {two}\nt_bucket{{le=\"+Inf\"}} {all}\nt_sum {all}\nt_count {all}\n"
            )
        };
        let before = reading(&text([10, 10, 10]), 0);
        let after = reading(&text([60, 110, 110]), 1);
        let at = |share| after.percentile(&before, "t", share, |_| true);
        assert_eq!(at(0.5), Some(1.0));
        assert_eq!(at(0.75), Some(1.5));
        assert_eq!(after.mean(&before, "t"), Some(1.0));
        assert_eq!(before.percentile(&before, "t", 0.5, |_| true), None);
        assert_eq!(before.mean(&before, "t"), None);
    }
}
