//! A page of the documentation as the commands that it shows.

/// What a page has to run, in order.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) steps: Vec<Step>,
    /// Blocks that say that they cannot be run.
    pub(super) n_not_run: usize,
}

/// A command and all that it prints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Where it stands in the page, from 1 on.
    pub(super) line: usize,
    pub(super) command: String,
    pub(super) shown: Vec<String>,
}

/// Fences of blocks that are no shell.
const OTHERS: &[&str] = &["json", "proto", "python", "rust", "text", "toml"];

impl Page {
    /// The error begins with a line's number.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut page = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else {
                continue;
            };
            let block: Vec<&str> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| *line != "```")
                .collect();
            match info {
                "sh" => page.steps.extend(steps(&block, index + 2)?),
                "sh not-run" => page.n_not_run += 1,
                other if OTHERS.contains(&other) => {}
                other => return Err(format!("{}: unknown fence {other:?}", index + 1)),
            }
        }
        Ok(page)
    }
}

/// The commands of a block whose first line has the number `first`.
fn steps(block: &[&str], first: usize) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = block.iter().zip(first..);
    while let Some((line, number)) = lines.next() {
        if let Some(shown) = line.strip_prefix("#=>") {
            let step = steps
                .last_mut()
                .ok_or_else(|| format!("{number}: output before a command"))?;
            let shown = shown.strip_prefix(' ').unwrap_or(shown).trim_end();
            if shown == "…" {
                return Err(format!("{number}: a line that is shown says something"));
            }
            step.shown.push(shown.to_owned());
        } else if !line.is_empty() && !line.starts_with('#') {
            let mut command = (*line).to_owned();
            while !is_complete(&command) {
                let (next, _) = lines
                    .next()
                    .ok_or_else(|| format!("{number}: the command does not end"))?;
                command = format!("{command}\n{next}");
            }
            steps.push(Step {
                line: number,
                command,
                shown: Vec::new(),
            });
        }
    }
    Ok(steps)
}

/// Whether a shell would run this and not wait for another line: no quote is open, the line does not
/// go on, and a here-document has come to its end.
fn is_complete(command: &str) -> bool {
    let (first, rest) = command.split_once('\n').unwrap_or((command, ""));
    if let Some((_, end)) = first.split_once("<<") {
        let end = end.trim_matches('\'');
        return rest.lines().last() == Some(end);
    }
    let mut quote = None;
    for character in command.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    quote.is_none() && !command.ends_with('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_where_a_shell_ends_them() {
        let text = "```sh\n# A comment.\ncurl -d '{\n}' \\\n  url\n#=> a\n#=>   b\n\nredis-cli <<'END'\nPING 'a'\nEND\n#=> PONG\n```\n";
        let page = Page::parse(text).unwrap();
        let commands: Vec<&str> = page
            .steps
            .iter()
            .map(|step| step.command.as_str())
            .collect();
        assert_eq!(
            commands,
            [
                "curl -d '{\n}' \\\n  url",
                "redis-cli <<'END'\nPING 'a'\nEND"
            ]
        );
        assert_eq!(page.steps[0].shown, ["a", "  b"]);
        assert_eq!((page.steps[0].line, page.steps[1].line), (3, 9));
    }

    #[test]
    fn nothing_escapes_by_the_name_of_its_block() {
        let page = Page::parse("```sh not-run\napt install\n```\n```json\n{}\n```\n").unwrap();
        assert_eq!((page.steps.len(), page.n_not_run), (0, 1));
        for fence in ["", "bash", "shell", "sh no-run"] {
            let text = format!("```{fence}\ntrefoil dev\n```\n");
            assert!(Page::parse(&text).is_err(), "{fence}");
        }
        assert!(Page::parse("```sh\n#=> a\n```\n").is_err());
        assert!(Page::parse("```sh\ndate\n#=> …\n```\n").is_err());
    }
}
