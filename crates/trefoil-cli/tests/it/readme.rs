//! The shell examples of the README and of the command line's page, run: each command must answer
//! what the page says after it.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::{ADMIN, Client, Server, binary, connect};

/// A command of a page and a part of what it answers.
#[derive(Debug)]
struct Example {
    words: Vec<String>,
    answer: String,
}

#[test]
fn the_quick_start_answers_what_it_says() {
    let here = run("README.md", 10);
    assert!(here.path().join("backup.ndjson").exists());
}

#[test]
fn the_command_line_answers_what_its_page_says() {
    run("docs/cli.md", 5);
}

/// Runs the examples of a page against a new server, in a directory that is returned.
fn run(page: &str, count_min: usize) -> TempDir {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let examples = examples(&std::fs::read_to_string(path).unwrap());
    assert!(examples.len() >= count_min, "{examples:#?}");
    let data = TempDir::new().unwrap();
    let here = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    for example in &examples {
        let is_redis = example.words.iter().any(|word| word == "redis-cli");
        if is_redis && !has_redis() {
            continue;
        }
        let answer = match example.words[0].as_str() {
            "curl" => curl(&server, &example.words),
            "trefoil" => trefoil(&server, &example.words, here.path()),
            "redis-cli" => redis(&server, &example.words, ""),
            // `printf 'lines' | redis-cli …`
            "printf" => redis(&server, &example.words[3..], &example.words[1]),
            other => panic!("unknown command {other}"),
        };
        let expected = &example.answer;
        assert!(answer.contains(expected), "{example:?}\nanswered {answer}");
    }
    here
}

/// The commands in the blocks of shell that say what they answer.
fn examples(page: &str) -> Vec<Example> {
    let token = page.lines().find_map(|line| line.strip_prefix("TOKEN="));
    let token = token.unwrap_or_default();
    let lines: Vec<&str> = page.lines().collect();
    let pairs = lines
        .windows(2)
        .filter_map(|pair| Some((pair[0], pair[1].strip_prefix("#=> ")?)));
    pairs
        .map(|(command, answer)| Example {
            words: words(&command.replace("$TOKEN", token)),
            answer: answer.to_owned(),
        })
        .collect()
}

/// Splits a line as a shell does that knows only quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (None, ' ') => words.push(String::new()),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Does what `curl` would do, which need not be installed.
fn curl(server: &Server, words: &[String]) -> String {
    let after = |flag: &str| {
        let place = words.iter().position(|word| word == flag)?;
        words.get(place + 1)
    };
    let url = words
        .iter()
        .find(|word| word.starts_with("http://"))
        .unwrap();
    let path = url.strip_prefix("http://127.0.0.1:8080").unwrap();
    let (name, value) = after("-H").unwrap().split_once(": ").unwrap();
    match after("-d") {
        Some(body) => {
            let mut client = Client::new(server.port, None);
            let answer = client.try_request("POST", path, &[(name, value)], body.as_bytes());
            answer.unwrap().text().to_owned()
        }
        None => follow(server, path, &format!("{name}: {value}")),
    }
}

/// What an endless answer begins with.
fn follow(server: &Server, path: &str, header: &str) -> String {
    use std::io::Write as _;

    let mut connection = connect(server.port).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    write!(
        connection,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    let mut buffer = [0; 4096];
    while !answer.contains("data: ") {
        let length = connection.read(&mut buffer).unwrap();
        assert!(length > 0, "{answer}");
        answer.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    answer
}

/// Whether Redis' own client is here; `cargo xtask test` installs it.
fn has_redis() -> bool {
    let is_there = Command::new("redis-cli").arg("--version").output().is_ok();
    let is_needed = std::env::var_os("XTASK_REDIS").is_some();
    assert!(is_there || !is_needed, "there is no redis-cli");
    is_there
}

/// Runs Redis' own client, which asks the port that the page names.
fn redis(server: &Server, words: &[String], lines: &str) -> String {
    use std::io::Write as _;
    use std::process::Stdio;

    let at = words.iter().position(|word| word == "6666").unwrap();
    let mut words = words.to_vec();
    words[at] = server.resp_port.to_string();
    let mut client = Command::new(&words[0])
        .args(&words[1..])
        .env("REDISCLI_AUTH", ADMIN)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = client.stdin.take().unwrap();
    stdin
        .write_all(lines.replace("\\n", "\n").as_bytes())
        .unwrap();
    drop(stdin);
    let output = client.wait_with_output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn trefoil(server: &Server, words: &[String], directory: &Path) -> String {
    let mut command: Command = binary();
    let output = command
        .args(&words[1..])
        .env("TREFOIL_URL", format!("http://127.0.0.1:{}", server.port))
        .current_dir(directory)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(output.status.success(), "{words:?}: {said}");
    said
}
