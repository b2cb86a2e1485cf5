//! Warm reads from loaded stores: 100 events of a stream, 1000 events of a category.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::super::Bench;
use super::super::timing::Timing;
use super::{Loaded, Store};
use crate::report::{Report, Row, Target};
use crate::system::{Kind, System, read_next};
use crate::workload::{Reads, Workload};

/// How many reads every store must answer with the same events.
const PROBES: usize = 50;
/// Events read between two looks at the clock of the CPU.
const STRETCH_EVENTS: usize = 10_000;

pub(super) fn run(bench: &Bench, loaded: &[Loaded], kind: Kind, report: &mut Report) -> Result<()> {
    let mut workload = Workload::new(&bench.pool);
    while workload.generated() < bench.events {
        workload.batch(1000);
    }
    let reads = workload.reads(usize::MAX);
    let (mut rows, mut expected) = (Vec::new(), None);
    for loaded in loaded
        .iter()
        .filter(|loaded| loaded.store != Store::TrefoilClientIds)
    {
        bench.doing(format!(
            "reads of {}: {}",
            kind.events(),
            loaded.store.name()
        ));
        let system = loaded.open()?;
        let sum = probe(system.as_ref(), kind, reads.clone())?;
        ensure!(
            *expected.get_or_insert(sum) == sum,
            "{} returns other events than the stores before it",
            loaded.store.name()
        );
        rows.push(measure(bench, system.as_ref(), kind, reads.clone())?.row(loaded.store.name()));
    }
    set_targets(&mut rows);
    let title = match kind {
        Kind::Stream => format!(
            "Warm reads of 100 events from {} streams",
            reads.stream_count()
        ),
        Kind::Category => "Warm reads of 1000 events from 50 categories".to_owned(),
    };
    report.table(&title, "events/s", rows);
    Ok(())
}

fn set_targets(rows: &mut [Row]) {
    for row in rows {
        if row.system == Store::TrefoilPlain.name() {
            row.targets.push(Target::RatioAtLeast(15.0));
        } else if row.system == Store::TrefoilCompressed.name() {
            row.targets.push(Target::RatioAtLeast(5.0));
        }
    }
}

fn probe(system: &dyn System, kind: Kind, mut reads: Reads) -> Result<u64> {
    let mut sum = 0_u64;
    for _ in 0..PROBES {
        sum = sum.wrapping_add(read_next(system, kind, &mut reads)?.sum);
    }
    Ok(sum)
}

/// Reads for a quarter of the time to warm up, then for the time itself.
pub(in super::super) fn measure(
    bench: &Bench,
    system: &dyn System,
    kind: Kind,
    mut reads: Reads,
) -> Result<Timing> {
    let begin = Instant::now();
    while begin.elapsed() < bench.seconds / 4 {
        read_next(system, kind, &mut reads)?;
    }
    let mut timing = Timing::new()?;
    while timing.elapsed < bench.seconds {
        timing.stretch(|timing| {
            for _ in 0..STRETCH_EVENTS / kind.events() {
                timing.time(kind.events(), || {
                    read_next(system, kind, &mut reads)?;
                    Ok(())
                })?;
            }
            Ok(())
        })?;
    }
    Ok(timing)
}
