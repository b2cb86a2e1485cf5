//! Patterns as `KEYS` and `SCAN MATCH` take them.

/// Returns whether a name matches a pattern of `*`, `?`, `[a-z]`, `[^a]` and `\` before what stands
/// for itself. Takes time proportional to the product of the lengths at most, whatever the pattern.
/// An empty name is matched by nothing but `*` and the empty pattern, as in Redis.
pub fn matches_glob(pattern: &[u8], name: &[u8]) -> bool {
    if name.is_empty() {
        return matches!(pattern, b"" | b"*");
    }
    let (mut at, mut from) = (0, 0);
    // Where to go on if what follows the last star does not match: one byte further.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            retry = Some((at + 1, from));
            at += 1;
            continue;
        }
        let step = match (pattern.get(at), name.get(from)) {
            (None, None) => return true,
            (Some(_), Some(&byte)) => match_one(&pattern[at..], byte),
            _ => None,
        };
        match (step, retry) {
            (Some(n), _) => {
                at += n;
                from += 1;
            }
            (None, Some((star, begin))) if begin < name.len() => {
                retry = Some((star, begin + 1));
                (at, from) = (star, begin + 1);
            }
            _ => return false,
        }
    }
}

/// Matches one byte. Returns how much of the pattern that took.
fn match_one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => match_class(rest, byte).map(|n| n + 1),
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// Matches what stands in brackets. A class that is not closed ends with the pattern.
fn match_class(class: &[u8], byte: u8) -> Option<usize> {
    let is_negated = class.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut is_found = false;
    loop {
        match &class[at.min(class.len())..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', literal, ..] => {
                is_found |= *literal == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = ((*low).min(*high), (*low).max(*high));
                is_found |= (low..=high).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                is_found |= *literal == byte;
                at += 1;
            }
        }
    }
    (is_found != is_negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("**", "", false),
            ("**", "a", true),
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-b]llo", "hbllo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("[abc", "a", true),
            ("a\\", "a\\", true),
            ("", "a", false),
            ("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            let found = matches_glob(pattern.as_bytes(), name.as_bytes());
            assert_eq!(found, expected, "{pattern} {name}");
        }
    }
}
