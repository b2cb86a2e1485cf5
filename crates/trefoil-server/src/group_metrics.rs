//! What the databases count about the groups of commits that they write, as metrics.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use trefoil::{HistogramSnapshot, Namespaces};

/// Limits of buckets are powers of two, from 2 to the power of the first of these to that of the
/// second. Those of durations are from 4 microseconds to 4 seconds.
const COMMITS: (u32, u32) = (0, 12);
const BYTES: (u32, u32) = (6, 26);
const NANOSECONDS: (u32, u32) = (12, 32);
const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// The metrics of all groups.
#[derive(Debug)]
pub(crate) struct GroupMetrics(pub(crate) Namespaces);

impl Collector for GroupMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.0.stats().groups;
        let help = "Commits that were written with one sync";
        let mut put = |name, help, unit: Option<Unit>, histogram, limits, per_unit| {
            let unit = unit.as_ref();
            let metric = encoder.encode_descriptor(name, help, unit, MetricType::Histogram);
            put_histogram(metric?, histogram, limits, per_unit)
        };
        put(
            "group_commits",
            help,
            None,
            &stats.group_commits,
            COMMITS,
            1.0,
        )?;
        let help = "Bytes of events and of changes of state that were written with one sync";
        put(
            "group",
            help,
            Some(Unit::Bytes),
            &stats.group_bytes,
            BYTES,
            1.0,
        )?;
        let times = [
            (
                "group_queue",
                "Time that the first commit of a group waited",
                &stats.queue,
            ),
            (
                "group_staging",
                "Time to decide and encode a group",
                &stats.staging,
            ),
            ("group_sync", "Time to make a written group durable", &stats.sync),
            (
                "group_publishing",
                "Time to make a durable group visible",
                &stats.publishing,
            ),
        ];
        for (name, help, histogram) in times {
            let unit = Some(Unit::Seconds);
            put(
                name,
                help,
                unit,
                histogram,
                NANOSECONDS,
                NANOSECONDS_PER_SECOND,
            )?;
        }
        Ok(())
    }
}

/// Puts a histogram of numbers of which `per_unit` make one of the metric's unit.
fn put_histogram(
    mut metric: MetricEncoder<'_>,
    histogram: &HistogramSnapshot,
    (first, last): (u32, u32),
    per_unit: f64,
) -> fmt::Result {
    let mut before = 0;
    let mut buckets: Vec<(f64, u64)> = Vec::new();
    for exponent in first..=last {
        let limit = 1_u64 << exponent;
        let count = histogram.count_up_to(limit);
        buckets.push((limit as f64 / per_unit, count - before));
        before = count;
    }
    let count = histogram.count();
    buckets.push((f64::INFINITY, count - before));
    let sum = histogram.sum() as f64 / per_unit;
    metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}
