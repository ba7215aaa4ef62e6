//! Log lines as the server reads them: one JSON object per line on standard error.

use std::io::Write;

use serde_json::{Map, Value};

type Fields<'a> = &'a [(&'a str, Value)];

pub fn info(message: &str, fields: Fields) {
    write("info", message, fields);
}

pub fn warn(message: &str, fields: Fields) {
    write("warn", message, fields);
}

pub fn error(message: &str, fields: Fields) {
    write("error", message, fields);
}

fn write(level: &str, message: &str, fields: Fields) {
    let mut line: Map<String, Value> = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    line.insert("@level".to_owned(), level.into());
    line.insert("@message".to_owned(), message.into());
    // If the log cannot be written, the call should still succeed.
    let _ = writeln!(std::io::stderr(), "{}", Value::Object(line));
}
