//! Tokens that were brought along.

use std::fs;
use std::path::Path;

use trefoil_core::{NamespaceId, Token};

use super::{Namespaces, NamespacesOptions, NewNamespace};

fn open(directory: &Path) -> Namespaces {
    Namespaces::open(directory, NamespacesOptions::default()).unwrap()
}

fn id(name: &str) -> NamespaceId {
    NamespaceId::new(name).unwrap()
}

#[test]
fn a_token_that_was_brought_along_finds_its_namespace_by_its_hash() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    let bring = |namespaces: &Namespaces, name: &str, token: &str| {
        let new = NewNamespace {
            token: Some(Token::read(token).unwrap()),
            ..NewNamespace::default()
        };
        let created = namespaces.create(&id(name), new);
        created.map(drop).map_err(|error| error.to_string())
    };
    let (key, other) = ("an API key of UmaDB", "0123456789abcdef");
    bring(&namespaces, "a", key).unwrap();
    let short = "the given token has 15 bytes, it needs at least 16";
    assert_eq!(bring(&namespaces, "b", &other[1..]).unwrap_err(), short);
    let taken = "the given token is in use by another namespace";
    assert_eq!(bring(&namespaces, "b", key).unwrap_err(), taken);
    bring(&namespaces, "b", other).unwrap();
    let find =
        |namespaces: &Namespaces, key: &str| namespaces.authenticate(&Token::read(key).unwrap());
    assert_eq!(find(&namespaces, key), Some(id("a")));
    assert_eq!(find(&namespaces, "an API key of UmaDB "), None);
    namespaces.close().unwrap();

    // Only the hash is stored, and it is enough after a restart.
    let entry = fs::read_to_string(data.path().join("_meta/a.json")).unwrap();
    assert!(!entry.contains("key"), "{entry}");
    let namespaces = open(data.path());
    assert_eq!(find(&namespaces, key), Some(id("a")));
    assert_eq!(find(&namespaces, other), Some(id("b")));
    namespaces.delete("a").unwrap();
    assert_eq!(find(&namespaces, key), None);
    bring(&namespaces, "c", key).unwrap();
    assert_eq!(find(&namespaces, key), Some(id("c")));
}

#[test]
fn another_token_may_be_brought_along_later() {
    let data = tempfile::tempdir().unwrap();
    let namespaces = open(data.path());
    for name in ["a", "b"] {
        let created = namespaces.create(&id(name), NewNamespace::default());
        created.unwrap();
    }
    let [key, other] = ["an API key of UmaDB", "another one of UmaDB"].map(|text| {
        let token = Token::read(text);
        token.unwrap()
    });
    let rotate = |name: &str, token: &Token| namespaces.rotate_token(name, Some(token.clone()));
    rotate("a", &key).unwrap();
    assert!(rotate("b", &key).is_err());
    rotate("a", &key).unwrap();
    assert_eq!(namespaces.authenticate(&key), Some(id("a")));
    rotate("a", &other).unwrap();
    assert_eq!(namespaces.authenticate(&key), None);
    rotate("b", &key).unwrap();
    assert_eq!(namespaces.authenticate(&key), Some(id("b")));
    assert_eq!(namespaces.authenticate(&other), Some(id("a")));
}
