//! The settings. They are read strictly: every problem is reported at once, with its path.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::services::proto::Problem;

const NAMES: [&str; 1] = ["directory"];

/// Reads settings and returns where the sessions are kept: in `directory`, or else in `data_dir`, the directory
/// that the server provides.
pub fn parse(json: &str, data_dir: &str) -> Result<PathBuf, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut directory = String::new();
    match serde_json::from_str(if json.is_empty() { "{}" } else { json }) {
        Ok(Value::Object(members)) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("directory", Value::String(text)) => directory = text,
                    ("directory", other) => problems.push(problem("directory", format!("must be a string, not {}", kind(&other)))),
                    (other, _) => problems.push(Problem { nearest: nearest(other), ..problem(other, "is not a setting") }),
                }
            }
        }
        Ok(other) => problems.push(problem("", format!("must be an object, not {}", kind(&other)))),
        Err(_) => problems.push(problem("", "must be one JSON object, but cannot be parsed")),
    }
    if !directory.is_empty() {
        problems.extend(check(Path::new(&directory)).map(|complaint| problem("directory", complaint)));
    } else if data_dir.is_empty() && problems.is_empty() {
        problems.push(problem("directory", "must be set: the server provides no directory"));
    }
    if problems.is_empty() { Ok(PathBuf::from(if directory.is_empty() { data_dir } else { &directory })) } else { Err(problems) }
}

/// Returns what is wrong with one setting. The message never repeats its value.
fn problem(path: &str, message: impl Into<String>) -> Problem {
    Problem { path: path.to_owned(), message: message.into(), nearest: String::new() }
}

fn check(directory: &Path) -> Option<&'static str> {
    match directory.metadata() {
        _ if !directory.is_absolute() => Some("must be an absolute path"),
        Ok(found) if !found.is_dir() => Some("must be a directory"),
        Ok(found) if found.permissions().readonly() => Some("must be writable"),
        Ok(_) => None,
        Err(_) => Some("must be a directory that exists and can be read"),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the setting that a misspelled name probably means; empty if none is close.
fn nearest(name: &str) -> String {
    let distance = |known: &str| strsim::levenshtein(&name.to_lowercase(), known);
    let close = NAMES.into_iter().filter(|known| distance(known) <= 2.max(name.len() / 3));
    close.min_by_key(|known| distance(known)).map(str::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_reported_with_its_path_and_no_value() {
        let problems = parse(r#"{"directoryy": "s3cret", "directory": 3}"#, "/data").unwrap_err();
        let texts: Vec<_> = problems.iter().map(|p| format!("{}: {} ({})", p.path, p.message, p.nearest)).collect();
        assert_eq!(texts, ["directory: must be a string, not a number ()", "directoryy: is not a setting (directory)"]);
    }

    #[test]
    fn the_servers_directory_is_the_default() {
        assert_eq!(parse("{}", "/data").unwrap(), PathBuf::from("/data"));
        assert_eq!(parse("", "").unwrap_err()[0].path, "directory");
    }
}
