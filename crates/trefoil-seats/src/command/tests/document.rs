//! The examples of the document on seats are run, and answer what it says.

use trefoil_state::Reply;

use super::new_world;

const DOCUMENT: &str = include_str!("../../../../../docs/seats.md");

/// The first of January 2026, in milliseconds since 1970.
const NEW_YEAR: u64 = 1_767_225_600_000;

#[test]
fn the_examples_of_the_document_are_right() {
    let mut world = new_world();
    world.moment.now = NEW_YEAR;
    world.moment.position = 1;
    let mut is_example = false;
    let mut shown = String::new();
    let mut n_examples = 0;
    for line in DOCUMENT.lines() {
        if line.starts_with("```") {
            is_example = line == "```text";
        } else if let Some(command) = line.strip_prefix("> ").filter(|_| is_example) {
            n_examples += 1;
            let reply = world.run(command);
            shown.push_str(&format!("{line}\n{}\n", show(&reply, "")));
            continue;
        } else if is_example {
            // The answer, which was shown with its command.
            continue;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    assert!(n_examples > 10);
    assert_eq!(DOCUMENT, shown, "the document should be:\n{shown}");
}

/// Returns a reply as `redis-cli -3` shows it; lines after the first begin with `indent`.
fn show(reply: &Reply, indent: &str) -> String {
    let list = |items: &[(Option<&Reply>, &Reply)], sign: char| {
        let width = items.len().to_string().len();
        let inner = format!("{indent}{}", " ".repeat(width + 2));
        let lines = items.iter().enumerate().map(|(index, (key, value))| {
            let value = match (key, show(value, &inner)) {
                (None, value) => value,
                (Some(key), list) if list.trim_start().starts_with('1') => {
                    format!("{} =>\n{inner}{list}", show(key, &inner))
                }
                (Some(key), value) => format!("{} => {value}", show(key, &inner)),
            };
            format!("{:>width$}{sign} {value}", index + 1)
        });
        let lines: Vec<String> = lines.collect();
        lines.join(&format!("\n{indent}"))
    };
    match reply {
        Reply::Error(text) => format!("(error) {text}"),
        Reply::Integer(number) => format!("(integer) {number}"),
        Reply::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Nil => "(nil)".to_owned(),
        Reply::Array(items) if items.is_empty() => "(empty array)".to_owned(),
        Reply::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| (None, item)).collect();
            list(&items, ')')
        }
        Reply::Map(entries) => {
            let entries = entries.iter();
            let entries: Vec<_> = entries.map(|(key, value)| (Some(key), value)).collect();
            list(&entries, '#')
        }
        other => panic!("{other:?} is not shown in the document"),
    }
}
