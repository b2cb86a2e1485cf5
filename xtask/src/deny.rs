//! `deny.toml`: licences, banned crates, crates that are there twice, and where crates come from.
//!
//! The same rules as cargo-deny's, which takes minutes to compile: here they are read from
//! `cargo metadata`. A rule of the file that is not known here is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::test::cargo;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    graph: GraphRules,
    licenses: LicenceRules,
    bans: BanRules,
    sources: SourceRules,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphRules {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LicenceRules {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<LicenceException>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LicenceException {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BanRules {
    multiple_versions: Denied,
    wildcards: Denied,
    /// A crate of the workspace names no version of another one.
    allow_wildcard_paths: bool,
    deny: Vec<BannedCrate>,
    skip: Vec<SkippedVersion>,
}

/// The one level that is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Denied {
    Deny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BannedCrate {
    #[serde(rename = "crate")]
    name: String,
    /// The crates that may depend on it.
    #[serde(default)]
    wrappers: Vec<String>,
    reason: String,
}

/// A version beside which there may be another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SkippedVersion {
    /// As `name@version`.
    #[serde(rename = "crate")]
    version: String,
    #[expect(dead_code, reason = "read by people, and required of every entry")]
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SourceRules {
    #[expect(dead_code, reason = "only one level can be read")]
    unknown_registry: Denied,
    #[expect(dead_code, reason = "only one level can be read")]
    unknown_git: Denied,
    allow_registry: Vec<String>,
}

/// What `cargo metadata` says.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// Where it comes from; nothing for a crate of the workspace.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

/// Checks everything that is depended on and lists what is wrong.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("deny.toml")?;
    let mut problems = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for target in &rules.graph.targets {
        let metadata = metadata(root, target)?;
        problems.extend(licences(&rules.licenses, &metadata)?);
        problems.extend(banned(&rules.bans, &metadata));
        problems.extend(wildcards(&rules.bans, &metadata));
        problems.extend(sources(&rules.sources, &metadata));
        twice.extend(versions_of_several(&metadata));
    }
    problems.extend(duplicates(&rules.bans, &twice));
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = problems.into_iter().collect();
    bail!("deny.toml does not allow:\n  {}", list.join("\n  "));
}

fn metadata(root: &Path, target: &str) -> anyhow::Result<Metadata> {
    let mut command = cargo();
    command
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", target])
        .current_dir(root);
    let output = command.output().context("cannot run `cargo metadata`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo metadata` failed: {errors}");
    let mut metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let used = used(&metadata);
    metadata
        .packages
        .retain(|package| used.contains(&package.id));
    metadata
        .resolve
        .nodes
        .retain(|node| used.contains(&node.id));
    Ok(metadata)
}

/// Returns the ids of what the crates of the workspace need: crates for other platforms and for
/// features that are off are listed as well.
fn used(metadata: &Metadata) -> BTreeSet<String> {
    let nodes = metadata.resolve.nodes.iter();
    let nodes: BTreeMap<&str, &Node> = nodes.map(|node| (node.id.as_str(), node)).collect();
    let own = metadata.packages.iter().filter(|own| own.source.is_none());
    let mut waiting: Vec<&str> = own.map(|package| package.id.as_str()).collect();
    let mut used = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if used.insert(id.to_owned()) {
            let node = nodes.get(id).into_iter();
            waiting.extend(node.flat_map(|node| node.dependencies.iter().map(String::as_str)));
        }
    }
    used
}

fn licences(rules: &LicenceRules, metadata: &Metadata) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for Package { name, license, .. } in &metadata.packages {
        let Some(license) = license else {
            problems.push(format!("{name}: names no licence"));
            continue;
        };
        let expression = Expression::parse_mode(license, ParseMode::LAX);
        let expression = expression.with_context(|| format!("the licence of {name}: {license}"))?;
        let exception = rules.exceptions.iter().find(|rule| rule.name == *name);
        let own = exception.map_or(&[][..], |rule| &rule.allow);
        let is_allowed = expression.evaluate(|required| {
            let id = required.license.id().map(|id| id.name);
            let is_listed = |list: &[String]| list.iter().any(|allowed| Some(&**allowed) == id);
            // What "WITH" adds only ever allows more.
            is_listed(&rules.allow) || is_listed(own)
        });
        if !is_allowed {
            problems.push(format!("{name}: licence {license}"));
        }
    }
    Ok(problems)
}

