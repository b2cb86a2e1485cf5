//! `cargo xtask tidy`: rules of this repository that no compiler checks.
//!
//! - Every source file begins with what it is for, and has at most [`FILE_LINES_MAX`] lines.
//! - A module that has a folder is `mod.rs` in it.
//! - No two types of the product have the same name.
//! - Nothing unfinished, and no characters that cannot be seen.
//! - Files that documents name exist.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::links;
use crate::names::TypeNames;

const FILE_LINES_MAX: usize = 600;

/// What must not stay; each in two parts, so that this file does not contain it.
const UNFINISHED: &[(&str, &str)] = &[("todo", "!("), ("dbg", "!("), ("FIX", "ME"), ("XX", "X:")];

/// Directories that are not ours to judge.
const SKIPPED: &[&str] = &["target", "node_modules"];

/// Checks every file below `root` and lists what is wrong.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    let mut types = TypeNames::default();
    for path in files(root)? {
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(&path) else {
            problems.push(format!("{name}: is not UTF-8"));
            continue;
        };
        if is_beside_its_folder(&path) {
            problems.push(format!("{name}: belongs into its folder, as mod.rs"));
        }
        if name.ends_with(".rs") {
            types.note(&name, &text);
        }
        let found = check(root, &path, &text);
        problems.extend(found.into_iter().map(|problem| format!("{name}{problem}")));
    }
    problems.extend(types.problems());
    if problems.is_empty() {
        return Ok(());
    }
    let mut list = String::new();
    for problem in &problems {
        writeln!(list, "  {problem}")?;
    }
    bail!("the repository is untidy:\n{list}");
}

/// Whether a module has a file beside the folder of its parts, instead of `mod.rs` in it.
fn is_beside_its_folder(path: &Path) -> bool {
    let is_source = |path: &Path| path.extension() == Some("rs".as_ref());
    let parts = fs::read_dir(path.with_extension(""));
    is_source(path)
        && parts
            .is_ok_and(|mut parts| parts.any(|part| part.is_ok_and(|part| is_source(&part.path()))))
}

/// What is wrong with one file, each as `:line: text` or `: text`.
fn check(root: &Path, path: &Path, text: &str) -> Vec<String> {
    let mut problems = unseen(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => problems.extend(source(text)),
        Some("md") => {
            let missing = links::missing(root, path, text);
            problems.extend(missing.map(|(line, name)| format!(":{line}: there is no {name}")));
        }
        _ => {}
    }
    problems
}

fn source(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !text.starts_with("//! ") {
        problems.push(": does not begin with `//!` and what it is for".to_owned());
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        problems.push(format!(
            ": has {lines} lines, the limit is {FILE_LINES_MAX}"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        for (first, second) in UNFINISHED {
            let word = format!("{first}{second}");
            if line.contains(&word) {
                problems.push(format!(":{}: {word}", number + 1));
            }
        }
    }
    problems
}

/// Control characters, and those that change the direction of what follows them.
fn unseen(text: &str) -> Vec<String> {
    let hidden = |character: char| {
        let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        (character.is_control() && character != '\t') || turns || character == '\u{feff}'
    };
    let mut problems = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        if let Some(character) = line.chars().find(|character| hidden(*character)) {
            problems.push(format!(":{}: character {character:?}", number + 1));
        }
    }
    problems
}

/// The texts of the repository, in order.
fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_text = ["rs", "md", "toml"]
            .iter()
            .any(|kind| path.extension() == Some(kind.as_ref()));
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if is_text {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_untidy_is_found() {
        let header = "//! What it is for.\n";
        assert_eq!(source(header), Vec::<String>::new());
        assert_eq!(source("use std::fmt;\n").len(), 1);
        assert_eq!(
            source(&format!("{header}{}", "\n".repeat(FILE_LINES_MAX))).len(),
            1
        );
        let unfinished = format!("{header}fn f() {{ {}{}) }}\n", "todo", "!(");
        assert_eq!(source(&unfinished).len(), 1);
    }

    #[test]
    fn a_module_beside_its_folder_is_found() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        // The sources of this program lie in a folder of that name.
        assert!(is_beside_its_folder(&here.join("src.rs")));
        assert!(!is_beside_its_folder(&here.join("src/tidy.rs")));
        assert!(!is_beside_its_folder(&here.join("src.md")));
    }

    #[test]
    fn characters_that_cannot_be_seen_are_found() {
        assert_eq!(unseen("größe\t\n"), Vec::<String>::new());
        assert_eq!(unseen("a\nb\u{202e}\n").len(), 1);
        assert_eq!(unseen("a\r\n").len(), 1);
    }
}
