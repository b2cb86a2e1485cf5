//! Tokens: those that were brought along, what they permit, and until when they count.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use trefoil_core::{NamespaceId, Permission, Scope, Timestamp, Token};

use super::{Namespaces, NamespacesOptions, NewNamespace, NewToken};
use crate::{Clock, ManualTime, Options};

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

/// Namespaces in a directory, by a clock that is set.
fn open_at(directory: &Path, time: &Arc<ManualTime>) -> Namespaces {
    let database = Options::default().with_clock(Clock::new(Arc::clone(time) as _));
    let options = NamespacesOptions::default().with_database(database);
    Namespaces::open(directory, options).unwrap()
}

fn reading() -> Permission {
    Permission {
        scopes: [Scope::Read].into_iter().collect(),
        streams: vec!["order-".to_owned()],
        keys: Vec::new(),
    }
}

#[test]
fn tokens_survive_a_restart_with_what_they_permit() {
    let data = tempfile::tempdir().unwrap();
    let time = ManualTime::new(Timestamp(1_800_000_000_000_000_000));
    let namespaces = open_at(data.path(), &time);
    let (_, main) = namespaces
        .create(&id("a"), NewNamespace::default())
        .unwrap();
    let mut new = NewToken::new("reports", reading());
    new.expires = Some(Timestamp(1_800_000_100_000_000_000));
    let (_, first) = namespaces.create_token("a", new).unwrap();
    let overlap = Duration::from_secs(50);
    let second = namespaces
        .replace_token("a", "reports", None, overlap)
        .unwrap();
    let before = namespaces.tokens("a").unwrap();
    namespaces.close().unwrap();

    let namespaces = open_at(data.path(), &time);
    assert_eq!(namespaces.tokens("a").unwrap(), before);
    assert_eq!(
        namespaces.admit(&main).unwrap().permission(),
        &Permission::ALL
    );
    for token in [&first, &second] {
        let grant = namespaces.admit(token).unwrap();
        assert_eq!((grant.token(), grant.permission()), ("reports", &reading()));
        assert!(!grant.is_server_admin());
    }
    // The old one ends with the overlap, and the new one when the token expires.
    time.advance(Duration::from_secs(50));
    assert!(namespaces.admit(&first).is_none() && namespaces.admit(&second).is_some());
    time.advance(Duration::from_secs(50));
    assert!(namespaces.admit(&second).is_none() && namespaces.admit(&main).is_some());
}

#[test]
fn an_entry_of_the_first_format_has_the_token_main() {
    let data = tempfile::tempdir().unwrap();
    let token = Token::development();
    let namespaces = open(data.path());
    namespaces.ensure_default(Some(&token)).unwrap();
    namespaces.close().unwrap();
    let file = data.path().join("_meta/default.json");
    let hash = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(token.reveal()));
    let first_format = format!(
        r#"{{"format":1,"id":"default","tokenSha256":"{hash}","description":"","created":"2026-01-01T00:00:00Z"}}"#
    );
    fs::write(&file, &first_format).unwrap();
    let namespaces = open(data.path());
    let grant = namespaces.admit(&token).unwrap();
    assert_eq!(
        (grant.token(), grant.permission()),
        ("main", &Permission::ALL)
    );
    assert!(grant.is_server_admin());
    let [main] = &namespaces.tokens("default").unwrap()[..] else {
        panic!("more than one token");
    };
    assert_eq!(main.created.to_string(), "2026-01-01T00:00:00Z");
    namespaces
        .create_token("default", NewToken::new("more", reading()))
        .unwrap();
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.contains("\"format\": 2") && !written.contains("tokenSha256"));
    drop(namespaces);

    // What cannot be read is not passed over.
    fs::write(&file, first_format.replace("tokenSha256", "tokenSha255")).unwrap();
    assert!(open(data.path()).entry("default").is_err());
    fs::write(&file, first_format.replace("\"format\":1", "\"format\":3")).unwrap();
    let error = open(data.path()).entry("default").unwrap_err().to_string();
    assert!(
        error.contains("format is 3, this version reads 1 to 2"),
        "{error}"
    );
}

