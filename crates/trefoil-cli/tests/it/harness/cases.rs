//! Files of cases: a line `== title` begins one, and the lines up to the next are what it does.

use std::path::Path;

pub(crate) struct Case {
    /// The file and the line that it begins at.
    pub(crate) place: String,
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
}

/// The cases of all files `*.txt` of a directory of `tests/it`.
pub(crate) fn cases(directory: &str) -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it")
        .join(directory);
    let entries = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| cases_of(file)).collect()
}

fn cases_of(file: &Path) -> Vec<Case> {
    let name = file.file_stem().unwrap().to_string_lossy();
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in std::fs::read_to_string(file).unwrap().lines().enumerate() {
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case {
                place: format!("{name}-{}", number + 1),
                title: title.to_owned(),
                lines: Vec::new(),
            });
        } else if !line.is_empty() {
            cases.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    cases
}

/// Runs cases and tells all that fail.
pub(crate) fn run_all(cases: &[Case], mut run: impl FnMut(&Case) -> Result<(), String>) {
    let fails = |case: &Case| {
        let failure = run(case).err()?;
        Some(format!("{} ({}): {failure}", case.title, case.place))
    };
    let failures: Vec<String> = cases.iter().filter_map(fails).collect();
    let (n, of) = (failures.len(), cases.len());
    assert!(n == 0, "{n} of {of} cases failed:\n{}", failures.join("\n"));
}
