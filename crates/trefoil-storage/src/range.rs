//! The part of a map that a scan walks over, whatever the lengths of its ends.

use std::ops::Bound;

use crate::KEY_BYTES_MAX;

/// Where a walk over a map begins and ends.
pub(crate) type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The keys with `from <= key < to`, where an empty `to` is the end of the map; `None` if there
/// cannot be any. Neither end is longer than a key may be: no key lies between an end that is and
/// its first [`KEY_BYTES_MAX`] bytes.
pub(crate) fn range<'a>(from: &'a [u8], to: &'a [u8]) -> Option<Range<'a>> {
    let lower = match from.get(..KEY_BYTES_MAX) {
        Some(cut) if cut.len() < from.len() => Bound::Excluded(cut),
        _ => Bound::Included(from),
    };
    let upper = match to.get(..KEY_BYTES_MAX) {
        _ if to.is_empty() => return Some((lower, Bound::Unbounded)),
        Some(cut) if cut.len() < to.len() => Bound::Included(cut),
        _ => Bound::Excluded(to),
    };
    let is_empty = match (lower, upper) {
        // The key that both are cut to is before both.
        (Bound::Excluded(lower), Bound::Included(upper)) => lower >= upper,
        _ => from >= to,
    };
    (!is_empty).then_some((lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_end_is_cut_to_what_no_key_tells_from_it() {
        let longest = vec![b'k'; KEY_BYTES_MAX];
        let longer = [&longest[..], b"a"].concat();
        let other = [&longest[..], b"b"].concat();
        let cut = &longest[..];
        assert_eq!(
            range(cut, b""),
            Some((Bound::Included(cut), Bound::Unbounded))
        );
        assert_eq!(
            range(&longer, b""),
            Some((Bound::Excluded(cut), Bound::Unbounded))
        );
        assert_eq!(
            range(b"a", &longer),
            Some((Bound::Included(&b"a"[..]), Bound::Included(cut)))
        );
        assert_eq!(
            range(cut, &longer),
            Some((Bound::Included(cut), Bound::Included(cut)))
        );
        assert_eq!(range(&longer, &other), None);
        assert_eq!(range(&longer, cut), None);
        assert_eq!(range(b"b", b"a"), None);
        assert_eq!(range(b"a", b"a"), None);
    }
}
