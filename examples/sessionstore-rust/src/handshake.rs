//! The handshake of go-plugin, as the comments of ropewalk/plugin/v1/plugin.proto describe it.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;

/// Returns why this process must not serve, or `None` if it may.
pub fn refuse(kind: &str, protocol: u32) -> Option<String> {
    match env::var("ROPEWALK_PLUGIN").unwrap_or_default() {
        wanted if wanted.is_empty() => {
            return Some(format!(
                "this is a Ropewalk plugin of kind {kind}; a server starts it if its configuration names it, and `ropewalk plugin test` checks it"
            ));
        }
        wanted if wanted != kind => return Some(format!("this is a plugin of kind {kind}, but it was started as a plugin of kind {wanted}")),
        _ => {}
    }
    let versions = env::var("PLUGIN_PROTOCOL_VERSIONS").unwrap_or_else(|_| protocol.to_string());
    if versions.split(',').any(|version| version.trim() == protocol.to_string()) {
        return None;
    }
    Some(format!("this plugin speaks protocol version {protocol}; the server speaks {versions}"))
}

/// The server's certificate in PEM. Nobody else may connect.
pub fn client_certificate() -> io::Result<String> {
    env::var("PLUGIN_CLIENT_CERT").map_err(|_| io::Error::other("PLUGIN_CLIENT_CERT is not set: this plugin requires TLS"))
}

/// Where the plugin listens: a unix socket in a directory that other users cannot open. Both are removed at exit.
pub struct Place {
    socket: PathBuf,
    own: Option<PathBuf>,
}

impl Place {
    /// Creates the directory, unless the server has set one.
    pub fn new() -> io::Result<Self> {
        let name = format!("plugin{}", process::id());
        if let Some(given) = env::var_os("PLUGIN_UNIX_SOCKET_DIR").filter(|given| !given.is_empty()) {
            return Ok(Self { socket: PathBuf::from(given).join(name), own: None });
        }
        for attempt in 0.. {
            let folder = env::temp_dir().join(format!("ropewalk-{}-{attempt}", process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self { socket: folder.join("plugin"), own: Some(folder) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the loop ends with a folder or an error")
    }

    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
        if let Some(folder) = &self.own {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Prints the handshake line. Nothing else is ever printed to standard output.
pub fn announce(protocol: u32, socket: &Path, certificate: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "1|{protocol}|unix|{}|grpc|{certificate}", socket.display())?;
    out.flush()
}
