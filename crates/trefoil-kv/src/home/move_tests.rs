//! Where namespaces should be: who opens one that nobody has, and how they move to other nodes when a
//! node is stopped or joins.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use trefoil::home::{Home as _, MemberState};
use trefoil::{
    Clock, Error, ManualTime, NamespaceId, Namespaces, NamespacesOptions, NewNamespace, Selection,
    Timestamp, Token,
};

use super::tests::{TestNode, TimedNode, commit, id, pass};
use super::{KvHome, KvHomeOptions};
use crate::memory::{MemoryEngine, MemoryOptions};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns where a node would have a namespace opened; `None`: there.
fn place(node: &TestNode, name: &NamespaceId) -> Option<String> {
    let stamp = node.home.entry(name).unwrap().unwrap().stamp;
    match node.home.check_here(name, stamp.incarnation) {
        Ok(()) => None,
        Err(Error::NotOwner { owner, .. }) => owner,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn all_nodes_agree_who_should_have_a_namespace() {
    let data = MemoryEngine::default();
    let nodes = [1, 2, 3].map(|seed| TestNode::join(&data, seed));
    let all: Vec<&TestNode> = nodes.iter().collect();
    pass(&all, 10 * SECOND);
    let names: Vec<NamespaceId> = (0..30).map(|number| id(&format!("n{number}"))).collect();
    let mut n_here = [0; 3];
    for name in &names {
        nodes[0].home.create(name, b"text").unwrap();
        let places = nodes.each_ref().map(|node| place(node, name));
        let here: Vec<usize> = (0..3).filter(|node| places[*node].is_none()).collect();
        assert_eq!(here.len(), 1, "{places:?}");
        n_here[here[0]] += 1;
        let address = format!("node-{}", here[0] + 1);
        let others = places.iter().flatten();
        assert!({ others }.all(|place| *place == address), "{places:?}");
    }
    assert!(n_here.iter().all(|n_here| *n_here > 2), "{n_here:?}");
    // Whoever claims it all the same has it, and all others know.
    let name = &names[0];
    let chosen = nodes.iter().position(|node| place(node, name).is_none());
    let other = (chosen.unwrap() + 1) % 3;
    let database = nodes[other].open(name).unwrap();
    for (number, node) in nodes.iter().enumerate() {
        let owner = (number != other).then(|| format!("node-{}", other + 1));
        assert_eq!(place(node, name), owner);
    }
    // When it is silent, another one should have it, before it is certain that it is dead.
    nodes[other].cut_off();
    let rest: Vec<&TestNode> = all
        .iter()
        .copied()
        .enumerate()
        .filter(|(number, _)| *number != other)
        .map(|(_, node)| node)
        .collect();
    pass(&rest, 5 * SECOND);
    let places: Vec<Option<String>> = rest.iter().map(|node| place(node, name)).collect();
    assert_eq!(
        places.iter().filter(|place| place.is_none()).count(),
        1,
        "{places:?}"
    );
    let silent = format!("node-{}", other + 1);
    assert!(!places.contains(&Some(silent)), "{places:?}");
    drop(database);
}

#[test]
fn a_node_that_nobody_can_reach_keeps_to_itself() {
    let data = MemoryEngine::default();
    let first = TestNode::join(&data, 1);
    let cache = TempDir::new().unwrap();
    let options = KvHomeOptions {
        clock: Clock::new(first.time.clone()),
        is_driven: true,
        seed: Some(2),
        ..KvHomeOptions::new(cache.path())
    };
    let second = KvHome::open(Arc::new(data.clone()), options).unwrap();
    for _ in 0..40 {
        pass(&[&first], SECOND / 4);
        second.step();
    }
    for number in 0..20 {
        let name = id(&format!("n{number}"));
        let stamp = first.home.create(&name, b"text").unwrap();
        assert_eq!(place(&first, &name), None);
        second.check_here(&name, stamp.incarnation).unwrap();
    }
    let states: Vec<_> = first.home.cluster().unwrap().members();
    assert_eq!(states.len(), 2);
    assert!(states[0].is_this && states[0].address.as_deref() == Some("node-1"));
    assert_eq!(
        (states[1].address.as_deref(), states[1].state),
        (None, MemberState::Alive)
    );
    assert!(!second.cluster().unwrap().leave().unwrap());
}

/// A node with its namespaces.
struct ServingNode {
    home: Arc<KvHome>,
    namespaces: Namespaces,
    time: Arc<ManualTime>,
    _cache: TempDir,
}

impl ServingNode {
    fn join(data: &MemoryEngine, address: &str) -> Self {
        let cache = TempDir::new().unwrap();
        let time = ManualTime::new(Timestamp::parse("2030-01-01T00:00:00Z").unwrap());
        let options = KvHomeOptions {
            clock: Clock::new(time.clone()),
            is_driven: true,
            ..KvHomeOptions::new(cache.path())
        };
        let engine = data.connect(MemoryOptions::default());
        let home = Arc::new(KvHome::open(Arc::new(engine), options).unwrap());
        home.cluster().unwrap().announce(address).unwrap();
        let options = NamespacesOptions::default();
        let namespaces = Namespaces::open_in(home.clone(), options).unwrap();
        Self {
            home,
            namespaces,
            time,
            _cache: cache,
        }
    }

    fn n_owned(&self) -> u64 {
        self.home.cluster().unwrap().members()[0].n_owned
    }
}

impl TimedNode for ServingNode {
    fn step(&self, time: Duration) {
        self.time.advance(time);
        self.home.step();
    }
}

/// Makes namespaces with one event each, all of them open in `node`.
fn fill(node: &ServingNode, count: usize) -> Vec<NamespaceId> {
    let names: Vec<NamespaceId> = (0..count).map(|number| id(&format!("n{number}"))).collect();
    for name in &names {
        node.namespaces
            .create(name, NewNamespace::default())
            .unwrap();
        let database = node.namespaces.database_here(name).unwrap();
        database.commit(commit()).unwrap();
    }
    names
}

#[track_caller]
fn check_elsewhere<T: std::fmt::Debug>(answer: trefoil::Result<T>, address: &str) {
    match answer {
        Err(Error::NotOwner { owner, .. }) => assert_eq!(owner.as_deref(), Some(address)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_that_is_stopped_hands_its_namespaces_to_the_others() {
    let data = MemoryEngine::default();
    let first = ServingNode::join(&data, "first:1");
    let names = fill(&first, 20);
    let second = ServingNode::join(&data, "second:1");
    pass(&[&first, &second], 10 * SECOND);
    let held = first.namespaces.database(&names[3]).unwrap();
    let mut subscription = held.subscribe(Selection::all());
    assert_eq!(subscription.next_timeout(SECOND).unwrap().len(), 1);
    let stop = first.namespaces.clone();
    let writer = std::thread::spawn(move || {
        // What is written while the namespace moves is there once, or was certainly not written.
        let mut n_written = 0;
        loop {
            match held.commit(commit()) {
                Ok(_) => n_written += 1,
                Err(error) => return (n_written, error),
            }
        }
    });
    assert_eq!(stop.drain(PATIENCE).unwrap(), 20);
    let (n_written, error) = writer.join().unwrap();
    check_elsewhere::<()>(Err(error), "second:1");
    while subscription
        .next_timeout(Duration::ZERO)
        .is_ok_and(|events| !events.is_empty())
    {}
    check_elsewhere(subscription.next_timeout(SECOND), "second:1");
    for name in &names {
        check_elsewhere(first.namespaces.database(name), "second:1");
        check_elsewhere(first.namespaces.database_here(name), "second:1");
        let moved = second.namespaces.database(name).unwrap();
        let n_more = if *name == names[3] { n_written } else { 0 };
        assert_eq!(moved.head().unwrap(), 1 + n_more, "{name}");
    }
    let states = second.home.cluster().unwrap().members();
    assert_eq!(states[1].state, MemberState::Alive);
    pass(&[&first, &second], 5 * SECOND);
    let states = second.home.cluster().unwrap().members();
    assert_eq!(
        (states[1].state, states[1].n_owned),
        (MemberState::Leaving, 0)
    );
}

#[test]
fn nodes_that_start_at_the_same_time_make_one_default_namespace() {
    let data = MemoryEngine::default();
    let nodes = ["first:1", "second:1"].map(|address| ServingNode::join(&data, address));
    let token = Token::development();
    let made = nodes
        .each_ref()
        .map(|node| node.namespaces.ensure_default(Some(&token)).unwrap());
    assert_eq!(made.map(|made| made.is_some()), [true, false]);
    let third = ServingNode::join(&data, "third:1");
    let other = Token::read("another token of sixteen bytes").unwrap();
    assert!(third.namespaces.ensure_default(Some(&other)).is_err());
}

#[test]
fn a_node_that_is_alone_keeps_its_namespaces_when_it_is_stopped() {
    let data = MemoryEngine::default();
    let first = ServingNode::join(&data, "first:1");
    let names = fill(&first, 3);
    assert_eq!(first.namespaces.drain(PATIENCE).unwrap(), 0);
    assert_eq!(
        first
            .namespaces
            .database(&names[0])
            .unwrap()
            .head()
            .unwrap(),
        1
    );
}

#[test]
fn work_of_several_steps_is_not_cut_off_while_it_can_be_waited_for() {
    let data = MemoryEngine::default();
    let first = ServingNode::join(&data, "first:1");
    let names = fill(&first, 2);
    let second = ServingNode::join(&data, "second:1");
    pass(&[&first, &second], 10 * SECOND);
    let import = first.namespaces.database(&names[0]).unwrap().staying();
    let (namespaces, name) = (first.namespaces.clone(), names[1].clone());
    let drained = std::thread::spawn(move || namespaces.drain(Duration::from_secs(60)));
    let deadline = 400;
    for round in 0.. {
        if first.namespaces.opened(&name).is_none() {
            break;
        }
        assert!(round < deadline, "the other one is moved");
        std::thread::sleep(Duration::from_millis(25));
    }
    import.commit(commit()).unwrap();
    assert!(!drained.is_finished());
    drop(import);
    assert_eq!(drained.join().unwrap().unwrap(), 2);
    let moved = second.namespaces.database(&names[0]).unwrap();
    assert_eq!(moved.head().unwrap(), 2);
    // Who waits for no longer than this is cut off, and told so.
    let import = moved.clone().staying();
    let third = ServingNode::join(&data, "third:1");
    pass(&[&second, &third], 10 * SECOND);
    assert_eq!(second.namespaces.drain(Duration::ZERO).unwrap(), 1);
    check_elsewhere(import.commit(commit()), "third:1");
}

#[test]
fn a_node_that_joins_gets_its_share_and_then_nothing_moves() {
    let data = MemoryEngine::default();
    let first = ServingNode::join(&data, "first:1");
    let names = fill(&first, 20);
    let second = ServingNode::join(&data, "second:1");
    let nodes = [&first, &second];
    let pause = std::time::Duration::from_millis(100);
    let owned = |node: &ServingNode| -> Vec<NamespaceId> {
        let names = names
            .iter()
            .filter(|name| node.namespaces.opened(name).is_some());
        names.cloned().collect()
    };
    // One that has come is owned a moment before it is open.
    for round in 0.. {
        if first.n_owned() <= 12 && owned(&first).len() + owned(&second).len() == 20 {
            break;
        }
        assert!(round < 600, "{} {}", first.n_owned(), second.n_owned());
        pass(&nodes, SECOND / 4);
        std::thread::sleep(pause);
    }
    // It is as it should be, and stays so.
    let before = (owned(&first), owned(&second));
    for _ in 0..30 {
        pass(&nodes, SECOND / 4);
        std::thread::sleep(pause);
    }
    assert_eq!((owned(&first), owned(&second)), before);
    assert_eq!((before.0.len(), before.1.len()), (12, 8));
    for name in &before.1 {
        check_elsewhere(first.namespaces.database(name), "second:1");
        assert_eq!(second.namespaces.database(name).unwrap().head().unwrap(), 1);
    }
}
