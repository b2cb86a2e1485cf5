//! `/openapi.json`, compared with what the server takes and answers.

use std::io::Write as _;

use tempfile::{NamedTempFile, TempDir};

use crate::harness::{ADMIN, Server};
use crate::{cases, python};

/// Every request of the cases, and every answer, is as the description says; what is not so, the
/// description refuses.
#[test]
fn the_description_is_that_of_the_server() {
    if !python::has("jsonschema, openapi_spec_validator") {
        return;
    }
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let mut file = NamedTempFile::new().unwrap();
    for exchange in cases::run(&server, "production") {
        writeln!(file, "{exchange}").unwrap();
    }
    let url = format!("http://127.0.0.1:{}", server.port);
    let mut script = python::script("openapi.py");
    python::run(script.args([&url, ADMIN]).arg(file.path()));
}
