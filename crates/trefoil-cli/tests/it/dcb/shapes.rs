//! The shapes of `cases/shapes.txt`, events that a query matches or nearly matches, each with the
//! other append at every moment at which it can come.

use super::backend::{Backend, over_every_protocol};
use super::store::{Fact, Refusal, Store, Unless};
use super::words;

over_every_protocol!(every_shape_at_every_moment);

struct Shape<'a> {
    title: &'a str,
    conflicts: bool,
    /// What the other one appends.
    event: Fact,
    unless: Unless,
}

fn shapes() -> Vec<Shape<'static>> {
    let mut lines = include_str!("cases/shapes.txt").lines();
    let mut shapes = Vec::new();
    while let (Some(title), Some(shape)) = (lines.next(), lines.next()) {
        let (event, query) = shape.split_once(" against ").unwrap();
        shapes.push(Shape {
            title,
            conflicts: title.starts_with("conflict: "),
            event: words::facts(event).remove(0),
            unless: Unless::any(&words::query(query)),
        });
    }
    shapes
}

fn every_shape_at_every_moment(backend: &mut Backend) {
    let shapes = shapes();
    let conflicts = shapes.iter().filter(|shape| shape.conflicts).count();
    assert_eq!((shapes.len(), conflicts), (16, 8));
    for shape in &shapes {
        backend.renew();
        let mut store = backend.connect();
        // Something that has nothing to do with it is there before.
        store.append(&[Fact::new("Noise", ["noise"])], &[]).unwrap();
        before_the_read(store.as_mut(), shape);
        between_read_and_commit(store.as_mut(), shape);
        with_its_own_position(store.as_mut(), shape);
    }
}

/// The append of a decision; it matches no shape.
fn attempt(store: &mut dyn Store, unless: Unless) -> Result<u64, Refusal> {
    store.append(&[Fact::new("Decided", ["decision"])], &[unless])
}

fn other(store: &mut dyn Store, shape: &Shape<'_>) -> u64 {
    store
        .append(std::slice::from_ref(&shape.event), &[])
        .unwrap()
}

#[track_caller]
fn expect(shape: &Shape<'_>, answer: &Result<u64, Refusal>, at: u64) {
    match answer {
        Ok(_) => assert!(!shape.conflicts, "{}: a conflict went unseen", shape.title),
        Err(Refusal::Conflict { position, .. }) => {
            assert!(shape.conflicts, "{}: no conflict", shape.title);
            assert_eq!(position.unwrap_or(at), at, "{}", shape.title);
        }
        Err(refusal) => panic!("{}: {refusal:?}", shape.title),
    }
}

/// A condition that there is none at all fails; one after its position does not.
fn before_the_read(store: &mut dyn Store, shape: &Shape<'_>) {
    let position = other(store, shape);
    let read = store.all(&shape.unless.query);
    let found = read.positions();
    assert_eq!(
        found.contains(&position),
        shape.conflicts,
        "{}",
        shape.title
    );
    assert!(read.after() >= position);
    expect(shape, &attempt(store, shape.unless.clone()), position);
    let after = Unless::after(&shape.unless.query, read.after());
    attempt(store, after).unwrap();
}

fn between_read_and_commit(store: &mut dyn Store, shape: &Shape<'_>) {
    let after = store.all(&shape.unless.query).after();
    let position = other(store, shape);
    let unless = Unless::after(&shape.unless.query, after);
    expect(shape, &attempt(store, unless), position);
}

fn with_its_own_position(store: &mut dyn Store, shape: &Shape<'_>) {
    let position = other(store, shape);
    let unless = Unless::after(&shape.unless.query, position);
    attempt(store, unless).unwrap();
    let unless = Unless::after(&shape.unless.query, position - 1);
    expect(shape, &attempt(store, unless), position);
}
