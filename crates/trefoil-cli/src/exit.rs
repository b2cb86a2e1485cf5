//! Exit codes, and how an error becomes one.

use std::io::ErrorKind;
use std::process::ExitCode;

use serde_json::json;

use crate::client::ServerError;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const CONFLICT: u8 = 3;
const NOT_FOUND: u8 = 4;
const UNAUTHORISED: u8 = 5;
const OUTCOME_UNKNOWN: u8 = 6;
const WRONG_NODE: u8 = 7;

/// The table of exit codes, as every help text ends with it.
pub(crate) const CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 conflict, \
    4 not found, 5 unauthorised, 6 outcome unknown, 7 wrong node";

/// The command was called in a way that cannot work.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// What was asked for does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotFound(pub(crate) String);

/// Tells the user about the error, as text or as JSON, and chooses the exit code.
pub(crate) fn report(error: &anyhow::Error, is_json: bool) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader has seen enough, as in `trefoil read account | head`.
        return ExitCode::SUCCESS;
    }
    tell(error, is_json);
    ExitCode::from(code(error))
}

/// Tells the user about an error: as the server would if it is to be JSON.
pub(crate) fn tell(error: &anyhow::Error, is_json: bool) {
    if !is_json {
        eprintln!("error: {error:#}");
        return;
    }
    let mut told = json!({"code": name(error), "message": format!("{error:#}")});
    if let Some(details) = of_server(error).and_then(|error| error.details.clone()) {
        told["details"] = details;
    }
    eprintln!("{}", json!({"error": told}));
}

/// Tells the user about arguments that cannot be understood, or shows the help that they ask for.
pub(crate) fn report_usage(error: &clap::Error, is_json: bool) -> ExitCode {
    if is_json && error.use_stderr() {
        let text = error.render().to_string();
        let text = text.trim().trim_start_matches("error: ");
        return report(&UsageError(text.to_owned()).into(), is_json);
    }
    // Where nothing can be written, nobody can be told.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

fn of_server(error: &anyhow::Error) -> Option<&ServerError> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// The server's code, or the name of the exit code.
fn name(error: &anyhow::Error) -> &str {
    match of_server(error) {
        Some(error) => &error.code,
        None => match code(error) {
            USAGE => "USAGE",
            NOT_FOUND => "NOT_FOUND",
            _ => "FAILED",
        },
    }
}

fn code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(FAILED)
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<ServerError>() {
        return Some(match (error.status, error.code.as_str()) {
            (401 | 403, _) => UNAUTHORISED,
            (404, _) => NOT_FOUND,
            (409, _) => CONFLICT,
            (_, "OUTCOME_UNKNOWN") => OUTCOME_UNKNOWN,
            (_, "WRONG_NODE") => WRONG_NODE,
            _ => FAILED,
        });
    }
    match cause.downcast_ref() {
        Some(trefoil::Error::NamespaceNotFound(_)) => return Some(NOT_FOUND),
        Some(trefoil::Error::Unknown { .. }) => return Some(OUTCOME_UNKNOWN),
        Some(trefoil::Error::NotOwner { .. }) => return Some(WRONG_NODE),
        _ => {}
    }
    if cause.is::<UsageError>() {
        return Some(USAGE);
    }
    cause.is::<NotFound>().then_some(NOT_FOUND)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_code() {
        let told = |status, name: &str| {
            let error = ServerError {
                status,
                code: name.to_owned(),
                message: "text".to_owned(),
                details: None,
            };
            code(&anyhow::Error::new(error).context("while doing something"))
        };
        let server = |status| told(status, "CODE");
        assert_eq!(
            [400, 401, 403, 404, 409, 500].map(server),
            [1, 5, 5, 4, 3, 1]
        );
        assert_eq!(code(&UsageError(String::new()).into()), 2);
        assert_eq!(code(&NotFound(String::new()).into()), 4);
        assert_eq!(told(500, "OUTCOME_UNKNOWN"), 6);
        assert_eq!(told(421, "WRONG_NODE"), 7);
        assert_eq!(told(421, "HOST_NOT_ALLOWED"), 1);
        let missing = trefoil::Error::NamespaceNotFound(String::new());
        assert_eq!(code(&missing.into()), 4);
        let lost = trefoil::Error::result_lost("x");
        assert_eq!(code(&anyhow::Error::new(lost).context("importing")), 6);
        assert_eq!(code(&anyhow::anyhow!("anything else")), 1);
    }
}
