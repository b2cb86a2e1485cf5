//! The newest readings of the metrics, and what follows from them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use trefoil::Clock;

use super::super::info::{connections, requests, uptime};
use crate::client::{MetricLabels, MetricsReading};

/// Over how many readings times are told: a single second may have none.
const WINDOW: usize = 5;

/// How many points a curve has at most: those of the widest terminal that is usual.
const POINTS: usize = 400;

/// Methods of `/rpc` that write.
const WRITES: [&str; 6] = [
    "commit",
    "stream.write",
    "seats.init",
    "seats.reserve",
    "seats.finalize",
    "seats.release",
];

/// What the methods are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodOrder {
    Calls,
    Errors,
    Time,
    Name,
}

/// A method of any protocol, and how it is used.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MethodLine {
    pub(super) protocol: &'static str,
    pub(super) method: String,
    pub(super) calls: f64,
    /// Not known of RESP, which counts errors of all commands together.
    pub(super) errors: Option<f64>,
    pub(super) median: Option<f64>,
    pub(super) slowest: Option<f64>,
}

/// What is shown.
#[derive(Debug)]
pub(super) struct LiveModel {
    pub(super) url: String,
    pub(super) version: String,
    pub(super) every: Duration,
    pub(super) is_paused: bool,
    pub(super) order: MethodOrder,
    pub(super) is_reversed: bool,
    /// For how long the server had been running, in seconds.
    pub(super) uptime: Option<f64>,
    /// Why the last reading failed.
    pub(super) trouble: Option<String>,
    /// The newest last.
    readings: VecDeque<MetricsReading>,
    pub(super) commits: VecDeque<u64>,
    pub(super) reads: VecDeque<u64>,
}

impl LiveModel {
    pub(super) fn new(url: &str, version: &str, every: Duration, first: MetricsReading) -> Self {
        Self {
            url: url.to_owned(),
            version: version.to_owned(),
            every,
            is_paused: false,
            order: MethodOrder::Calls,
            is_reversed: false,
            uptime: uptime(&first, Clock::default().now()),
            trouble: None,
            readings: VecDeque::from([first]),
            commits: VecDeque::new(),
            reads: VecDeque::new(),
        }
    }

    pub(super) fn pause(&mut self) {
        self.is_paused = !self.is_paused;
    }

    /// Takes a reading. While it pauses, what is shown stays.
    pub(super) fn note(&mut self, answer: Result<MetricsReading, String>) {
        if self.is_paused {
            return;
        }
        match answer {
            Err(trouble) => self.trouble = Some(trouble),
            Ok(reading) => {
                self.trouble = None;
                self.uptime = uptime(&reading, Clock::default().now());
                self.readings.push_back(reading);
                if self.readings.len() > WINDOW {
                    self.readings.pop_front();
                }
                let (commits, reads) = (self.commit_rate(), self.read_rate());
                push(&mut self.commits, commits);
                push(&mut self.reads, reads);
            }
        }
    }

    /// The newest reading, the one before it, and the oldest that is kept.
    fn ends(&self) -> Option<(&MetricsReading, &MetricsReading, &MetricsReading)> {
        let (oldest, newest) = (self.readings.front()?, self.readings.back()?);
        let before = self.readings.iter().rev().nth(1).unwrap_or(newest);
        Some((newest, before, oldest))
    }

    /// How much a counter grows per second.
    pub(super) fn rate(&self, name: &str) -> f64 {
        self.ends()
            .map_or(0.0, |(now, before, _)| now.rate(before, name))
    }

    /// Commits of all protocols per second.
    pub(super) fn commit_rate(&self) -> f64 {
        self.rate("trefoil_group_commits_sum")
    }

    /// Requests of all protocols per second.
    pub(super) fn request_rate(&self) -> f64 {
        self.ends()
            .map_or(0.0, |(now, before, _)| requests(now, before))
    }

    /// Requests over HTTP per second that only read.
    pub(super) fn read_rate(&self) -> f64 {
        self.ends().map_or(0.0, |(now, before, _)| {
            now.rate_of(before, "trefoil_http_requests_total", is_read)
        })
    }

    /// A percentile of the time that writes over HTTP take.
    pub(super) fn write_time(&self, share: f64) -> Option<f64> {
        self.time("trefoil_http_request_seconds", share, is_write)
    }

