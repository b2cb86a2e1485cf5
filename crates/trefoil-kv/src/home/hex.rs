//! Large numbers as JSON has them here: in hexadecimal, because many readers of JSON keep 53 bits.

use serde::{Deserialize as _, Deserializer, Serializer, de};

pub(super) fn serialize<S: Serializer>(number: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{number:032x}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    let text = String::deserialize(deserializer)?;
    u128::from_str_radix(&text, 16).map_err(de::Error::custom)
}
