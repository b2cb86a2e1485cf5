//! Copies and restored backups of namespaces whose log has dropped events.

use std::collections::HashMap;
use std::sync::Arc;

use trefoil::backup::{
    BackupBase, BackupStep, NamespaceBackup, RestoreOrder, check_backup, restore_namespace,
};
use trefoil::home::{Home, MemoryHome};
use trefoil::{
    Commit, Database, Event, NamespaceId, Namespaces, NamespacesOptions, NewEvent, NewNamespace,
    Options, Selection, tools,
};

fn id() -> NamespaceId {
    NamespaceId::new("tenant").unwrap()
}

fn open(home: &Arc<MemoryHome>) -> Namespaces {
    let home: Arc<dyn Home> = Arc::<MemoryHome>::clone(home);
    Namespaces::open_in(home, NamespacesOptions::default()).unwrap()
}

/// What a namespace tells: its events, versions and counts.
fn told(namespaces: &Namespaces) -> (Vec<Event>, Vec<Option<u64>>, [u64; 3]) {
    let database = namespaces.database(&id()).unwrap();
    let events = database.read(&Selection::all()).unwrap();
    let versions = ["account-1", "account-2", "account-3"];
    let versions = versions.map(|stream| database.version(stream).unwrap());
    let info = database.info().unwrap();
    (
        events,
        versions.to_vec(),
        [info.events, info.streams, info.head],
    )
}

/// Commits of several events, of some of which a part is removed, and one is redacted.
fn fill(database: &Database) {
    for number in 0..40 {
        let stream = |index| format!("account-{}", 1 + (number + index) % 3);
        let event = |index| NewEvent::new(stream(index), "Moved", format!("[{number},{index}]"));
        database.commit(Commit::new((0..3).map(event))).unwrap();
    }
    database.delete_stream("account-1", None).unwrap();
    database.redact(2, false).unwrap();
    database.compact().unwrap();
}

#[test]
fn a_copy_and_a_restored_backup_have_the_same_holes() {
    let home = Arc::new(MemoryHome::new());
    let namespaces = open(&home);
    namespaces.create(&id(), NewNamespace::default()).unwrap();
    fill(&namespaces.database(&id()).unwrap());
    let expected = told(&namespaces);
    assert_eq!((expected.0.len(), expected.2), (80, [80, 2, 120]));
    let (mut list, mut parts) = (None, HashMap::new());
    let take = &mut |step| {
        match step {
            BackupStep::Head(head) => {
                list = Some(NamespaceBackup::begin("tenant", &head, None).unwrap());
            }
            BackupStep::Part(part) => {
                let list: &mut NamespaceBackup = list.as_mut().unwrap();
                parts.insert(list.add(&part).unwrap().hash, part.bytes);
            }
        }
        Ok(())
    };
    let base = BackupBase::default();
    namespaces.backup("tenant", &base, take).unwrap();
    namespaces.close().unwrap();
    let list = list.unwrap();
    let fetch = &mut |part: &trefoil::backup::PartReference| Ok(parts[&part.hash].clone());
    assert_eq!(check_backup(&list, fetch).unwrap().events, 80);
    let restored = Arc::new(MemoryHome::new());
    let options = Options::default();
    restore_namespace(
        restored.as_ref(),
        &id(),
        &list,
        RestoreOrder::default(),
        &options,
        fetch,
    )
    .unwrap();
    assert_eq!(told(&open(&restored)), expected);
    let copy = Arc::new(MemoryHome::new());
    let (from, to) = (home.as_ref(), copy.as_ref());
    tools::copy_namespace(from, to, &id(), &options, &mut |_| {}).unwrap();
    assert_eq!(told(&open(&copy)), expected);
}
