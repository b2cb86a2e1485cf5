//! Contexts: which server and which token a command uses, and who may read them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Cli, errors, require_code, text};
use crate::harness::{ADMIN, Server, binary, piped};

/// A user with a directory of their own.
struct User {
    home: TempDir,
}

impl User {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        Self { home }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary();
        command.args(arguments).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        require_code(0, &output, arguments);
        text(&output)
    }

    #[track_caller]
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        require_code(code, &output, arguments);
        errors(&output)
    }

    fn shown(&self, arguments: &[&str]) -> Value {
        let all = [&["context", "show", "--json"], arguments].concat();
        serde_json::from_str(&self.ok(&all)).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("config/trefoil/contexts.toml")
    }

    fn token_file(&self, token: &str, mode: u32) -> String {
        let path = self.home.path().join("token");
        std::fs::write(&path, format!("{token}\n")).unwrap();
        set_mode(&path, mode);
        path.to_str().unwrap().to_owned()
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn url(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

#[test]
fn every_command_uses_the_selected_context() {
    let data = TempDir::new().unwrap();
    let server = Server::on(data.path(), &[]);
    let tenant = Cli::of(&server).ok(&["ns", "create", "tenant-a"]);
    let user = User::new();
    let file = user.token_file(tenant.trim(), 0o600);
    let url = url(&server);
    user.ok(&["context", "add", "tenant", &url, "--token-file", &file]);
    user.ok(&["write", "account-1", "Opened"]);
    user.ok(&["context", "add", "admin", &url]);
    let events = |arguments: &[&str]| {
        let printed = user.ok(&[&["read", "--all", "--json"], arguments].concat());
        printed.lines().count()
    };
    assert_eq!(events(&[]), 1, "the first one is selected");
    assert_eq!(events(&["--context", "admin"]), 0);
    user.ok(&["context", "select", "admin"]);
    assert_eq!(events(&[]), 0);
    // What gives a namespace a token asks with that of the context, too.
    user.ok(&["ns", "create", "tenant-b"]);
    assert_eq!(
        user.fails(5, &["ns", "create", "c", "--context", "tenant"])
            .lines()
            .count(),
        1
    );
    user.ok(&["context", "select", "-"]);
    assert_eq!(events(&[]), 1);
    let listed = user.ok(&["context", "ls", "--output", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        listed[1],
        json!({"name": "tenant", "url": url, "token": format!("file {file}"), "selected": true})
    );
    user.ok(&["context", "rm", "tenant"]);
    user.fails(4, &["read", "--all", "--context", "tenant"]);
    user.ok(&["context", "select", "-"]);
    assert_eq!(user.shown(&[])["urlFrom"], "context admin");
    user.ok(&["context", "rm", "admin"]);
    let said = user.fails(4, &["context", "select", "-"]);
    assert!(said.contains("no context was selected before"), "{said}");
}

#[test]
fn flags_and_the_environment_come_before_the_context() {
    let user = User::new();
    let file = user.token_file(ADMIN, 0o600);
    user.ok(&[
        "context",
        "add",
        "prod",
        "https://prod.example",
        "--token-file",
        &file,
    ]);
    let shown = user.shown(&[]);
    assert_eq!(
        shown,
        json!({"url": "https://prod.example", "urlFrom": "context prod", "namespace": "default", "tokenFrom": "context prod"})
    );
    let shown = user.shown(&["--url", "http://elsewhere"]);
    assert_eq!(shown["urlFrom"], "--url");
    assert_eq!(
        shown["tokenFrom"], "the development token",
        "not that of prod"
    );
    let mut command = user.command(&["context", "show", "--json"]);
    command
        .env("TREFOIL_URL", "http://there")
        .env("TREFOIL_TOKEN", "my-own-token-of-16-bytes");
    let shown: Value = serde_json::from_str(&text(&command.output().unwrap())).unwrap();
    assert_eq!(
        shown,
        json!({"url": "http://there", "urlFrom": "TREFOIL_URL", "namespace": null, "tokenFrom": "TREFOIL_TOKEN"})
    );
    let shown: Value = serde_json::from_str(&text(&command.arg("prod").output().unwrap())).unwrap();
    assert_eq!(shown["urlFrom"], "context prod");
}

#[test]
fn a_token_is_stored_only_if_asked_and_never_shown() {
    let user = User::new();
    let file = user.token_file(ADMIN, 0o600);
    user.ok(&[
        "context",
        "add",
        "by-file",
        "http://a",
        "--token-file",
        &file,
    ]);
    let stored = || std::fs::read_to_string(user.file()).unwrap();
    assert!(!stored().contains(ADMIN));
    let mut add = user.command(&["context", "add", "by-value", "http://b", "--store-token"]);
    let output = piped(add.stderr(Stdio::piped()), format!("{ADMIN}\n").as_bytes());
    assert!(output.status.success(), "{}", errors(&output));
    assert!(stored().contains(ADMIN));
    let mode = std::fs::metadata(user.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for arguments in [
        &["context", "ls"][..],
        &["context", "ls", "--json"],
        &["context", "show", "by-value"],
        &["context", "show", "by-file", "--json"],
    ] {
        let output = user.run(arguments);
        let said = text(&output) + &errors(&output);
        assert!(
            output.status.success() && !said.contains(&ADMIN[20..]),
            "{said}"
        );
    }
    // Nor when the file cannot be understood.
    std::fs::write(
        user.file(),
        format!("[contexts.x]\nurl = 1\ntoken = \"{ADMIN}\nz"),
    )
    .unwrap();
    let said = user.fails(2, &["context", "ls"]);
    assert!(
        said.contains("line") && !said.contains(&ADMIN[20..]),
        "{said}"
    );
}

#[test]
fn what_others_can_read_is_refused_or_told() {
    let user = User::new();
    let file = user.token_file(ADMIN, 0o644);
    let added = user.run(&[
        "context",
        "add",
        "prod",
        "http://127.0.0.1:1",
        "--token-file",
        &file,
    ]);
    assert!(added.status.success());
    assert!(errors(&added).contains("warning: everybody may use the token file"));
    set_mode(&user.file(), 0o640);
    let said = user.fails(2, &["streams"]);
    assert!(said.contains("chmod 600"), "{said}");
    // Who gives both needs no context.
    let said = user.fails(
        1,
        &["streams", "--url", "http://127.0.0.1:1", "--token", ADMIN],
    );
    assert!(said.contains("cannot reach the server"), "{said}");
}

#[test]
fn wrong_contexts_are_told_apart() {
    let user = User::new();
    let file = user.token_file(ADMIN, 0o600);
    let add = |name: &str, url: &str, file: &str| {
        user.run(&["context", "add", name, url, "--token-file", file])
    };
    assert_eq!(add("a/b", "http://a", &file).status.code(), Some(2));
    assert_eq!(add("-", "http://a", &file).status.code(), Some(2));
    assert_eq!(add("a", "prod.example", &file).status.code(), Some(2));
    let missing = add("a", "http://a", "/nonexistent/token");
    assert_eq!(missing.status.code(), Some(1));
    assert!(errors(&missing).contains("cannot read the token file /nonexistent/token"));
    let two = user.token_file("two words", 0o600);
    assert_eq!(add("a", "http://a", &two).status.code(), Some(2));
    assert!(!user.file().exists(), "nothing was added");

    let file = user.token_file(ADMIN, 0o600);
    assert!(add("a", "http://127.0.0.1:1", &file).status.success());
    assert_eq!(add("a", "http://b", &file).status.code(), Some(2));
    let said = user.fails(1, &["streams"]);
    assert!(
        said.contains("cannot reach the server at http://127.0.0.1:1"),
        "{said}"
    );
    std::fs::remove_file(&file).unwrap();
    let said = user.fails(1, &["streams"]);
    assert!(said.contains("cannot read the token file"), "{said}");
    let said = user.fails(4, &["streams", "--context", "nobody"]);
    assert!(said.contains("there is no context 'nobody'"), "{said}");
    let said = user.fails(4, &["context", "rm", "nobody"]);
    assert!(said.contains("there is no context 'nobody'"), "{said}");
}