fn banned(rules: &BanRules, metadata: &Metadata) -> Vec<String> {
    let names: BTreeMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package.name.as_str()))
        .collect();
    let mut problems = Vec::new();
    for node in &metadata.resolve.nodes {
        let user = names[node.id.as_str()];
        for used in node.dependencies.iter().map(|id| names[id.as_str()]) {
            let ban = rules.deny.iter().find(|ban| ban.name == used);
            if let Some(ban) = ban.filter(|ban| !ban.wrappers.iter().any(|name| name == user)) {
                problems.push(format!("{used}, which {user} needs: {}", ban.reason));
            }
        }
    }
    problems
}

fn wildcards(rules: &BanRules, metadata: &Metadata) -> Vec<String> {
    let Denied::Deny = rules.wildcards;
    let own = metadata.packages.iter().filter(|own| own.source.is_none());
    let all = own.flat_map(|own| own.dependencies.iter().map(|needed| (&own.name, needed)));
    let any = all.filter(|(_, needed)| {
        needed.req == "*" && !(needed.path.is_some() && rules.allow_wildcard_paths)
    });
    any.map(|(own, needed)| format!("{own}: any version of {}", needed.name))
        .collect()
}

fn sources(rules: &SourceRules, metadata: &Metadata) -> Vec<String> {
    let is_known = |source: &String| {
        let registry = source.strip_prefix("registry+");
        registry.is_some_and(|registry| rules.allow_registry.iter().any(|known| known == registry))
    };
    let packages = metadata.packages.iter();
    let unknown = packages.filter_map(|Package { name, source, .. }| {
        let source = source.as_ref().filter(|source| !is_known(source))?;
        Some(format!("{name}: comes from {source}"))
    });
    unknown.collect()
}

/// The versions, as `name@version`, of crates that have several, with the name of each.
fn versions_of_several(metadata: &Metadata) -> Vec<(String, String)> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Package { name, version, .. } in &metadata.packages {
        versions.entry(name).or_default().insert(version);
    }
    let several = versions.into_iter().filter(|(_, all)| all.len() > 1);
    let pair = |name: &str, version: &str| (name.to_owned(), format!("{name}@{version}"));
    several
        .flat_map(|(name, all)| all.into_iter().map(move |version| pair(name, version)))
        .collect()
}

