//! Sorting: by numbers, or by bytes.

use std::cmp::Ordering;

use bytes::Bytes;

use super::options::SortBy;
use crate::error::{CommandError, Result};
use crate::keyspace::Keyspace;
use crate::parse_double;

/// An element and what it is sorted by.
type SortedBy<T> = (T, Bytes);

/// Sorts elements by what belongs to them.
pub(super) fn sort(
    keyspace: &Keyspace<'_>,
    elements: Vec<Bytes>,
    by: &SortBy,
    is_alpha: bool,
    is_descending: bool,
) -> Result<Vec<Bytes>> {
    let weigh = |element: Bytes| -> Result<SortedBy<Option<Bytes>>> {
        let weight = match by {
            SortBy::Pattern(pattern) => pattern.value(keyspace, &element)?,
            SortBy::Element | SortBy::Nothing => Some(element.clone()),
        };
        Ok((weight, element))
    };
    let weighed = elements.into_iter().map(weigh);
    if is_alpha {
        // What has nothing to be sorted by is before everything else.
        let weighed = weighed.collect::<Result<Vec<_>>>()?;
        return Ok(sorted(weighed, is_descending, |(a, _), (b, _)| a.cmp(b)));
    }
    let numbered = weighed.map(|weighed| {
        let (weight, element) = weighed?;
        Ok((number(weight.as_ref())?, element))
    });
    let numbered = numbered.collect::<Result<Vec<_>>>()?;
    Ok(sorted(
        numbered,
        is_descending,
        |(a, a_name), (b, b_name)| {
            let by_number = a.partial_cmp(b).unwrap_or(Ordering::Equal);
            by_number.then_with(|| a_name.cmp(b_name))
        },
    ))
}

fn sorted<T>(
    mut elements: Vec<SortedBy<T>>,
    is_descending: bool,
    compare: impl Fn(&SortedBy<T>, &SortedBy<T>) -> Ordering,
) -> Vec<Bytes> {
    match is_descending {
        true => elements.sort_by(|a, b| compare(b, a)),
        false => elements.sort_by(compare),
    }
    let elements = elements.into_iter();
    elements.map(|(_, element)| element).collect()
}

/// What is not there, or is empty, is zero. As in C, a text ends with its first zero byte.
fn number(weight: Option<&Bytes>) -> Result<f64> {
    let text = weight.map(AsRef::as_ref).unwrap_or_default();
    let text: &[u8] = text;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Ok(0.0);
    }
    parse_double(text.trim_ascii_start()).ok_or(CommandError::refused(
        "ERR One or more scores can't be converted into double",
    ))
}
