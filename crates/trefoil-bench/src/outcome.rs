//! What clients saw, what it cost, and the rounds in which systems take turns.

use std::time::Duration;

use anyhow::Result;

use crate::latency::Latencies;
use crate::report::Row;
use crate::usage::Usage;

/// What the clients of one server saw in one stretch of time, and what it cost.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    /// What the requests stand for: events, operations or seats.
    pub(crate) units: u64,
    pub(crate) elapsed: Duration,
    pub(crate) latencies: Latencies,
    pub(crate) client_cpu: Duration,
    pub(crate) server: Usage,
}

impl Outcome {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            requests: 0,
            units: 0,
            elapsed: Duration::ZERO,
            latencies: Latencies::new()?,
            client_cpu: Duration::ZERO,
            server: Usage::default(),
        })
    }

    /// Counts requests that were answered together, and what they stand for.
    pub(crate) fn count(&mut self, requests: u64, units: u64, latency: Duration) {
        self.requests += requests;
        self.units += units;
        self.latencies.record(latency);
    }

    /// Adds what others saw in the same time.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        self.requests += other.requests;
        self.units += other.units;
        self.latencies.add(&other.latencies)
    }
}

/// What a figure says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    UnitsPerSecond,
    RequestsPerSecond,
    /// The median is what a busy moment does not change.
    MedianMicroseconds,
    MedianMilliseconds,
    MicrosecondsPerUnit,
}

impl Figure {
    fn of(self, outcome: &Outcome) -> f64 {
        let seconds = outcome.elapsed.as_secs_f64();
        let median = outcome.latencies.percentile(0.5).as_secs_f64();
        match self {
            Self::UnitsPerSecond => outcome.units as f64 / seconds,
            Self::RequestsPerSecond => outcome.requests as f64 / seconds,
            Self::MedianMicroseconds => median * 1e6,
            Self::MedianMilliseconds => median * 1e3,
            Self::MicrosecondsPerUnit => seconds * 1e6 / outcome.units as f64,
        }
    }

    /// What processor time is counted by.
    fn count(self, outcome: &Outcome) -> u64 {
        match self {
            Self::UnitsPerSecond | Self::MicrosecondsPerUnit => outcome.units,
            _ => outcome.requests,
        }
    }
}

/// What one system showed in a cell, round by round.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Vec<Outcome>);

impl Rounds {
    /// What was measured once.
    pub(crate) fn one(outcome: Outcome) -> Self {
        Self(vec![outcome])
    }

    /// Returns what all rounds stand for.
    pub(crate) fn units(&self) -> u64 {
        self.0.iter().map(|outcome| outcome.units).sum()
    }

    /// A row: the median of the rounds, and all that is known of what it cost.
    pub(crate) fn row(&self, system: impl Into<String>, figure: Figure) -> Result<Row> {
        let mut figures: Vec<f64> = self.0.iter().map(|outcome| figure.of(outcome)).collect();
        figures.sort_by(f64::total_cmp);
        let mut row = Row::new(system, median(&figures));
        if let [least, .., most] = figures[..] {
            row.spread = Some((least, most));
        }
        let mut all = Outcome::new()?;
        for outcome in &self.0 {
            all.merge(outcome)?;
            all.elapsed += outcome.elapsed;
            all.client_cpu += outcome.client_cpu;
        }
        let usages = self.0.iter().map(|outcome| outcome.server);
        all.server = usages.reduce(Usage::and).unwrap_or_default();
        let count = figure.count(&all) as f64;
        let per_one = |time: Duration| time.as_secs_f64() * 1e6 / count;
        row.latency = Some(all.latencies.percentiles());
        row.cpu = all.server.cpu.map(per_one);
        row.client_cpu = Some(per_one(all.client_cpu));
        row.client_busy = Some(all.client_cpu.as_secs_f64() / all.elapsed.as_secs_f64());
        if let Some(syncs) = all
            .server
            .syncs
            .filter(|syncs| writes(*syncs, all.requests))
        {
            row.syncs = Some(syncs as f64 / all.elapsed.as_secs_f64());
            row.per_sync = Some(all.requests as f64 / syncs as f64);
            let groups = all.server.groups.filter(|groups| *groups > 0);
            let own = all.server.commits.zip(groups);
            row.per_group = own.map(|(commits, groups)| commits as f64 / groups as f64);
        }
        Ok(row)
    }
}

/// The middle one of figures in order.
fn median(figures: &[f64]) -> f64 {
    let half = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => figures[half],
        _ => f64::midpoint(figures[half - 1], figures[half]),
    }
}

/// Fewer syncs than one to this many requests are those of others, or of work in the background.
const REQUESTS_PER_SYNC_MAX: u64 = 5_000;

/// Whether so many syncs come from requests that write.
fn writes(syncs: u64, requests: u64) -> bool {
    syncs > 0 && syncs * REQUESTS_PER_SYNC_MAX >= requests
}

/// Lets every system be measured once per round, in reverse order in every second one: what a busy
/// or a slow moment of the machine does is then done to all.
pub(crate) fn by_turns<S>(
    systems: &mut [S],
    rounds: u32,
    mut measure: impl FnMut(&mut S) -> Result<Outcome>,
) -> Result<Vec<Rounds>> {
    let mut seen: Vec<Rounds> = systems.iter().map(|_| Rounds::default()).collect();
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..systems.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            seen[index].0.push(measure(&mut systems[index])?);
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(units: u64, syncs: u64) -> Outcome {
        let mut outcome = Outcome::new().unwrap();
        for _ in 0..units {
            outcome.count(1, 1, Duration::from_millis(1));
        }
        outcome.elapsed = Duration::from_secs(2);
        outcome.client_cpu = Duration::from_secs(1);
        outcome.server.cpu = Some(Duration::from_millis(10));
        outcome.server.syncs = Some(syncs);
        outcome
    }

    #[test]
    fn a_row_has_the_median_of_its_rounds_and_the_cost_of_all() {
        let rounds = Rounds(vec![outcome(100, 10), outcome(400, 40), outcome(300, 30)]);
        let row = rounds.row("a", Figure::UnitsPerSecond).unwrap();
        assert_eq!(row.figure, Some(150.0));
        assert_eq!(row.spread, Some((50.0, 200.0)));
        assert_eq!(row.client_busy, Some(0.5));
        assert_eq!(row.cpu, Some(30_000.0 / 800.0));
        assert_eq!((row.syncs, row.per_sync), (Some(80.0 / 6.0), Some(10.0)));
        let reads = Rounds(vec![outcome(6_000, 1)]);
        let row = reads.row("b", Figure::MedianMilliseconds).unwrap();
        assert_eq!((row.syncs, row.per_sync, row.spread), (None, None, None));
        assert!((row.figure.unwrap() - 1.0).abs() < 0.01);
        assert_eq!(rounds.units(), 800);
    }

    #[test]
    fn systems_take_turns_and_change_places() {
        let mut order = Vec::new();
        let mut systems = ["a", "b", "c"];
        let seen = by_turns(&mut systems, 2, |system| {
            order.push(*system);
            Ok(outcome(1, 1))
        });
        assert_eq!(seen.unwrap().len(), 3);
        assert_eq!(order, ["a", "b", "c", "c", "b", "a"]);
    }
}