/// Crates with more than one version that is not skipped, and entries that skip nothing.
fn duplicates(rules: &BanRules, twice: &BTreeSet<(String, String)>) -> Vec<String> {
    let Denied::Deny = rules.multiple_versions;
    let is_skipped = |version: &String| rules.skip.iter().any(|skip| skip.version == *version);
    let mut left: BTreeMap<&String, Vec<&str>> = BTreeMap::new();
    for (name, version) in twice.iter().filter(|(_, version)| !is_skipped(version)) {
        left.entry(name).or_default().push(version);
    }
    left.retain(|_, versions| versions.len() > 1);
    let several = left.into_values();
    let several = several.map(|versions| format!("several versions: {}", versions.join(", ")));
    let is_used = |skip: &&SkippedVersion| twice.iter().any(|(_, used)| *used == skip.version);
    let unused = rules.skip.iter().filter(|skip| !is_used(skip));
    let unused = unused.map(|skip| format!("{}: is skipped, but not there twice", skip.version));
    several.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        graph.targets = []
        licenses = { allow = ["MIT"], exceptions = [{ crate = "c", allow = ["MPL-2.0"] }] }
        sources = { unknown-registry = "deny", unknown-git = "deny", allow-registry = ["known"] }

        [bans]
        multiple-versions = "deny"
        wildcards = "deny"
        allow-wildcard-paths = true
        deny = [{ crate = "d", wrappers = ["c"], reason = "why" }]
        skip = [{ crate = "e@1.0.0", reason = "why" }]
    "#;

    fn rules() -> Rules {
        toml::from_str(RULES).unwrap()
    }

    /// A graph of crates, each of version 1.0.0 unless its id says otherwise, and its dependencies.
    fn graph(crates: &[(&str, &str, &[&str])]) -> Metadata {
        let package = |(id, license, _): &(&str, &str, _)| {
            let (name, version) = id.split_once('@').unwrap_or((id, "1.0.0"));
            Package {
                id: (*id).to_owned(),
                name: name.to_owned(),
                version: version.to_owned(),
                license: Some((*license).to_owned()),
                source: (name != "own").then(|| "registry+known".to_owned()),
                dependencies: Vec::new(),
            }
        };
        let node = |(id, _, dependencies): &(&str, _, &[&str])| Node {
            id: (*id).to_owned(),
            dependencies: dependencies.iter().map(ToString::to_string).collect(),
        };
        Metadata {
            packages: crates.iter().map(package).collect(),
            resolve: Resolve {
                nodes: crates.iter().map(node).collect(),
            },
        }
    }

    #[test]
    fn only_allowed_licences_pass() {
        let metadata = graph(&[
            ("own", "Apache-2.0 OR MIT", &[]),
            ("a", "MIT/Apache-2.0", &[]),
            ("b", "MPL-2.0+", &[]),
            ("c", "MPL-2.0+", &[]),
            ("d", "MIT AND ISC", &[]),
        ]);
        let problems = licences(&rules().licenses, &metadata).unwrap();
        assert_eq!(problems, ["b: licence MPL-2.0+", "d: licence MIT AND ISC"]);
    }

    #[test]
    fn a_banned_crate_is_found_unless_a_wrapper_needs_it() {
        let metadata = graph(&[
            ("own", "MIT", &["c", "d"]),
            ("c", "MIT", &["d"]),
            ("d", "MIT", &[]),
        ]);
        let problems = banned(&rules().bans, &metadata);
        assert_eq!(problems, ["d, which own needs: why"]);
    }

    #[test]
    fn two_versions_are_found_unless_one_is_skipped() {
        let rules = rules();
        let twice = |crates: &[(&str, &str, &[&str])]| {
            duplicates(
                &rules.bans,
                &versions_of_several(&graph(crates)).into_iter().collect(),
            )
        };
        let skipped: [(_, _, &[&str]); 2] = [("e", "MIT", &[]), ("e@2.0.0", "MIT", &[])];
        assert_eq!(twice(&skipped), Vec::<String>::new());
        let third = [&skipped[..], &[("e@3.0.0", "MIT", &[])]].concat();
        assert_eq!(twice(&third), ["several versions: e@2.0.0, e@3.0.0"]);
        assert_eq!(
            twice(&skipped[1..]),
            ["e@1.0.0: is skipped, but not there twice"]
        );
    }

    #[test]
    fn unknown_sources_and_versions_of_any_kind_are_found() {
        let mut metadata = graph(&[("own", "MIT", &["a"]), ("a", "MIT", &[])]);
        assert_eq!(sources(&rules().sources, &metadata), Vec::<String>::new());
        assert_eq!(used(&metadata).len(), 2);
        metadata.packages[1].source = Some("git+https://example.org".to_owned());
        metadata.packages[0].dependencies = ["*", "1.0"]
            .map(|req| Dependency {
                name: "a".to_owned(),
                req: req.to_owned(),
                path: None,
            })
            .into();
        let problems = sources(&rules().sources, &metadata);
        assert_eq!(problems, ["a: comes from git+https://example.org"]);
        assert_eq!(
            wildcards(&rules().bans, &metadata),
            ["own: any version of a"]
        );
    }

    #[test]
    fn a_rule_that_is_not_known_is_an_error() {
        let unknown = RULES.replace("[bans]", "[bans]\nhighlight = \"all\"");
        assert!(toml::from_str::<Rules>(&unknown).is_err());
    }
}