#[test]
fn it_is_written_once_an_hour_when_a_token_was_used() {
    let data = tempfile::tempdir().unwrap();
    let time = ManualTime::new(Timestamp(1_800_000_000_000_000_000));
    let namespaces = open_at(data.path(), &time);
    let (_, token) = namespaces
        .create(&id("a"), NewNamespace::default())
        .unwrap();
    let file = data.path().join("_meta/a.json");
    let used = |namespaces: &Namespaces| namespaces.tokens("a").unwrap()[0].last_used;
    assert_eq!(used(&namespaces), None);
    namespaces.admit(&token).unwrap();
    assert_eq!(
        used(&namespaces),
        Some(Timestamp(1_800_000_000_000_000_000))
    );
    assert!(!fs::read_to_string(&file).unwrap().contains("lastUsed"));
    time.advance(Duration::from_secs(3600));
    namespaces.admit(&token).unwrap();
    let written = || fs::read_to_string(&file).unwrap().contains("lastUsed");
    for _ in 0..2000 {
        if written() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    namespaces.close().unwrap();
    let later = open_at(data.path(), &time);
    assert_eq!(used(&later), Some(Timestamp(1_800_003_600_000_000_000)));
}

#[test]
fn whoever_listens_is_told_which_grants_count_no_more() {
    let namespaces = Namespaces::in_memory(NamespacesOptions::default()).unwrap();
    let (_, main) = namespaces
        .create(&id("a"), NewNamespace::default())
        .unwrap();
    let new = |name: &str| NewToken::new(name, reading());
    let (_, token) = namespaces.create_token("a", new("x")).unwrap();
    let (kept, revoked) = (
        namespaces.admit(&main).unwrap(),
        namespaces.admit(&token).unwrap(),
    );
    let told = Arc::new(Mutex::new(Vec::new()));
    let (listener, grants) = (Arc::clone(&told), [Arc::clone(&kept), Arc::clone(&revoked)]);
    namespaces.on_token_change(move |review| {
        let counts = grants
            .each_ref()
            .map(|grant| review.still_granted(grant).is_some());
        listener.lock().push((review.namespace.to_string(), counts));
    });
    namespaces.create_token("a", new("y")).unwrap();
    namespaces.revoke_token("a", "x").unwrap();
    // Another token of the same name is another token.
    namespaces.create_token("a", new("x")).unwrap();
    namespaces.delete("a").unwrap();
    let expected = [[true, true], [true, false], [true, false], [false, false]];
    let expected = expected.map(|counts| ("a".to_owned(), counts));
    assert_eq!(*told.lock(), expected);
    assert!(namespaces.still_granted(&kept).is_none());
}

#[test]
fn the_server_has_one_token_of_its_own() {
    let namespaces = Namespaces::in_memory(NamespacesOptions::default()).unwrap();
    namespaces
        .ensure_default(Some(&Token::development()))
        .unwrap();
    let given = Token::read("an administrator's own").unwrap();
    assert_eq!(
        namespaces.ensure_admin(Some(&given)).unwrap().as_ref(),
        Some(&given)
    );
    assert_eq!(namespaces.ensure_admin(None).unwrap(), None);
    assert_eq!(namespaces.ensure_admin(Some(&given)).unwrap(), None);
    let other = Token::read("somebody else's token").unwrap();
    let wrong = namespaces
        .ensure_admin(Some(&other))
        .unwrap_err()
        .to_string();
    assert_eq!(
        wrong,
        "the given admin token is not the one that the server has"
    );
    let grant = namespaces.admit(&given).unwrap();
    assert!(grant.is_server_admin() && grant.require(Scope::Read).is_err());
}
