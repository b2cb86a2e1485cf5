//! Which terms a subscriber waits under: few, and rare ones.

use trefoil_core::{QueryItem, Selection, Source};

use crate::index::TermKind;

/// A term: what sort of thing it names, and the name.
pub(super) type Term<'a> = (TermKind, &'a str);

/// Who would wait under more terms than this waits under what all of its events have in common.
pub(super) const TERMS_MAX: usize = 1024;

const EVERYTHING: Term<'_> = (TermKind::All, "");

/// Returns terms of which each event that is selected has one. It is not known here how rare they are.
/// So of several that would do, the one is chosen that the fewest wait under, as `n_waiting` says, and
/// tags come before what more events have.
pub(super) fn choose<'a>(
    selection: &'a Selection,
    n_waiting: impl Fn(Term<'a>) -> usize,
) -> Vec<Term<'a>> {
    let fewest =
        |terms: &mut dyn Iterator<Item = Term<'a>>| terms.min_by_key(|term| n_waiting(*term));
    let filter = &selection.filter;
    let category = match &selection.source {
        Source::Stream(name) => return vec![(TermKind::Stream, name)],
        Source::Category(name) => Some((TermKind::Category, name.as_str())),
        Source::All => None,
    };
    let correlation = filter.correlation.as_deref();
    let event_type = filter.event_type.as_deref();
    let common = [
        category,
        correlation.map(|name| (TermKind::Correlation, name)),
        event_type.map(|name| (TermKind::Type, name)),
    ];
    let in_common = fewest(&mut common.into_iter().flatten());
    let whole = || vec![in_common.unwrap_or(EVERYTHING)];
    if filter.query.is_all() {
        return whole();
    }
    let mut terms = Vec::new();
    for item in &filter.query.items {
        let mut tags = item.tags.iter().map(|name| (TermKind::Tag, name.as_str()));
        match fewest(&mut tags) {
            Some(tag) => terms.push(tag),
            None if in_common.is_some() => return whole(),
            None => terms.extend(types_of(item)),
        }
        if terms.len() > TERMS_MAX {
            return whole();
        }
    }
    terms
}

fn types_of(item: &QueryItem) -> impl Iterator<Item = Term<'_>> {
    item.types
        .iter()
        .map(|name| (TermKind::Type, name.as_str()))
}

#[cfg(test)]
mod tests {
    use trefoil_core::Query;

    use super::*;

    fn chosen(selection: &Selection, crowded: &[&str]) -> Vec<String> {
        let n_waiting = |(_, name): Term<'_>| usize::from(crowded.contains(&name));
        let terms = choose(selection, n_waiting).into_iter();
        let text = |(kind, name): Term<'_>| format!("{}:{name}", kind.name());
        terms.map(text).collect()
    }

    #[test]
    fn what_is_most_likely_rare_is_waited_for() {
        let item = QueryItem::any;
        let of_category = || Selection::category("order");
        let two = Query::from(item().tagged("a").tagged("b").of_type("T"));
        for (selection, expected) in [
            (Selection::all(), vec!["all:"]),
            (
                Selection::stream("order-1").of_type("T"),
                vec!["stream:order-1"],
            ),
            (of_category(), vec!["category:order"]),
            (of_category().of_type("T"), vec!["category:order"]),
            (Selection::all().of_type("T"), vec!["type:T"]),
            (
                Selection::all().correlated_with("cart"),
                vec!["correlation:cart"],
            ),
            (of_category().matching(two.clone()), vec!["tag:a"]),
            (
                Selection::query(two.clone().or(item().of_type("U").of_type("V"))),
                vec!["tag:a", "type:U", "type:V"],
            ),
            (
                of_category().matching(two.clone().or(item().of_type("U"))),
                vec!["category:order"],
            ),
            (Selection::query(two.or(item())), vec!["all:"]),
        ] {
            assert_eq!(chosen(&selection, &[]), expected, "{selection:?}");
        }
    }

    #[test]
    fn of_several_terms_that_would_do_the_one_with_the_fewest_is_taken() {
        let tags = QueryItem::any().tagged("tenant").tagged("order");
        let selection = Selection::query(Query::from(tags));
        assert_eq!(chosen(&selection, &["tenant"]), ["tag:order"]);
        let selection = Selection::category("c").of_type("T").correlated_with("w");
        assert_eq!(chosen(&selection, &["c", "w"]), ["type:T"]);
    }

    #[test]
    fn a_query_of_very_many_items_waits_for_what_they_have_in_common() {
        let items = (0..=TERMS_MAX).map(|n| QueryItem::any().tagged(n.to_string()));
        let query: Query = items.collect();
        assert_eq!(chosen(&Selection::query(query.clone()), &[]), ["all:"]);
        let of_category = Selection::category("c").matching(query);
        assert_eq!(chosen(&of_category, &[]), ["category:c"]);
    }
}
