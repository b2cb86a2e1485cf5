//! A server whose data is in an object storage: the machine is a cache, and nothing else.

mod backups;
mod damaged;
mod example;
mod forwarded;
mod refused;
mod relayed;
mod tools;
mod world;

#[allow(dead_code, reason = "the engine's own tests use all of it")]
#[path = "../../../../trefoil-slatedb/tests/it/services.rs"]
pub(crate) mod services;

use std::collections::BTreeMap;

use tempfile::TempDir;

use services::{BUCKET, Service};
use world::World;

/// Where the data of a test is.
struct Storage {
    url: String,
    variables: BTreeMap<String, String>,
    _service: Option<Service>,
    _directory: TempDir,
}

impl Storage {
    fn in_a_directory() -> Self {
        let directory = TempDir::new().unwrap();
        Self {
            url: format!("file://{}", directory.path().join("store").display()),
            variables: BTreeMap::new(),
            _service: None,
            _directory: directory,
        }
    }

    /// `None` if there is no service on this machine.
    fn on_s3() -> Option<Self> {
        let service = Service::seaweedfs()?;
        Some(Self {
            url: format!("s3://{BUCKET}/one/cluster"),
            variables: service.variables(),
            _service: Some(service),
            _directory: TempDir::new().unwrap(),
        })
    }
}

/// Writes over every protocol, kills the server, deletes what the machine has, and starts elsewhere.
fn survives_its_machine(storage: &Storage) {
    let first = World::start(storage);
    let written = first.write();
    first.kill();
    for round in 0..3 {
        let elsewhere = World::start(storage);
        elsewhere.check(&written);
        elsewhere.write_more(round);
        elsewhere.kill();
    }
    let last = World::start(storage);
    last.check(&written);
    last.check_more(3);
    last.stop();
    let after = World::start(storage);
    after.check(&written);
    after.stop();
}

#[test]
fn a_server_on_files_survives_its_machine() {
    survives_its_machine(&Storage::in_a_directory());
}

#[test]
fn a_server_on_s3_survives_its_machine() {
    if let Some(storage) = Storage::on_s3() {
        survives_its_machine(&storage);
    }
}
