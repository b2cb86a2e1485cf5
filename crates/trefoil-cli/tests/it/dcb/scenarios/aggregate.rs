//! An event-sourced aggregate on tags: what a stream with an expected version does, a tag with a
//! condition does too.

use serde_json::json;
use trefoil::Query;

use crate::dcb::backend::{Backend, over_every_protocol};
use crate::dcb::store::{Fact, Refusal, Store, Unless, item};

over_every_protocol!(
    a_stale_aggregate_is_not_saved,
    of_many_saves_of_one_version_one_wins
);

/// A course as it was loaded, and what was done to it since.
struct Course {
    tag: String,
    title: String,
    version: u64,
    changes: Vec<Fact>,
}

impl Course {
    fn load(store: &mut dyn Store, id: &str) -> Self {
        let tag = format!("course:{id}");
        let history = store.all(&query(&tag));
        let titles = history.events.iter();
        let title = titles
            .filter_map(|seen| seen.fact.data["title"].as_str())
            .next_back();
        Self {
            title: title.unwrap_or_default().to_owned(),
            version: history.after(),
            tag,
            changes: Vec::new(),
        }
    }

    fn rename(&mut self, title: &str) {
        let kind = if self.title.is_empty() {
            "CourseDefined"
        } else {
            "CourseRenamed"
        };
        title.clone_into(&mut self.title);
        let fact = Fact::new(kind, [&self.tag]).with(json!({"title": title}));
        self.changes.push(fact);
    }

    fn save(self, store: &mut dyn Store) -> Result<u64, Refusal> {
        let unless = Unless::after(&query(&self.tag), self.version);
        store.append(&self.changes, &[unless])
    }
}

fn query(tag: &str) -> Query {
    item(&[], &[tag]).into()
}

fn a_stale_aggregate_is_not_saved(backend: &mut Backend) {
    let store = &mut *backend.connect();
    let mut course = Course::load(store, "c1");
    course.rename("Rust");
    course.rename("Rust, again");
    assert_eq!(course.save(store), Ok(2));
    let (mut first, mut second) = (Course::load(store, "c1"), Course::load(store, "c1"));
    assert_eq!((first.title.as_str(), first.version), ("Rust, again", 2));
    first.rename("first");
    second.rename("second");
    // Another aggregate does not matter.
    let mut other = Course::load(store, "c10");
    other.rename("Ten");
    other.save(store).unwrap();
    first.save(store).unwrap();
    assert!(matches!(second.save(store), Err(Refusal::Conflict { .. })));
    assert_eq!(Course::load(store, "c1").title, "first");
}

fn of_many_saves_of_one_version_one_wins(backend: &mut Backend) {
    for round in 1..=4 {
        let saved = backend.together(50, |number, store| {
            let mut course = Course::load(store, "c1");
            course.version = course.version.min((round - 1) * 2);
            course.rename(&format!("{round}/{number}"));
            course.rename(&format!("{round}/{number}, in the end"));
            course.save(store).is_ok()
        });
        assert_eq!(saved.iter().filter(|saved| **saved).count(), 1);
        let store = &mut *backend.connect();
        assert_eq!(store.all(&Query::all()).after(), round * 2);
    }
}
