//! Course subscriptions: a course has seats, a student has at most five courses, and no stream
//! could guard both.

use serde_json::json;
use trefoil::Query;

use super::{Outcome, count, execute, is_tagged, of_type};
use crate::dcb::backend::{Backend, over_every_protocol};
use crate::dcb::store::{Fact, Seen, Store, item};

over_every_protocol!(
    courses_and_students_keep_their_limits,
    of_many_subscriptions_only_the_seats_are_taken,
    a_student_in_a_hurry_gets_five_courses,
    a_capacity_that_changes_under_subscriptions_holds,
);

const COURSES_PER_STUDENT: usize = 5;

fn define(store: &mut dyn Store, course: &str, capacity: usize) -> Outcome {
    let query = Query::from(item(&["CourseDefined"], &[course]));
    execute(store, &query, |seen| match seen {
        [] => Ok(vec![
            Fact::new("CourseDefined", [course]).with(json!({"capacity": capacity})),
        ]),
        _ => Err("already exists"),
    })
}

fn capacity(seen: &[Seen], course: &str) -> Option<u64> {
    let mut of_course = seen.iter().filter(|seen| is_tagged(seen, course)).rev();
    of_course.find_map(|seen| seen.fact.data["capacity"].as_u64())
}

fn change_capacity(store: &mut dyn Store, course: &str, wanted: u64) -> Outcome {
    let query = Query::from(item(&["CourseDefined", "CourseCapacityChanged"], &[course]));
    execute(store, &query, |seen| match capacity(seen, course) {
        None => Err("does not exist"),
        Some(known) if known == wanted => Err("nothing to change"),
        Some(_) => Ok(vec![
            Fact::new("CourseCapacityChanged", [course]).with(json!({"capacity": wanted})),
        ]),
    })
}

fn subscribe(store: &mut dyn Store, student: &str, course: &str) -> Outcome {
    let query = Query::from(item(&["CourseDefined", "CourseCapacityChanged"], &[course]))
        .or(item(&["StudentSubscribed"], &[course]))
        .or(item(&["StudentSubscribed"], &[student]));
    execute(store, &query, |seen| {
        let subscribed = |tag: &str| {
            let all = of_type(seen, "StudentSubscribed");
            all.filter(|seen| is_tagged(seen, tag)).count()
        };
        let Some(capacity) = capacity(seen, course) else {
            return Err("does not exist");
        };
        if of_type(seen, "StudentSubscribed")
            .any(|seen| is_tagged(seen, course) && is_tagged(seen, student))
        {
            return Err("already subscribed");
        }
        if subscribed(course) as u64 >= capacity {
            return Err("fully booked");
        }
        if subscribed(student) >= COURSES_PER_STUDENT {
            return Err("5 courses");
        }
        Ok(vec![Fact::new("StudentSubscribed", [course, student])])
    })
}

fn courses_and_students_keep_their_limits(backend: &mut Backend) {
    let store = &mut *backend.connect();
    assert_eq!(define(store, "course:c1", 3), Ok(1));
    assert_eq!(define(store, "course:c1", 9), Err("already exists"));
    assert_eq!(define(store, "course:c2", 12), Ok(2));
    assert_eq!(
        change_capacity(store, "course:c0", 15),
        Err("does not exist")
    );
    assert_eq!(
        change_capacity(store, "course:c2", 12),
        Err("nothing to change")
    );
    assert_eq!(change_capacity(store, "course:c2", 15), Ok(3));
    assert_eq!(
        change_capacity(store, "course:c2", 15),
        Err("nothing to change")
    );
    assert_eq!(
        subscribe(store, "student:s1", "course:c0"),
        Err("does not exist")
    );
    for student in ["student:s1", "student:s2", "student:s3"] {
        subscribe(store, student, "course:c1").unwrap();
    }
    assert_eq!(
        subscribe(store, "student:s4", "course:c1"),
        Err("fully booked")
    );
    assert_eq!(
        subscribe(store, "student:s1", "course:c1"),
        Err("already subscribed")
    );
    for course in [
        "course:c2",
        "course:c3",
        "course:c4",
        "course:c5",
        "course:c6",
    ] {
        let _ = define(store, course, 10);
    }
    for course in ["course:c2", "course:c3", "course:c4", "course:c5"] {
        subscribe(store, "student:s1", course).unwrap();
    }
    assert_eq!(
        subscribe(store, "student:s1", "course:c6"),
        Err("5 courses")
    );
    let position = subscribe(store, "student:s2", "course:c6").unwrap();
    let last = store.all(&item(&[], &["student:s2", "course:c6"]).into());
    assert_eq!(last.positions(), [position]);
    assert_eq!(last.events[0].fact.tags, ["course:c6", "student:s2"]);
}

fn of_many_subscriptions_only_the_seats_are_taken(backend: &mut Backend) {
    for seats in [1, 7] {
        backend.renew();
        define(&mut *backend.connect(), "course:c", seats).unwrap();
        let outcomes = backend.together(60, |number, store| {
            subscribe(store, &format!("student:{number}"), "course:c")
        });
        assert_eq!(count(&outcomes, ""), seats);
        assert_eq!(count(&outcomes, "fully booked"), 60 - seats);
        let taken = item(&["StudentSubscribed"], &["course:c"]).into();
        assert_eq!(backend.connect().all(&taken).events.len(), seats);
    }
}

fn a_student_in_a_hurry_gets_five_courses(backend: &mut Backend) {
    let store = &mut *backend.connect();
    for number in 0..50 {
        define(store, &format!("course:{number}"), 2).unwrap();
    }
    let outcomes = backend.together(50, |number, store| {
        subscribe(store, "student:s", &format!("course:{number}"))
    });
    assert_eq!(count(&outcomes, ""), COURSES_PER_STUDENT);
    assert_eq!(count(&outcomes, "5 courses"), 50 - COURSES_PER_STUDENT);
}

/// Whenever a seat was taken there was one, by the capacity that held at that moment.
fn a_capacity_that_changes_under_subscriptions_holds(backend: &mut Backend) {
    define(&mut *backend.connect(), "course:c", 30).unwrap();
    backend.together(54, |number, store| match number % 9 {
        0 => {
            let wanted = 10 + number as u64 / 9;
            change_capacity(store, "course:c", wanted)
        }
        _ => subscribe(store, &format!("student:{number}"), "course:c"),
    });
    let history = backend.connect().all(&Query::all()).events;
    let (mut seats, mut taken) = (0, 0);
    for seen in &history {
        match seen.fact.data["capacity"].as_u64() {
            Some(capacity) => seats = capacity,
            None => {
                assert!(taken < seats, "no seat was left: {seen:?}");
                taken += 1;
            }
        }
    }
    assert_eq!(of_type(&history, "CourseCapacityChanged").count(), 6);
    assert!(taken >= 10, "{taken} of the seats that there always were");
}