    /// A percentile of the time that reads over HTTP take.
    pub(super) fn read_time(&self, share: f64) -> Option<f64> {
        self.time("trefoil_http_request_seconds", share, is_read)
    }

    /// A percentile of a histogram over the last readings.
    pub(super) fn time(
        &self,
        name: &str,
        share: f64,
        select: impl Fn(&MetricLabels) -> bool,
    ) -> Option<f64> {
        let (now, _, oldest) = self.ends()?;
        now.percentile(oldest, name, share, select)
    }

    /// The mean of a histogram over the last readings.
    pub(super) fn mean(&self, name: &str) -> Option<f64> {
        let (now, _, oldest) = self.ends()?;
        now.mean(oldest, name)
    }

    /// A gauge, if the server has it.
    pub(super) fn gauge(&self, name: &str) -> Option<f64> {
        self.ends().and_then(|(now, ..)| now.gauge(name))
    }

    pub(super) fn connections(&self) -> f64 {
        self.ends().map_or(0.0, |(now, ..)| connections(now))
    }

    /// The methods that were called since the last reading, in their order.
    pub(super) fn methods(&self) -> Vec<MethodLine> {
        let Some((now, before, oldest)) = self.ends() else {
            return Vec::new();
        };
        let mut lines = http_methods(now, before, oldest);
        lines.extend(commands(now, before));
        lines.extend(calls(now, before, oldest));
        let number = |value: Option<f64>| value.unwrap_or(-1.0);
        lines.sort_by(|one, other| match self.order {
            MethodOrder::Calls => other.calls.total_cmp(&one.calls),
            MethodOrder::Errors => number(other.errors).total_cmp(&number(one.errors)),
            MethodOrder::Time => number(other.slowest).total_cmp(&number(one.slowest)),
            MethodOrder::Name => one.method.cmp(&other.method),
        });
        if self.is_reversed {
            lines.reverse();
        }
        lines
    }
}

fn push(points: &mut VecDeque<u64>, value: f64) {
    // Curves are drawn of whole numbers; a rate is far from the ends of their range.
    points.push_back(value.round() as u64);
    if points.len() > POINTS {
        points.pop_front();
    }
}

fn label<'a>(labels: &'a MetricLabels, name: &str) -> &'a str {
    labels.get(name).map_or("", String::as_str)
}

fn is_write(labels: &MetricLabels) -> bool {
    label(labels, "endpoint") == "/dcb/append" || WRITES.contains(&label(labels, "method"))
}

fn is_read(labels: &MetricLabels) -> bool {
    match label(labels, "endpoint") {
        "/dcb/read" | "/export" | "/backup" => true,
        "/rpc" => {
            let method = label(labels, "method");
            let is_about_events = ["stream.", "category.", "events.", "seats.", "position."]
                .iter()
                .any(|prefix| method.starts_with(prefix));
            is_about_events && !is_write(labels)
        }
        _ => false,
    }
}

/// Methods of `/rpc`, and the other endpoints.
fn http_methods(
    now: &MetricsReading,
    before: &MetricsReading,
    oldest: &MetricsReading,
) -> Vec<MethodLine> {
    const REQUESTS: &str = "trefoil_http_requests_total";
    let mut names: BTreeMap<String, (String, String)> = BTreeMap::new();
    for labels in now.labels(REQUESTS) {
        let (endpoint, method) = (label(labels, "endpoint"), label(labels, "method"));
        let shown = if method.is_empty() { endpoint } else { method };
        names.insert(shown.to_owned(), (endpoint.to_owned(), method.to_owned()));
    }
    let lines = names.into_iter().map(|(shown, (endpoint, method))| {
        let is_it = |labels: &MetricLabels| {
            label(labels, "endpoint") == endpoint && label(labels, "method") == method
        };
        let is_error = |labels: &MetricLabels| {
            let status: u16 = label(labels, "status").parse().unwrap_or(0);
            is_it(labels) && status >= 400
        };
        let time = |share| now.percentile(oldest, "trefoil_http_request_seconds", share, is_it);
        MethodLine {
            protocol: "HTTP",
            method: shown,
            calls: now.rate_of(before, REQUESTS, is_it),
            errors: Some(now.rate_of(before, REQUESTS, is_error)),
            median: time(0.5),
            slowest: time(0.99),
        }
    });
    lines.filter(|line| line.calls > 0.0).collect()
}

