//! Removed and redacted events of the built binary: their bytes go, whenever it is killed, and all else
//! stays what it was.

mod dropping;
mod redacting;
pub(crate) mod search;
pub(crate) mod secrets;

use std::path::Path;

use crate::harness::binary;

/// `trefoil verify` finds nothing wrong.
#[track_caller]
fn check_sound(data: &Path) {
    let output = binary().arg("verify").arg(data).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
