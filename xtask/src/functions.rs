//! The functions of a source file and their lengths, as rustfmt lays them out: a function ends at
//! the first closing brace that stands as far to the right as its first line.

/// A function of several lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Where it begins, from 1.
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// Every function whose body takes more than one line.
pub(crate) fn find(text: &str) -> impl Iterator<Item = Function> {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).filter_map(move |start| {
        let length = length(&lines[start..])?;
        Some(Function {
            line: start + 1,
            lines: length,
        })
    })
}

/// The length of the function that begins on the first line; `None` if none does.
fn length(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let declaration = first.trim_start();
    let (before, after) = declaration.split_once("fn ")?;
    let qualified = before.split_whitespace().all(is_qualifier);
    if !qualified || !after.starts_with(|first: char| first.is_alphabetic() || first == '_') {
        return None;
    }
    let indentation = &first[..first.len() - declaration.len()];
    let end = lines.iter().skip(1).position(|line| {
        let rest = line.strip_prefix(indentation);
        // A declaration in a trait ends without a body.
        rest == Some("}") || rest.is_some_and(|rest| rest.starts_with(')') && rest.ends_with(';'))
    })?;
    let one_line = declaration.ends_with([';', '}']);
    (!one_line).then_some(end + 2)
}

fn is_qualifier(word: &str) -> bool {
    matches!(
        word,
        "pub" | "const" | "async" | "extern" | "\"C\"" | "unsafe"
    ) || word.starts_with("pub(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_where_they_end() {
        let text = "fn one() {}\n\nimpl A {\n    pub(crate) const fn two(\n        a: B,\n    ) -> C {\n        {\n        }\n    }\n}\n";
        let found: Vec<Function> = find(text).collect();
        assert_eq!(found, [Function { line: 4, lines: 6 }]);
    }

    #[test]
    fn words_that_look_like_functions_are_none() {
        let text = "trait T {\n    fn a(\n        b: C,\n    );\n}\nlet x = \"fn y\";\n// a fn z\n";
        assert_eq!(find(text).map(|found| found.lines).max(), Some(3));
    }
}
