//! A session store for Ropewalk that keeps sessions in a redb file. `ropewalk plugin proto` writes its contracts.

mod handshake;
mod log;
mod services;
mod settings;
mod store;
mod tls;

use std::process::ExitCode;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic_health::ServingStatus;

use services::{Controller, Plugin, Sessions, proto};

const KIND: &str = "sessionstore";
const PROTOCOL: u32 = 1;
const GRACE: Duration = Duration::from_secs(1); // for calls that are in progress at shutdown
const MAX_MESSAGE: usize = (16 << 20) + (64 << 10); // bytes: 16 MiB plus the fields around the payload

fn main() -> ExitCode {
    if let Some(refusal) = handshake::refuse(KIND, PROTOCOL) {
        eprintln!("{refusal}");
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    match runtime.block_on(serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.as_ref()),
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    log::error("The plugin cannot serve.", &[("error", error.to_string().into())]);
    ExitCode::FAILURE
}

/// Serves until the server or a signal stops the process.
async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let (end, mut ended) = watch::channel(false);
    end_at_signals(end.clone())?;
    let (acceptor, field) = tls::acceptor(&handshake::client_certificate()?)?;
    let place = handshake::Place::new()?;
    let connections = tls::accept(UnixListener::bind(place.socket())?, acceptor);

    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("plugin", ServingStatus::Serving).await;
    let plugin = Plugin::default();
    let server = Server::builder()
        .add_service(health_service)
        .add_service(proto::plugin_service_server::PluginServiceServer::new(plugin.clone()).max_decoding_message_size(MAX_MESSAGE))
        .add_service(
            proto::session_store_service_server::SessionStoreServiceServer::new(Sessions::new(&plugin))
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE),
        )
        .add_service(proto::grpc_controller_server::GrpcControllerServer::new(Controller::new(end)))
        .serve_with_incoming_shutdown(ReceiverStream::new(connections), {
            let mut ended = ended.clone();
            async move { drop(ended.wait_for(|end| *end).await) }
        });
    handshake::announce(PROTOCOL, place.socket(), &field)?;

    let mut server = std::pin::pin!(server);
    tokio::select! {
        result = &mut server => result?,
        _ = ended.wait_for(|end| *end) => {
            let _ = tokio::time::timeout(GRACE, server).await; // calls that take longer are abandoned
        }
    }
    plugin.close().await;
    Ok(())
}

/// SIGTERM stops the plugin. Ctrl-C in a terminal is meant for the server, which then calls Shutdown.
fn end_at_signals(end: watch::Sender<bool>) -> std::io::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        term.recv().await;
        end.send_replace(true);
    });
    tokio::spawn(async move { while int.recv().await.is_some() {} });
    Ok(())
}
