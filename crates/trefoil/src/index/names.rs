//! Listing the names of a kind of term in order, with what is known of each.

use trefoil_core::{Direction, Result};

use super::layers::{Layer, Layers};
use super::postings::TermSummary;
use super::run::{Run, RunTerm, TERM};
use super::tail::IndexTail;
use super::term::{TermKind, put_name_prefix, put_term, take_name};

/// A name and what one layer knows of it.
type NamedSummary = (String, TermSummary);

/// The names of one layer in order, fetched as they are asked for.
type Names<'a> = Box<dyn Iterator<Item = Result<NamedSummary>> + 'a>;

/// Returns up to `limit` names of a kind that begin with `prefix` and come after `after`, in byte
/// order.
pub(crate) fn list(
    layers: &Layers,
    kind: TermKind,
    prefix: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<NamedSummary>> {
    let mut sources: Vec<(Names<'_>, Option<NamedSummary>)> =
        Vec::with_capacity(layers.layers.len());
    for layer in &layers.layers {
        let mut names = match layer {
            Layer::Run(run) => of_run(run, kind, prefix, after),
            Layer::Memory(tail) => of_tail(&tail.read(), kind, prefix, after, limit),
        };
        let first = names.next().transpose()?;
        sources.push((names, first));
    }
    let mut listed = Vec::new();
    while listed.len() < limit {
        let heads = sources.iter().filter_map(|(_, head)| head.as_ref());
        let Some(name) = heads.map(|(name, _)| name).min().cloned() else {
            break;
        };
        let mut all: Option<TermSummary> = None;
        for (names, head) in &mut sources {
            if head.as_ref().is_some_and(|(next, _)| *next == name)
                && let Some((_, later)) = head.take()
            {
                all = Some(all.map_or(later, |earlier| earlier.followed_by(&later)));
                *head = names.next().transpose()?;
            }
        }
        listed.extend(all.map(|summary| (name, summary)));
    }
    Ok(listed)
}

/// Returns the names of a kind that begin with `prefix` and that parts of the index in memory have, in no
/// order, if what such a part knows of them is wanted. A name may come more than once. To list them a page
/// at a time would go over all of them for each page.
pub(crate) fn in_memory(
    layers: &Layers,
    kind: TermKind,
    prefix: &str,
    is_wanted: impl Fn(&TermSummary) -> bool,
) -> Vec<String> {
    let mut names = Vec::new();
    for layer in &layers.layers {
        if let Layer::Memory(tail) = layer {
            let tail = tail.read();
            let lists = tail.lists(kind);
            let lists = lists.filter(|(name, _)| name.starts_with(prefix));
            let wanted = lists.filter(|(_, list)| list.summary().is_some_and(|it| is_wanted(&it)));
            names.extend(wanted.map(|(name, _)| name.to_owned()));
        }
    }
    names
}

fn of_run<'a>(run: &'a Run, kind: TermKind, prefix: &str, after: &str) -> Names<'a> {
    let mut lowest = vec![TERM];
    put_name_prefix(&mut lowest, kind, prefix);
    let mut end = lowest.clone();
    end.push(0xff);
    if after >= prefix && !after.is_empty() {
        lowest.truncate(1);
        put_term(&mut lowest, kind, after);
        lowest.push(0);
    }
    Box::new(
        run.map
            .scan(&lowest, &end, Direction::Forwards)
            .map(move |entry| {
                let (key, value) = entry?;
                let name = take_name(&key[1..]).ok_or_else(|| run.damaged("unreadable name"))?;
                let term = RunTerm::decode(&value).ok_or_else(|| run.damaged("unreadable term"))?;
                Ok((name, term.summary))
            }),
    )
}

/// A tail is not ordered: its first `limit` names are picked and put in order.
fn of_tail(
    tail: &IndexTail,
    kind: TermKind,
    prefix: &str,
    after: &str,
    limit: usize,
) -> Names<'static> {
    let mut names: Vec<NamedSummary> = tail
        .lists(kind)
        .filter(|(name, _)| name.starts_with(prefix) && (after.is_empty() || *name > after))
        .filter_map(|(name, list)| Some((name.to_owned(), list.summary()?)))
        .collect();
    if names.len() > limit && limit > 0 {
        names.select_nth_unstable_by(limit - 1, |left, right| left.0.cmp(&right.0));
        names.truncate(limit);
    }
    names.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    Box::new(names.into_iter().map(Ok))
}
