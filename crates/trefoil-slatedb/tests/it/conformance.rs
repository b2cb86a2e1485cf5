//! The engine does what every engine must do, on each kind of store.

use std::sync::Arc;

use tempfile::TempDir;
use trefoil_kv::conformance;
use trefoil_kv::contract::KvEngine;
use trefoil_slatedb::{SlateEngine, StoreOptions, StoreUrl};

use crate::services::{BUCKET, Service};

fn engine(url: &str, options: StoreOptions) -> Arc<dyn KvEngine> {
    let url: StoreUrl = url.parse().unwrap();
    Arc::new(SlateEngine::connect(&url, options).unwrap())
}

#[test]
fn in_memory() {
    let engine = engine("memory:", StoreOptions::default());
    conformance::check(&|| Arc::clone(&engine));
}

#[test]
fn in_a_directory_with_a_cache_on_disk() {
    let directory = TempDir::new().unwrap();
    let options = StoreOptions {
        cache_directory: Some(directory.path().join("cache")),
        cache_disk: 64 << 20,
        ..StoreOptions::default()
    };
    let url = format!("file://{}", directory.path().join("store").display());
    let first = engine(&url, options);
    conformance::check(&|| Arc::clone(&first));
}

#[test]
fn on_an_s3_service_by_two_nodes() {
    let Some(service) = Service::seaweedfs() else {
        return;
    };
    let url = format!("s3://{BUCKET}/some/prefix");
    let options = StoreOptions {
        variables: service.variables(),
        ..StoreOptions::default()
    };
    conformance::check(&|| engine(&url, options.clone()));
}
