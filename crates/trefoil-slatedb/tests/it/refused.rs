//! Stores that cannot be used are refused, and it is said why.

use tempfile::TempDir;
use trefoil_slatedb::{SlateEngine, StoreOptions, StoreUrl};

use crate::services::{BUCKET, Service};

fn refusal(url: &str, options: StoreOptions) -> String {
    let url: StoreUrl = url.parse().unwrap();
    SlateEngine::connect(&url, options).unwrap_err().to_string()
}

#[test]
fn a_service_that_ignores_conditions() {
    let Some(service) = Service::rclone() else {
        return;
    };
    let options = StoreOptions {
        variables: service.variables(),
        ..StoreOptions::default()
    };
    let error = refusal(&format!("s3://{BUCKET}/prefix"), options);
    assert!(error.contains("cannot be used"), "{error}");
    assert!(error.contains("If-None-Match"), "{error}");
}

#[test]
fn a_bucket_that_may_not_be_used() {
    let Some(service) = Service::seaweedfs() else {
        return;
    };
    let options = StoreOptions {
        variables: service.variables(),
        ..StoreOptions::default()
    };
    let error = refusal("s3://absent/prefix", options);
    assert!(error.contains("s3://absent/prefix"), "{error}");
    assert!(error.contains("AccessDenied"), "{error}");
}

#[test]
fn a_service_that_does_not_answer() {
    let mut options = StoreOptions::default();
    let variables = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
    ];
    for (name, value) in variables {
        options.variables.insert(name.to_owned(), value.to_owned());
    }
    let error = refusal("s3://bucket/prefix", options);
    assert!(error.contains("s3://bucket/prefix"), "{error}");
    assert!(error.contains("127.0.0.1:1"), "{error}");
}

#[test]
fn a_directory_that_another_has() {
    let directory = TempDir::new().unwrap();
    let url = format!("file://{}", directory.path().display());
    let parsed: StoreUrl = url.parse().unwrap();
    let first = SlateEngine::connect(&parsed, StoreOptions::default()).unwrap();
    let error = refusal(&url, StoreOptions::default());
    assert!(error.contains("in use by another process"), "{error}");
    drop(first);
}

#[test]
fn a_directory_that_cannot_be_made() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let url = format!("file://{}/below", file.display());
    let error = refusal(&url, StoreOptions::default());
    assert!(error.contains("cannot make"), "{error}");
}
