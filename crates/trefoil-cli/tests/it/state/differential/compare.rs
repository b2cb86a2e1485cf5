//! When two replies are the same.

use crate::harness::Value;

/// How the replies to a command are compared; `commands.txt` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Exact,
    Whole,
    Shape,
    Set,
    Map,
    Near,
    Pick,
    Take,
    Scan,
    Count,
}

/// How far two times may be apart, in milliseconds.
const NEAR: i64 = 5_000;

impl How {
    pub(super) fn named(name: &str) -> Self {
        match name {
            "exact" => Self::Exact,
            "whole" => Self::Whole,
            "shape" => Self::Shape,
            "set" => Self::Set,
            "map" => Self::Map,
            "near" => Self::Near,
            "pick" => Self::Pick,
            "take" => Self::Take,
            "scan" => Self::Scan,
            "count" => Self::Count,
            _ => panic!("no comparison {name:?} in compare.rs"),
        }
    }

    /// Whether two replies are the same as far as they can be.
    pub(super) fn agree(self, one: &Value, other: &Value) -> bool {
        let (one, other) = (&without_negative_zero(one), &without_negative_zero(other));
        match self {
            Self::Exact | Self::Whole => one == other,
            Self::Set => sorted(one) == sorted(other),
            Self::Map => sorted_pairs(one) == sorted_pairs(other),
            Self::Near => are_near(one, other),
            Self::Shape | Self::Pick | Self::Take | Self::Scan | Self::Count => {
                have_one_shape(one, other)
            }
        }
    }
}

/// Redis keeps the sign of zero in large sorted sets and loses it in small ones.
fn without_negative_zero(value: &Value) -> Value {
    match value {
        Value::Bulk(digits) if digits == b"-0" => Value::bulk("0"),
        Value::Double(digits) if digits == "-0" => Value::Double("0".to_owned()),
        Value::Array(all) => Value::Array(all.iter().map(without_negative_zero).collect()),
        other => other.clone(),
    }
}

fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    if let Value::Array(all) | Value::Set(all) = &mut value {
        all.sort();
    }
    value
}

/// Pairs are a map, or every two elements of a list.
fn sorted_pairs(value: &Value) -> Value {
    match value.clone() {
        Value::Map(mut pairs) => {
            pairs.sort();
            Value::Map(pairs)
        }
        Value::Array(all) => {
            let mut pairs: Vec<_> = all
                .chunks(2)
                .map(|pair| Value::Array(pair.to_vec()))
                .collect();
            pairs.sort();
            Value::Array(pairs)
        }
        other => other,
    }
}

fn are_near(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) if *one > 0 && *other > 0 => {
            one.abs_diff(*other) <= NEAR as u64
        }
        _ => one == other,
    }
}

/// The same type and, of lists, as many elements.
fn have_one_shape(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) | (Value::Set(one), Value::Set(other)) => {
            one.len() == other.len()
        }
        (Value::Error(_), _) => one == other,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}
