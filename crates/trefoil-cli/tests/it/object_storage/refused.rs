//! A storage that cannot be used: one clear error, before anything is served.

use super::services::{BUCKET, Service};
use crate::harness::binary;

#[track_caller]
fn refusal(arguments: &[&str], code: i32) -> String {
    let output = binary().arg("serve").args(arguments).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    errors
}

#[test]
fn what_is_wrong_with_a_url_is_named() {
    let cases = [
        ("/var/lib", "not a URL"),
        ("gs:///p", "a bucket is missing: gs://bucket/prefix"),
        ("ftp://bucket/p", "ftp: is not known"),
        ("s3://key:secret@bucket", "AWS_ACCESS_KEY_ID"),
        ("file://relative", "three slashes"),
    ];
    for (url, expected) in cases {
        let error = refusal(&["--storage", url], 2);
        assert!(error.contains("storage (flag)"), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret@"), "{error}");
    }
}

#[test]
fn a_storage_and_a_data_directory_exclude_each_other() {
    let error = refusal(&["--storage", "memory:", "--data-dir", "data"], 2);
    assert!(error.contains("exclude each other"), "{error}");
    assert!(error.contains("--cache-dir"), "{error}");
}

#[test]
fn a_service_that_ignores_conditions_is_refused() {
    let Some(service) = Service::rclone() else {
        return;
    };
    let url = format!("s3://{BUCKET}/prefix");
    let output = binary()
        .envs(service.variables())
        .args(["serve", "--storage", &url])
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("If-None-Match"), "{errors}");
}
