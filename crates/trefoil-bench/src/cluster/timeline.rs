//! What requests say together: how many per second, and how long each namespace was away.

use std::collections::BTreeMap;
use std::time::Duration;

use super::load::{Became, Sample};

/// A namespace whose first write after a fault takes longer than this was hit by it.
const HIT: Duration = Duration::from_millis(1000);

/// Acknowledged writes and failed requests of each second.
pub(super) fn per_second(samples: &[Sample], seconds: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut written, mut failed) = (vec![0; seconds], vec![0; seconds]);
    for sample in samples {
        let second = sample.ended.as_secs() as usize;
        let counts = match sample.became {
            Became::Written => &mut written,
            Became::Failed => &mut failed,
            Became::NotConnected => continue,
        };
        if let Some(count) = counts.get_mut(second) {
            *count += 1;
        }
    }
    (written, failed)
}

/// How many writes there were per second in a part of the time.
pub(super) fn rate(written: &[u32], from: usize, to: usize) -> f64 {
    let part = written.get(from..to.min(written.len())).unwrap_or_default();
    part.iter().sum::<u32>() as f64 / part.len().max(1) as f64
}

/// From the fault to the first acknowledged write that began after it, of each namespace that was
/// hit, in order; and how many namespaces were never written to again.
pub(super) fn recoveries(samples: &[Sample], fault: Duration) -> (Vec<Duration>, usize) {
    let mut first: BTreeMap<usize, Option<Duration>> = BTreeMap::new();
    for sample in samples {
        let own = first.entry(sample.namespace).or_default();
        if sample.became == Became::Written && sample.begun >= fault {
            let took = sample.ended - fault;
            *own = Some(own.map_or(took, |least| least.min(took)));
        }
    }
    let lost = first.values().filter(|took| took.is_none()).count();
    let mut hit: Vec<Duration> = first
        .into_values()
        .flatten()
        .filter(|took| *took > HIT)
        .collect();
    hit.sort_unstable();
    (hit, lost)
}

/// The duration that a share of them does not exceed; they are in order.
pub(super) fn share(durations: &[Duration], fraction: f64) -> Duration {
    let place = (durations.len() as f64 * fraction).ceil() as usize;
    let place = place.clamp(1, durations.len().max(1)) - 1;
    durations.get(place).copied().unwrap_or_default()
}

/// How many requests failed, and how many found no node to connect to.
pub(super) fn failures(samples: &[Sample]) -> (usize, usize) {
    let count = |became| {
        samples
            .iter()
            .filter(|sample| sample.became == became)
            .count()
    };
    (count(Became::Failed), count(Became::NotConnected))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(namespace: usize, begun: u64, ended: u64, became: Became) -> Sample {
        Sample {
            namespace,
            begun: Duration::from_millis(begun),
            ended: Duration::from_millis(ended),
            became,
        }
    }

    #[test]
    fn a_namespace_recovers_with_its_first_write_after_the_fault() {
        let samples = [
            // Begun before the fault: says nothing.
            sample(0, 900, 1_100, Became::Written),
            sample(0, 1_200, 9_000, Became::Failed),
            sample(0, 9_000, 9_500, Became::Written),
            sample(0, 9_600, 9_700, Became::Written),
            // Never hit.
            sample(1, 1_010, 1_020, Became::Written),
            // Never there again.
            sample(2, 500, 600, Became::Written),
        ];
        let (hit, lost) = recoveries(&samples, Duration::from_secs(1));
        assert_eq!((hit, lost), (vec![Duration::from_millis(8_500)], 1));
        let (written, failed) = per_second(&samples, 10);
        assert_eq!(written, [1, 2, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(failed[9], 1);
        assert!((rate(&written, 0, 2) - 1.5).abs() < 1e-9);
        assert_eq!(failures(&samples), (1, 0));
    }

    #[test]
    fn a_share_is_one_of_the_durations() {
        let durations: Vec<Duration> = (1..=100).map(Duration::from_secs).collect();
        for (fraction, seconds) in [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)] {
            assert_eq!(share(&durations, fraction).as_secs(), seconds);
        }
        assert_eq!(share(&[], 0.5), Duration::ZERO);
    }
}
