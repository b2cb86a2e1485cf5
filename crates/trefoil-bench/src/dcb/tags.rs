//! What the number of tags costs: events with ten tags beside events with one.

use anyhow::Result;

use super::appends::{Shape, measure};
use super::{Bench, Cell, aim};
use crate::outcome::Figure;
use crate::report::{Report, Target};

const MANY: usize = 10;
const BATCH: usize = 1000;

pub(super) fn run(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    if !bench.wants(Cell::Tags) {
        return Ok(());
    }
    let title = format!("Appends of {BATCH} events with 1 and with {MANY} tags each");
    let mut rows = Vec::new();
    for tags in [1, MANY] {
        let (entries, figure) = (bench.first_entries(), Figure::MicrosecondsPerUnit);
        rows.extend(bench.rows(&title, entries, figure, |entry| {
            measure(bench, entry, Shape::unconditional(1, BATCH, tags))
        })?);
    }
    let half = rows.len() / 2;
    aim(&mut rows[half..], &[Target::RatioAtMost(MANY as f64)]);
    let (one, many) = rows.split_at_mut(half);
    for (one, many) in one.iter_mut().zip(many) {
        one.ratio = Some(1.0);
        many.ratio = many.figure.zip(one.figure).map(|(many, one)| many / one);
        one.system.push_str(", 1 tag");
        many.system.push_str(&format!(", {MANY} tags"));
    }
    report.table(&title, "us/event", rows);
    Ok(())
}
