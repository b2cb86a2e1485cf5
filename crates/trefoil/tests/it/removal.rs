//! Removed events: everything else stays right.

use trefoil::{Commit, Database, List, NewEvent, Options};

#[test]
fn the_category_without_a_name_is_listed_once_and_hidden_when_it_is_empty() {
    let database = Database::in_memory(&Options::default()).unwrap();
    let categories = |limit| {
        let found = database.categories(&List::new(limit)).unwrap();
        found
            .into_iter()
            .map(|found| found.category)
            .collect::<Vec<_>>()
    };
    let write = |stream| {
        let event = NewEvent::new(stream, "Written", "{}");
        database.commit(Commit::new([event])).unwrap();
    };
    write("-1");
    assert_eq!(
        (categories(1), categories(9)),
        (vec![String::new()], vec![String::new()])
    );
    write("a-1");
    assert_eq!(categories(9), ["", "a"]);
    database.delete_stream("-1", None).unwrap();
    assert_eq!(
        (categories(1), categories(9)),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
    assert!(categories(0).is_empty());
}
