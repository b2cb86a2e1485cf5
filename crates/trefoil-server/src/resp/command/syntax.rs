//! How a command is written, as `documents.txt` says it, made into the arguments that `COMMAND DOCS`
//! tells of: `key <score member>... [NX | XX] [LIMIT offset count]`.
//!
//! A word in capitals stands for itself and may be followed by values, any other is a value. `<a | b>`
//! is one of several, `[a]` may be left out, `a...` may be repeated.

use trefoil::Reply;

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentedArgument {
    name: String,
    kind: &'static str,
    /// The word that comes first.
    token: Option<String>,
    is_optional: bool,
    is_multiple: bool,
    /// Whether the word comes again with every value.
    repeats_token: bool,
    parts: Vec<DocumentedArgument>,
}

/// What a syntax consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol<'a> {
    Word(&'a str),
    Open(char),
    Close,
    Or,
    Again,
}

const AGAIN: &str = "...";

/// The arguments that a syntax stands for; `None` if it is not well-formed.
pub(super) fn arguments(syntax: &str) -> Option<Vec<DocumentedArgument>> {
    let symbols = symbols(syntax);
    let mut rest = symbols.as_slice();
    let found = sequence(&mut rest)?;
    rest.is_empty().then_some(found)
}

fn symbols(syntax: &str) -> Vec<Symbol<'_>> {
    let mut symbols = Vec::new();
    for mut word in syntax.split_whitespace() {
        while let Some(rest) = word.strip_prefix(['[', '<']) {
            symbols.push(Symbol::Open(if word.starts_with('[') { '[' } else { '<' }));
            word = rest;
        }
        let text = word.trim_end_matches([']', '>', '.']);
        match text {
            "" => {}
            "|" => symbols.push(Symbol::Or),
            text => symbols.push(Symbol::Word(text)),
        }
        let mut ends = &word[text.len()..];
        while !ends.is_empty() {
            let (symbol, length) = match ends.starts_with(AGAIN) {
                true => (Symbol::Again, AGAIN.len()),
                false => (Symbol::Close, 1),
            };
            symbols.push(symbol);
            ends = ends.get(length..).unwrap_or_default();
        }
    }
    symbols
}

