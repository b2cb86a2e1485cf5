//! The words of the case files: events, queries and conditions in a line of text.

use trefoil::{EventId, Query, QueryItem};

use super::store::{Fact, Unless};

/// `Moved #a #b @7; Opened`
pub(super) fn facts(text: &str) -> Vec<Fact> {
    text.split(';').map(fact).collect()
}

fn fact(text: &str) -> Fact {
    let mut words = text.split_whitespace();
    let mut fact = Fact::new(words.next().unwrap(), [""; 0]);
    for word in words {
        match word.split_at(1) {
            ("#", tag) => fact.tags.push(tag.to_owned()),
            ("@", number) => {
                let number: u128 = number.parse().unwrap();
                fact.id = Some(EventId::from_u128(0x4000_0000_0000_0000_0000 | number));
            }
            _ => panic!("{word} in {text:?}"),
        }
    }
    fact
}

/// `Moved,Opened #a #b | * #c`, or `all`
pub(super) fn query(text: &str) -> Query {
    match text.trim() {
        "all" => Query::all(),
        items => items.split('|').map(item).collect(),
    }
}

fn item(text: &str) -> QueryItem {
    let (types, tags) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let types = types.split(',').filter(|name| *name != "*");
    let tags = tags.split_whitespace();
    QueryItem {
        types: types.map(str::to_owned).collect(),
        tags: tags
            .map(|tag| tag.strip_prefix('#').unwrap().to_owned())
            .collect(),
    }
}

/// `events unless query after n unless …`
pub(super) fn append(text: &str) -> (Vec<Fact>, Vec<Unless>) {
    let mut parts = text.split(" unless ");
    let facts = facts(parts.next().unwrap());
    let unless = |part: &str| match part.split_once(" after ") {
        Some((asked, after)) => Unless::after(&query(asked), after.trim().parse().unwrap()),
        None => Unless::any(&query(part)),
    };
    (facts, parts.map(unless).collect())
}
