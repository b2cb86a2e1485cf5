//! Which node should have a namespace: the one for which a hash of both is the greatest, unless it has
//! much more than its share. So all nodes come to the same answer without asking each other, a node that
//! joins or leaves changes little, and no node gets everything.
//!
//! This is a hint. Who has a namespace, its owner's object says.

use trefoil::home::Incarnation;
use xxhash_rust::xxh3::xxh3_64;

use super::node::NodeId;

/// A node that may be given a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeCandidate {
    pub(super) id: NodeId,
    pub(super) address: String,
    /// How many namespaces it has.
    pub(super) n_owned: u64,
}

/// Returns the node that should have a namespace next. None has more than a quarter above the average
/// by that.
pub(super) fn choose(
    incarnation: Incarnation,
    candidates: &[NodeCandidate],
) -> Option<&NodeCandidate> {
    let n_nodes = candidates.len() as u64;
    let n_owned: u64 = candidates.iter().map(|node| node.n_owned).sum();
    let limit = (5 * (n_owned + 1)).div_ceil(4 * n_nodes.max(1));
    let has_room = |node: &&NodeCandidate| node.n_owned < limit;
    let best = candidates.iter().filter(has_room);
    best.max_by_key(|node| (weight(incarnation, node.id), node.id))
}

/// Returns the node that should be given a namespace by one that has too many, `own`.
pub(super) fn choose_poorer(
    incarnation: Incarnation,
    own: u64,
    others: &[NodeCandidate],
) -> Option<&NodeCandidate> {
    let n_owned: u64 = own + others.iter().map(|node| node.n_owned).sum::<u64>();
    let n_nodes = others.len() as u64 + 1;
    let is_poorer = |node: &&NodeCandidate| (node.n_owned + 1) * n_nodes <= n_owned;
    let best = others.iter().filter(is_poorer);
    best.max_by_key(|node| (weight(incarnation, node.id), node.id))
}

/// Returns how many namespaces a node that has `own` should give away: none, unless it has a tenth and
/// one more than the average, so that nothing goes to and fro.
pub(super) fn surplus(own: u64, others: &[NodeCandidate]) -> u64 {
    let n_owned: u64 = own + others.iter().map(|node| node.n_owned).sum::<u64>();
    let average = n_owned.div_ceil(others.len() as u64 + 1);
    match own > average + average / 10 + 1 {
        true => own - average,
        false => 0,
    }
}

fn weight(incarnation: Incarnation, node: NodeId) -> u64 {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&incarnation.0.to_be_bytes());
    bytes[16..].copy_from_slice(&node.0.to_be_bytes());
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(owned: &[u64]) -> Vec<NodeCandidate> {
        let candidate = |(n_owned, id): (&u64, u128)| NodeCandidate {
            id: NodeId(id),
            address: format!("node-{id}"),
            n_owned: *n_owned,
        };
        owned.iter().zip(1..).map(candidate).collect()
    }

    fn namespaces() -> impl Iterator<Item = Incarnation> {
        let mut rng = fastrand::Rng::with_seed(7);
        std::iter::repeat_with(move || Incarnation(rng.u128(..))).take(1000)
    }

    #[test]
    fn namespaces_are_spread_and_no_node_has_many_more_than_another() {
        let mut nodes = candidates(&[0, 0, 0]);
        for incarnation in namespaces() {
            let chosen = choose(incarnation, &nodes).unwrap().id;
            let chosen = nodes.iter_mut().find(|node| node.id == chosen);
            chosen.unwrap().n_owned += 1;
        }
        let owned: Vec<u64> = nodes.iter().map(|node| node.n_owned).collect();
        assert_eq!(owned.iter().sum::<u64>(), 1000);
        assert!(
            owned.iter().all(|owned| (250..=420).contains(owned)),
            "{owned:?}"
        );
        // One that has nothing gets more than its hash says.
        let unequal = candidates(&[100, 100, 0]);
        let third = namespaces().map(|incarnation| choose(incarnation, &unequal).unwrap().id);
        assert!(third.into_iter().all(|id| id == NodeId(3)));
        assert_eq!(choose(Incarnation(1), &[]), None);
    }

    #[test]
    fn a_node_that_joins_takes_from_all_and_moves_nothing_between_the_others() {
        let (before, after) = (candidates(&[0, 0]), candidates(&[0, 0, 0]));
        let mut n_moved = 0;
        for incarnation in namespaces() {
            let (old, new) = (choose(incarnation, &before), choose(incarnation, &after));
            let (old, new) = (old.unwrap().id, new.unwrap().id);
            assert!(old == new || new == NodeId(3));
            n_moved += u32::from(old != new);
        }
        assert!((270..400).contains(&n_moved), "{n_moved}");
    }

    #[test]
    fn who_has_more_than_its_share_gives_to_those_that_have_less() {
        assert_eq!(surplus(100, &candidates(&[100, 0])), 33);
        assert_eq!(surplus(0, &candidates(&[100, 100])), 0);
        // Nobody gives away what would come back.
        for own in 0..200 {
            let others = candidates(&[200 - own]);
            let given = surplus(own, &others);
            let poorer = choose_poorer(Incarnation(7), own, &others);
            assert!(given == 0 || poorer.is_some(), "{own}");
            let back = surplus(200 - own + given, &candidates(&[own - given]));
            assert!(given == 0 || back == 0, "{own} {given} {back}");
        }
        assert_eq!(surplus(1, &candidates(&[0])), 0);
        assert_eq!(surplus(5, &[]), 0);
        let richer = candidates(&[70, 100]);
        assert_eq!(choose_poorer(Incarnation(7), 10, &richer), None);
    }
}
