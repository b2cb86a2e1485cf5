//! What `COMMAND DOCS` tells of each command: `documents.txt`, read once.

use hashbrown::HashMap;

use super::syntax::{self, DocumentedArgument};

/// What is told of a command.
#[derive(Debug)]
pub(super) struct CommandDocument {
    /// What it does, in a line.
    pub(super) summary: &'static str,
    /// What it costs.
    pub(super) complexity: Option<&'static str>,
    pub(super) arguments: Vec<DocumentedArgument>,
}

impl CommandDocument {
    /// Returns what is told of a command of this syntax; `None` if that is not well-formed.
    pub(super) fn new(
        syntax: &str,
        summary: &'static str,
        complexity: Option<&'static str>,
    ) -> Option<Self> {
        Some(Self {
            summary,
            complexity,
            arguments: syntax::arguments(syntax)?,
        })
    }
}

/// Returns what the file says, by the names of the commands.
pub(super) fn documents() -> HashMap<&'static str, CommandDocument> {
    let lines = include_str!("documents.txt").lines();
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    lines.chunks(2).filter_map(parse).collect()
}

/// Two lines: the name and the syntax, and under them what the command does and costs.
fn parse(lines: &[&'static str]) -> Option<(&'static str, CommandDocument)> {
    let [head, text] = lines else { return None };
    let (name, syntax) = head.split_once(' ').unwrap_or((head, ""));
    let (summary, complexity) = text.trim().rsplit_once(" | ")?;
    let complexity = Some(complexity).filter(|complexity| *complexity != "-");
    Some((name, CommandDocument::new(syntax, summary, complexity)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_understood_and_in_order() {
        let lines = include_str!("documents.txt").lines();
        let lines: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
        let heads: Vec<&str> = lines
            .iter()
            .copied()
            .filter(|line| !line.starts_with(' '))
            .collect();
        assert_eq!(heads.len() * 2, lines.len());
        let names: Vec<&str> = heads
            .iter()
            .filter_map(|head| head.split(' ').next())
            .collect();
        assert!(names.is_sorted());
        let documents = documents();
        for name in &names {
            assert!(documents.contains_key(name), "{name}");
        }
        assert_eq!(documents.len(), names.len());
    }
}
