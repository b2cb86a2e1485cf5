//! A decision that depends on some events, and on no stream: it reads what matters, and commits on
//! the condition that nothing new has come to it. If something has, it decides again.
//!
//! ```text
//! cargo run -p trefoil --example decision
//! ```

use trefoil::{Commit, Database, Error, NewEvent, Options, Query, QueryItem, Selection};

const SEATS: usize = 2;

fn main() -> trefoil::Result<()> {
    let db = Database::in_memory(&Options::default())?;
    for student in ["ada", "bob", "ada", "eve"] {
        let outcome = enroll(&db, student, "maths")?;
        println!("{student}: {outcome}");
    }

    // Many at once: those that lose a race decide again.
    let students = (0..8).map(|number| format!("student{number}"));
    let enrolled = std::thread::scope(|scope| {
        let enroll = |student: String| {
            let db = &db;
            scope.spawn(move || enroll(db, &student, "physics"))
        };
        let all: Vec<_> = students.map(enroll).collect();
        let outcomes = all.into_iter().filter_map(|thread| thread.join().ok());
        outcomes.collect::<trefoil::Result<Vec<_>>>()
    })?;
    let n_enrolled = enrolled.iter().filter(|&&outcome| outcome == "enrolled");
    println!("physics has {} students", n_enrolled.count());
    Ok(())
}

/// Enrolls a student in a course, if there is a seat and the student has none yet.
fn enroll(db: &Database, student: &str, course: &str) -> trefoil::Result<&'static str> {
    let course = format!("course:{course}");
    let student = format!("student:{student}");
    // All that the decision depends on, and nothing else.
    let matters = Query::from(QueryItem::any().of_type("Enrolled").tagged(&course));
    loop {
        let (enrolled, head) = db.read_with_head(&Selection::query(matters.clone()))?;
        if enrolled
            .iter()
            .any(|event| event.tags().any(|tag| tag == student))
        {
            return Ok("is enrolled already");
        }
        if enrolled.len() >= SEATS {
            return Ok("the course is full");
        }
        let event = NewEvent::without_stream("Enrolled", "{}").with_tags([&course, &student]);
        match db.commit(Commit::new([event]).fail_if_new(matters.clone(), head)) {
            Ok(_) => return Ok("enrolled"),
            Err(Error::ConditionFailed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}