fn commands(now: &MetricsReading, before: &MetricsReading) -> Vec<MethodLine> {
    const COMMANDS: &str = "trefoil_resp_commands_total";
    let names = now.label_values(COMMANDS, "command").into_iter();
    let lines = names.map(|command| MethodLine {
        protocol: "RESP",
        calls: now.rate_of(before, COMMANDS, |labels| {
            label(labels, "command") == command
        }),
        errors: None,
        median: None,
        slowest: None,
        method: command,
    });
    lines.filter(|line| line.calls > 0.0).collect()
}

fn calls(
    now: &MetricsReading,
    before: &MetricsReading,
    oldest: &MetricsReading,
) -> Vec<MethodLine> {
    const CALLS: &str = "trefoil_grpc_calls_total";
    let names = now.label_values(CALLS, "method").into_iter();
    let lines = names.map(|method| {
        let is_it = |labels: &MetricLabels| label(labels, "method") == method;
        let is_error = |labels: &MetricLabels| {
            is_it(labels) && !label(labels, "code").eq_ignore_ascii_case("ok")
        };
        let time = |share| now.percentile(oldest, "trefoil_grpc_call_seconds", share, is_it);
        MethodLine {
            protocol: "gRPC",
            calls: now.rate_of(before, CALLS, is_it),
            errors: Some(now.rate_of(before, CALLS, is_error)),
            median: time(0.5),
            slowest: time(0.99),
            method: method.clone(),
        }
    });
    lines.filter(|line| line.calls > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(seconds: u64, calls: [u64; 3]) -> MetricsReading {
        let [writes, reads, gets] = calls;
        let text = format!(
            "trefoil_http_requests_total{{endpoint=\"/rpc\",method=\"commit\",status=\"200\"}} {writes}\n\
             trefoil_http_requests_total{{endpoint=\"/rpc\",method=\"commit\",status=\"409\"}} {writes}\n\
             trefoil_http_requests_total{{endpoint=\"/rpc\",method=\"stream.get\",status=\"200\"}} {reads}\n\
             trefoil_resp_commands_total{{command=\"get\"}} {gets}\n\
             trefoil_group_commits_sum {writes}\n"
        );
        MetricsReading::parse(&text, Duration::from_secs(seconds))
    }

    fn model() -> LiveModel {
        let mut model = LiveModel::new("u", "v", Duration::from_secs(1), reading(0, [0; 3]));
        model.note(Ok(reading(2, [20, 100, 60])));
        model
    }

    #[test]
    fn rates_and_methods_follow_from_two_readings() {
        let model = model();
        assert_eq!((model.commit_rate(), model.read_rate()), (10.0, 50.0));
        assert_eq!(model.request_rate(), 100.0);
        let methods = model.methods();
        let names: Vec<&str> = methods.iter().map(|line| line.method.as_str()).collect();
        assert_eq!(names, ["stream.get", "get", "commit"]);
        assert_eq!((methods[2].calls, methods[2].errors), (20.0, Some(10.0)));
        assert_eq!(methods[1].errors, None);
        assert_eq!((model.commits[0], model.reads[0]), (10, 50));
    }

    #[test]
    fn methods_are_ordered_as_wanted() {
        let mut model = model();
        let mut first = |order, is_reversed| {
            (model.order, model.is_reversed) = (order, is_reversed);
            model.methods()[0].method.clone()
        };
        assert_eq!(first(MethodOrder::Errors, false), "commit");
        assert_eq!(first(MethodOrder::Name, false), "commit");
        assert_eq!(first(MethodOrder::Name, true), "stream.get");
        assert_eq!(first(MethodOrder::Calls, true), "commit");
    }

    #[test]
    fn a_pause_keeps_what_is_shown_and_trouble_passes() {
        let mut model = model();
        model.pause();
        model.note(Ok(reading(3, [1000, 1000, 1000])));
        assert_eq!(model.commit_rate(), 10.0);
        model.pause();
        model.note(Err("gone".to_owned()));
        assert_eq!(model.trouble.as_deref(), Some("gone"));
        model.note(Ok(reading(4, [24, 100, 60])));
        assert_eq!((model.trouble.as_deref(), model.commit_rate()), (None, 2.0));
    }
}
