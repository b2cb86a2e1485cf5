//! Values as JSON.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use trefoil_state::damaged;

use crate::Result;

/// Returns a value as JSON.
pub(super) fn write(value: &impl Serialize) -> Result<Bytes> {
    let json = serde_json::to_vec(value);
    // Nothing that is written here has a form that JSON lacks.
    let json = json.map_err(|_| damaged("what is to be written as JSON"))?;
    Ok(json.into())
}

/// Returns the value that JSON says, unless it is another kind of value, or no JSON.
pub(super) fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}
