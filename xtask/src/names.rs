//! One name, one meaning: no two types of the product have the same name.

use std::collections::{BTreeMap, BTreeSet};

/// Names that several types may have, and why.
const SHARED: &[(&str, &str)] = &[
    (
        "Arguments",
        "each command of the command line has its own, in its file",
    ),
    ("Event", "UmaDB's protocol calls its event so too"),
    ("Query", "UmaDB's protocol calls its query so too"),
    (
        "QueryItem",
        "UmaDB's protocol calls the item of its query so too",
    ),
    ("Result", "each crate names its results as `std` does"),
];

/// Crates whose types may have any names: they are not part of the product.
const OTHER_CRATES: [&str; 2] = ["crates/trefoil-bench/", "crates/trefoil-sample-storage/"];

/// What declares a type.
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// The types of the product, by name, and the files that declare them.
#[derive(Debug, Default)]
pub(crate) struct TypeNames(BTreeMap<String, Vec<String>>);

impl TypeNames {
    /// Notes the types of a file, unless it is one of tests.
    pub(crate) fn note(&mut self, file: &str, text: &str) {
        let is_product = file.starts_with("crates/")
            && !OTHER_CRATES.iter().any(|other| file.starts_with(other))
            && !file.split('/').any(|part| part.contains("tests"));
        if !is_product {
            return;
        }
        let shipped = text.split("#[cfg(test)]\nmod tests").next();
        for name in shipped.unwrap_or_default().lines().filter_map(declared) {
            let files = self.0.entry(name.to_owned()).or_default();
            files.push(file.to_owned());
        }
    }

    /// Returns what is wrong: names of several types, and exceptions that nothing needs.
    pub(crate) fn problems(&self) -> Vec<String> {
        let several = self.0.iter().filter(|(_, files)| files.len() > 1);
        let several: BTreeMap<&str, &Vec<String>> = several
            .map(|(name, files)| (name.as_str(), files))
            .collect();
        let shared: BTreeSet<&str> = SHARED.iter().map(|(name, _)| *name).collect();
        let unneeded = shared.iter().filter(|name| !several.contains_key(*name));
        let unneeded = unneeded.map(|name| format!("{name} need not be an exception any more"));
        let is_known = |name: &str| shared.contains(name);
        let wrong = several.iter().filter(|(name, _)| !is_known(name));
        let wrong = wrong.map(|(name, files)| {
            format!("{name} is the name of several types: {}", files.join(", "))
        });
        wrong.chain(unneeded).collect()
    }
}

/// Returns the name of the type that a line declares at the top of a file.
fn declared(line: &str) -> Option<&str> {
    let mut rest = line;
    if let Some(after) = rest.strip_prefix("pub") {
        rest = match after.strip_prefix('(') {
            Some(within) => within.split_once(") ")?.1,
            None => after.strip_prefix(' ')?,
        };
    }
    let (keyword, rest) = rest.split_once(' ')?;
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let name = rest.split(|character| !is_name(character)).next();
    name.filter(|name| KEYWORDS.contains(&keyword) && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_in_every_form() {
        for line in [
            "struct Found;",
            "pub struct Found<T>(T);",
            "pub(crate) enum Found {",
            "pub(in crate::a) trait Found: Sized {",
            "type Found<'a> = &'a str;",
        ] {
            assert_eq!(declared(line), Some("Found"), "{line}");
        }
        for line in [
            "    struct Inner;",
            "fn found() {",
            "use a::Found;",
            "pub fn found()",
        ] {
            assert_eq!(declared(line), None, "{line}");
        }
    }

    #[test]
    fn a_name_of_two_types_is_a_problem_in_the_product_only() {
        let mut names = TypeNames::default();
        let (kind, test) = (
            "struct OnlyHere;\n",
            "#[cfg(test)]\nmod tests {\nstruct OnlyHere;\n",
        );
        names.note("crates/trefoil/src/a.rs", kind);
        for file in [
            "crates/trefoil-bench/src/a.rs",
            "crates/trefoil/src/a/tests/b.rs",
            "xtask/src/a.rs",
        ] {
            names.note(file, kind);
        }
        names.note("crates/trefoil/src/c.rs", test);
        let wrong = |names: &TypeNames| {
            let problems = names.problems().into_iter();
            problems
                .filter(|problem| problem.contains("OnlyHere"))
                .count()
        };
        assert_eq!(wrong(&names), 0);
        names.note("crates/trefoil-core/src/b.rs", kind);
        assert_eq!(wrong(&names), 1);
    }
}
