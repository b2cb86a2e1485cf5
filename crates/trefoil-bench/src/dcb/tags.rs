//! What the number of tags costs: events with ten tags beside events with one.

use anyhow::Result;

use super::appends::{Shape, measure};
use super::{Bench, Cell, is_trefoil};
use crate::report::{Report, Target};

const MANY: usize = 10;
const BATCH: usize = 1000;

pub(super) fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    if !bench.wants(Cell::Tags) {
        return Ok(());
    }
    let title = format!("Durable appends of {BATCH} events with 1 and with {MANY} tags each");
    let mut rows = Vec::new();
    for tags in [1, MANY] {
        rows.extend(bench.each(&title, &bench.installed, |installed| {
            let outcome = measure(bench, installed, Shape::unconditional(1, BATCH, tags))?;
            let name = format!("{}, tags: {tags}", installed.system.name());
            Ok(outcome.event_cost_row(name))
        })?);
    }
    let (one, many) = rows.split_at_mut(bench.installed.len());
    for (one, many) in one.iter_mut().zip(many) {
        one.ratio = Some(1.0);
        many.ratio = many.figure.zip(one.figure).map(|(many, one)| many / one);
        many.target = is_trefoil(many).then_some(Target::RatioAtMost(MANY as f64));
    }
    report.table(&title, "us/event", rows);
    Ok(())
}
