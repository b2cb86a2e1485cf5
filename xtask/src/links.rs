//! Files that a document names: targets of links, and paths in backticks that begin with a
//! directory of the repository.

use std::path::Path;

/// What a path in backticks begins with.
const DIRECTORIES: &[&str] = &["crates/", "docs/", "examples/", "xtask/", "tests/"];

/// The named files that do not exist, each with its line.
pub(crate) fn missing<'a>(
    root: &'a Path,
    document: &'a Path,
    text: &'a str,
) -> impl Iterator<Item = (usize, &'a str)> {
    let beside = document.parent().unwrap_or(root);
    let lines = text.lines().enumerate();
    lines.flat_map(move |(number, line)| {
        let linked = targets(line).filter(move |target| !beside.join(target).exists());
        let quoted = paths(line).filter(move |path| !root.join(path).exists());
        linked.chain(quoted).map(move |name| (number + 1, name))
    })
}

/// The files in `[text](file#part)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?.split('#').next()?;
        (!target.is_empty() && !target.contains("://")).then_some(target)
    })
}

/// The paths in backticks; what has a wildcard or a placeholder is no path.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let begins = DIRECTORIES
            .iter()
            .any(|directory| text.starts_with(directory));
        begins && !text.contains(['*', '<', '{', ' '])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_looked_for() {
        let line = "see [a](docs/a.md#part), [b](https://b), [c](#c), `docs/d.md` and `crates/*`";
        assert_eq!(targets(line).collect::<Vec<_>>(), ["docs/a.md"]);
        assert_eq!(paths(line).collect::<Vec<_>>(), ["docs/d.md"]);
    }
}
