//! Generates Rust code from the .proto files that `ropewalk plugin proto` writes.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let files = ["ropewalk/plugin/v1/plugin.proto", "ropewalk/sessionstore/v1/sessionstore.proto", "controller.proto"];
    let folders = ["proto", "src"];
    for folder in folders {
        println!("cargo:rerun-if-changed={folder}");
    }
    // protox is a protoc written in Rust, so nothing has to be installed.
    let parsed = protox::compile(files, folders)?;
    tonic_prost_build::configure().build_client(false).compile_fds(parsed)?;
    Ok(())
}
