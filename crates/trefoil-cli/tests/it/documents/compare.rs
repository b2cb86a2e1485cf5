//! Compares what a command printed with what a page shows, whole.
//!
//! In a line that is shown, `…` stands for any text, `<uuid>` for a UUID and `<time>` for a time
//! (RFC 3339, in UTC). Everything else stands for itself.

/// The lines that a command showed: what it printed, and how it failed.
pub(super) fn lines(output: &str, status: Option<i32>) -> Vec<String> {
    let mut lines: Vec<String> = output
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    match status {
        Some(0) => {}
        Some(status) => lines.push(format!("(exit status {status})")),
        None => lines.push("(killed)".to_owned()),
    }
    lines
}

/// An error names the first difference.
pub(super) fn compare(shown: &[String], printed: &[String]) -> Result<(), String> {
    let length = shown.len().max(printed.len());
    for index in 0..length {
        let difference = match (shown.get(index), printed.get(index)) {
            (Some(shown), Some(printed)) if is_like(shown, printed) => continue,
            (Some(shown), Some(printed)) => {
                format!("the page shows\n  {shown}\nit printed\n  {printed}")
            }
            (Some(shown), None) => format!("the page shows, and it did not print\n  {shown}"),
            (None, Some(printed)) => format!("it printed, and the page does not show\n  {printed}"),
            (None, None) => continue,
        };
        return Err(format!("line {}: {difference}", index + 1));
    }
    Ok(())
}

/// Whether `text` is what `pattern` describes.
pub(super) fn is_like(pattern: &str, text: &str) -> bool {
    let placeholders = ["…", "<uuid>", "<time>"];
    let next = placeholders
        .iter()
        .filter_map(|placeholder| Some((pattern.find(placeholder)?, *placeholder)))
        .min();
    let Some((place, placeholder)) = next else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(&pattern[..place]) else {
        return false;
    };
    let pattern = &pattern[place + placeholder.len()..];
    let fits = |end: usize| match placeholder {
        "<uuid>" => is_uuid(&rest[..end]),
        "<time>" => is_time(&rest[..end]),
        _ => true,
    };
    let ends = rest.char_indices().map(|(end, _)| end).chain([rest.len()]);
    ends.into_iter()
        .any(|end| fits(end) && is_like(pattern, &rest[end..]))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text
            .bytes()
            .zip(0..)
            .all(|(byte, place)| match matches!(place, 8 | 13 | 18 | 23) {
                true => byte == b'-',
                false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            })
}

/// `2026-03-03T10:00:00Z`, with any fraction of a second.
fn is_time(text: &str) -> bool {
    let shape = text.replace(|character: char| character.is_ascii_digit(), "0");
    let fraction = shape
        .strip_prefix("0000-00-00T00:00:00")
        .and_then(|rest| rest.strip_suffix('Z'));
    fraction.is_some_and(|fraction| {
        let digits = fraction.strip_prefix('.').unwrap_or(fraction);
        digits.chars().all(|digit| digit == '0') && fraction != "."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(shown: &[&str], output: &str, status: i32) -> bool {
        let shown: Vec<String> = shown.iter().map(|line| (*line).to_owned()).collect();
        compare(&shown, &lines(output, Some(status))).is_err()
    }

    #[test]
    fn an_error_never_goes_unnoticed() {
        assert!(!differs(&["OK", "QUEUED"], "OK\nQUEUED\n", 0));
        // An error before, between, after, or instead of what is shown.
        assert!(differs(&["OK", "QUEUED"], "error\nOK\nQUEUED\n", 0));
        let between = "OK\nInvalid argument(s)\nQUEUED\n";
        assert!(differs(&["OK", "QUEUED"], between, 0));
        assert!(differs(&["OK", "QUEUED"], "OK\nQUEUED\n(error) ERR\n", 0));
        assert!(differs(&["OK"], "(error) ERR syntax error\n", 0));
        // Where nothing is shown, nothing may be printed.
        assert!(differs(&[], "curl: (7) Failed to connect\n", 0));
        assert!(differs(&[], "", 1));
        assert!(differs(&["OK"], "OK\n", 3));
        assert!(!differs(&["OK", "(exit status 3)"], "OK\n", 3));
        assert!(differs(&["OK", "(exit status 3)"], "OK\n", 0));
    }

    #[test]
    fn output_is_compared_whole() {
        assert!(differs(&["OK"], "OK, but\n", 0));
        assert!(differs(&["OK", "OK"], "OK\n", 0));
        assert!(differs(&["a", "b"], "b\na\n", 0));
    }

    #[test]
    fn placeholders_stand_for_what_varies_and_no_more() {
        assert!(is_like("[…,7]", "[1,2,7]"));
        assert!(is_like("[…,7]", "[,7]"));
        assert!(!is_like("[…,7]", "[1,2,8]"));
        let uuid = "0197a0b8-7d5c-7e44-9edf-200000000001";
        assert!(is_like("[\"<uuid>\",1]", &format!("[\"{uuid}\",1]")));
        assert!(!is_like("\"<uuid>\"", "\"no uuid\""));
        assert!(!is_like("<uuid>", &uuid.to_uppercase()));
        assert!(is_like("<time>", "2026-03-03T10:00:00Z"));
        assert!(is_like("at <time>.", "at 2026-03-03T10:00:00.123456Z."));
        assert!(!is_like("<time>", "2026-03-03T10:00:00.Z"));
        assert!(!is_like("<time>", "today"));
    }
}