/// Takes arguments up to the end of brackets or of an alternative.
fn sequence(rest: &mut &[Symbol<'_>]) -> Option<Vec<DocumentedArgument>> {
    let mut found = Vec::new();
    loop {
        match *rest {
            [] | [Symbol::Close | Symbol::Or, ..] => return Some(found),
            [Symbol::Word(word), ..] if is_token(word) => {
                *rest = &rest[1..];
                found.push(after_token(word, rest)?);
            }
            _ => found.push(argument(rest)?),
        }
    }
}

/// Takes the values of a word that stands for itself.
fn after_token(token: &str, rest: &mut &[Symbol<'_>]) -> Option<DocumentedArgument> {
    let mut values = Vec::new();
    loop {
        match *rest {
            [Symbol::Word(word), ..] if !is_token(word) => values.push(argument(rest)?),
            [Symbol::Open('<'), ..] if values.is_empty() => values.push(argument(rest)?),
            _ => break,
        }
    }
    let mut found = if values.is_empty() {
        DocumentedArgument::new(token.to_lowercase(), "pure-token")
    } else {
        joined(values)
    };
    found.token = Some(token.to_owned());
    Some(found)
}

/// Takes one argument: a value, or what is in brackets.
fn argument(rest: &mut &[Symbol<'_>]) -> Option<DocumentedArgument> {
    let (&first, after) = rest.split_first()?;
    *rest = after;
    let mut found = match first {
        Symbol::Word(name) => DocumentedArgument::new(name.to_owned(), kind(name)),
        Symbol::Open(bracket) => {
            let mut found = choice(rest)?;
            found.is_optional |= bracket == '[';
            found
        }
        Symbol::Close | Symbol::Or | Symbol::Again => return None,
    };
    if let [Symbol::Again, after @ ..] = *rest {
        *rest = after;
        found.is_multiple = true;
        found.repeats_token = found.token.is_some();
    }
    Some(found)
}

/// Takes alternatives and the bracket that closes them.
fn choice(rest: &mut &[Symbol<'_>]) -> Option<DocumentedArgument> {
    let mut alternatives = Vec::new();
    loop {
        let alternative = sequence(rest)?;
        if alternative.is_empty() {
            return None;
        }
        alternatives.push(joined(alternative));
        let (end, after) = rest.split_first()?;
        *rest = after;
        match end {
            Symbol::Or => {}
            Symbol::Close => break,
            _ => return None,
        }
    }
    if alternatives.len() == 1 {
        return alternatives.pop();
    }
    let mut choice = DocumentedArgument::new(names(&alternatives, "_or_"), "oneof");
    choice.parts = alternatives;
    Some(choice)
}

/// Several arguments as one.
fn joined(mut arguments: Vec<DocumentedArgument>) -> DocumentedArgument {
    match arguments.len() {
        1 => arguments.remove(0),
        _ => {
            let mut block = DocumentedArgument::new(names(&arguments, "_"), "block");
            block.parts = arguments;
            block
        }
    }
}

fn names(arguments: &[DocumentedArgument], between: &str) -> String {
    let names: Vec<&str> = { arguments.iter() }
        .map(|argument| argument.name.as_str())
        .collect();
    names.join(between)
}

fn is_token(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}

/// What a value is, by its name.
fn kind(name: &str) -> &'static str {
    match name {
        "key" | "key1" | "key2" | "source" | "destination" | "destkey" | "newkey" | "dst"
        | "src" => "key",
        "pattern" => "pattern",
        "score" => "double",
        "unix-time-seconds" | "unix-time-milliseconds" => "unix-time",
        "bit" | "client-id" | "count" | "cursor" | "decrement" | "destination-db" | "end"
        | "index" | "limit" | "milliseconds" | "min-match-len" | "n" | "num-matches"
        | "numfields" | "numkeys" | "numlocal" | "numreplicas" | "offset" | "position"
        | "protover" | "rank" | "seconds" | "size" | "timeout" | "version" => "integer",
        _ => "string",
    }
}

impl DocumentedArgument {
    fn new(name: String, kind: &'static str) -> Self {
        Self {
            name,
            kind,
            token: None,
            is_optional: false,
            is_multiple: false,
            repeats_token: false,
            parts: Vec::new(),
        }
    }

    /// Returns the least number of words that it takes.
    #[cfg(test)]
    pub(super) fn n_least(&self) -> usize {
        let parts = self.parts.iter().map(Self::n_least);
        let values = match self.kind {
            _ if self.is_optional => return 0,
            "pure-token" => 0,
            "oneof" => parts.min().unwrap_or_default(),
            "block" => parts.sum(),
            _ => 1,
        };
        values + usize::from(self.token.is_some())
    }

    /// Returns whether it may take more words, or other ones.
    #[cfg(test)]
    pub(super) fn may_vary(&self) -> bool {
        self.is_optional || self.is_multiple
    }

    /// The argument as Redis tells of it.
    pub(super) fn to_reply(&self) -> Reply {
        let mut pairs = vec![
            (Reply::bulk("name"), Reply::bulk(self.name.clone())),
            (Reply::bulk("type"), Reply::bulk(self.kind)),
        ];
        if let Some(token) = &self.token {
            pairs.push((Reply::bulk("token"), Reply::bulk(token.clone())));
        }
        let flags = [
            (self.is_optional, "optional"),
            (self.is_multiple, "multiple"),
            (self.repeats_token, "multiple_token"),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set);
        let flags: Vec<Reply> = flags.map(|(_, flag)| Reply::Simple(flag)).collect();
        if !flags.is_empty() {
            pairs.push((Reply::bulk("flags"), Reply::Set(flags)));
        }
        if !self.parts.is_empty() {
            pairs.push((Reply::bulk("arguments"), replies(&self.parts)));
        }
        Reply::Map(pairs)
    }
}

/// Arguments as Redis tells of them.
pub(super) fn replies(arguments: &[DocumentedArgument]) -> Reply {
    Reply::Array(arguments.iter().map(DocumentedArgument::to_reply).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An argument in one line: its kind, its word, its name, its parts and its flags.
    fn shown(argument: &DocumentedArgument) -> String {
        let parts: Vec<String> = argument.parts.iter().map(shown).collect();
        let name = match argument.parts.is_empty() {
            true => argument.name.clone(),
            false => format!("({})", parts.join(", ")),
        };
        let token = argument.token.as_deref().unwrap_or_default();
        let mut out = format!("{} {token} {name}", argument.kind);
        for (is_set, flag) in [
            (argument.is_optional, "?"),
            (argument.is_multiple, "+"),
            (argument.repeats_token, "!"),
        ] {
            out += if is_set { flag } else { "" };
        }
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_syntax_becomes_arguments() {
        for (syntax, expected) in [
            ("", ""),
            ("key value", "key key; string value"),
            ("key...", "key key+"),
            (
                "key [NX | XX] <score member>...",
                "key key; oneof (pure-token NX nx, pure-token XX xx)?; block (double score, string member)+",
            ),
            (
                "[EX seconds | KEEPTTL]",
                "oneof (integer EX seconds, pure-token KEEPTTL keepttl)?",
            ),
            (
                "[LIMIT offset count] [GET pattern]...",
                "block LIMIT (integer offset, integer count)?; pattern GET pattern?+!",
            ),
            (
                "[start [end [BYTE | BIT]]]",
                "block (string start, block (integer end, oneof (pure-token BYTE byte, pure-token BIT bit)?)?)?",
            ),
            (
                "[AGGREGATE <SUM | MIN>] [WEIGHTS weight...]",
                "oneof AGGREGATE (pure-token SUM sum, pure-token MIN min)?; string WEIGHTS weight?+",
            ),
            (
                "FIELDS numfields field...",
                "block FIELDS (integer numfields, string field+)",
            ),
            (
                "ROWS n SEATS n [PREFIX p]",
                "integer ROWS n; integer SEATS n; string PREFIX p?",
            ),
        ] {
            let arguments = arguments(syntax).unwrap_or_else(|| panic!("{syntax}"));
            let found: Vec<String> = arguments.iter().map(shown).collect();
            assert_eq!(found.join("; "), expected, "{syntax}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_noticed() {
        for syntax in ["[a", "a]", "[a |]", "<>", "| a", "..."] {
            assert_eq!(arguments(syntax), None, "{syntax}");
        }
    }
}
