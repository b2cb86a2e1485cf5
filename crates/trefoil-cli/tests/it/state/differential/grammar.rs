//! Reads `commands.txt` and makes commands up from it.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::compare::How;
use super::pools::{Words, pool};

/// A command and how its replies are compared.
#[derive(Clone)]
pub(super) struct Command {
    pub(super) how: How,
    pub(super) words: Vec<Vec<u8>>,
}

type Arguments = BoxedStrategy<Vec<Vec<u8>>>;

const TABLE: &str = include_str!("commands.txt");

/// Any command of the table.
pub(super) fn command() -> BoxedStrategy<Command> {
    let lines = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    Union::new_weighted(lines.map(line).collect()).boxed()
}

/// The names of all commands of the table.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let lines = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').nth(1))
}

fn line(line: &'static str) -> (u32, BoxedStrategy<Command>) {
    let (how, grammar) = line.split_once(' ').unwrap();
    let (how, weight) = how.split_once('*').unwrap_or((how, "1"));
    let how = How::named(how);
    let tokens = tokens(grammar);
    let mut parser = Parser { tokens: &tokens };
    let words = parser.choice();
    assert!(parser.tokens.is_empty(), "a bracket too many: {line}");
    // A walk or a choice with other arguments says nothing; their errors are in lines of their own.
    let spoiled = match how {
        How::Exact | How::Set | How::Map => spoiled(words),
        _ => words,
    };
    let command = spoiled.prop_map(move |words| Command { how, words });
    (weight.parse().unwrap(), command.boxed())
}

/// A few of the commands have one argument less, one more, or another one.
fn spoiled(words: Arguments) -> Arguments {
    let spoil = weighted(
        0.05,
        (0..3usize, any::<prop::sample::Index>(), pool("word")),
    );
    (words, spoil)
        .prop_map(|(mut words, spoil)| {
            let Some((how, at, word)) = spoil else {
                return words;
            };
            let at = 1 + at.index(words.len());
            match how {
                0 if at < words.len() => drop(words.remove(at)),
                1 if at < words.len() => words[at] = word,
                _ => words.insert(at, word),
            }
            words
        })
        .boxed()
}

fn tokens(grammar: &'static str) -> Vec<&'static str> {
    let mut tokens = Vec::new();
    for word in grammar.split(' ') {
        let mut rest = word;
        while !rest.is_empty() {
            let length = match rest.find(['[', ']', '(', ')', '|', '^']) {
                Some(0) => 1,
                Some(end) => end,
                None => rest.len(),
            };
            let (token, after) = rest.split_at(length);
            match token.strip_suffix("...") {
                Some("") => tokens.push("..."),
                Some(token) => tokens.extend([token, "..."]),
                None => tokens.push(token),
            }
            rest = after;
        }
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [&'static str],
}

impl Parser<'_> {
    fn peek(&self) -> Option<&'static str> {
        self.tokens.first().copied()
    }

    fn next(&mut self) -> &'static str {
        let (first, rest) = self.tokens.split_first().unwrap();
        self.tokens = rest;
        first
    }

    /// One of the parts between bars, up to a closing bracket.
    fn choice(&mut self) -> Arguments {
        let mut all = vec![self.sequence()];
        while self.peek() == Some("|") {
            self.next();
            all.push(self.sequence());
        }
        Union::new(all).boxed()
    }

    /// Arguments one after the other.
    fn sequence(&mut self) -> Arguments {
        let mut all = Vec::new();
        while self
            .peek()
            .is_some_and(|token| !["]", ")", "|"].contains(&token))
        {
            all.push(self.repeated());
        }
        all.prop_map(|parts| parts.concat()).boxed()
    }

    fn repeated(&mut self) -> Arguments {
        let one = self.one();
        let times = match self.peek() {
            Some("...") => 1..4,
            Some("^") => 1..200,
            _ => return one,
        };
        self.next();
        vec(one, times).prop_map(|parts| parts.concat()).boxed()
    }

    fn one(&mut self) -> Arguments {
        match self.next() {
            "[" => {
                let inner = self.choice();
                assert_eq!(self.next(), "]");
                weighted(0.5, inner)
                    .prop_map(Option::unwrap_or_default)
                    .boxed()
            }
            "(" => {
                let inner = self.choice();
                assert_eq!(self.next(), ")");
                inner
            }
            "#" if self.peek() == Some("(") => counted(self.one()),
            token => word(token).prop_map(|word| vec![word]).boxed(),
        }
    }
}

/// A number and that many of these; now and then another number.
fn counted(one: Arguments) -> Arguments {
    let wrong = weighted(0.05, pool("few"));
    (vec(one, 1..4), wrong)
        .prop_map(|(all, wrong)| {
            let right = all.len().to_string().into_bytes();
            let mut words = vec![wrong.unwrap_or(right)];
            words.extend(all.concat());
            words
        })
        .boxed()
}

fn word(token: &'static str) -> Words {
    let is_literal = token.bytes().all(|byte| !byte.is_ascii_lowercase());
    match is_literal || token == "nosuch" {
        true => Just(token.as_bytes().to_vec()).boxed(),
        false => pool(token),
    }
}
