//! The services: ropewalk.plugin.v1, ropewalk.sessionstore.v1 over one store, and shutdown.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{OnceCell, watch};
use tonic::{Request, Response, Status};

use crate::log;
use crate::settings;
use crate::store::Store;
use proto::*;

/// The code that build.rs generates from the .proto files.
pub mod proto {
    tonic::include_proto!("ropewalk.plugin.v1");
    tonic::include_proto!("ropewalk.sessionstore.v1");
    tonic::include_proto!("plugin");
}

/// The plugin before and after Configure.
#[derive(Clone, Default)]
pub struct Plugin {
    store: Arc<OnceCell<Store>>,
}

impl Plugin {
    /// Finishes pending writes and closes the file, so that the next process can open it.
    pub async fn close(&self) {
        if let Some(store) = self.store.get() {
            store.close().await;
        }
    }
}

#[tonic::async_trait]
impl plugin_service_server::PluginService for Plugin {
    async fn info(&self, _: Request<InfoRequest>) -> Result<Response<InfoResponse>, Status> {
        Ok(Response::new(InfoResponse {
            name: "rust".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: crate::KIND.to_owned(),
            protocol_versions: vec![crate::PROTOCOL],
            // "exclusive": one process at a time may have the file open.
            capabilities: ["configure", "validate", "durable", "replace", "exclusive"].map(str::to_owned).to_vec(),
        }))
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Result<Response<ConfigureResponse>, Status> {
        let request = request.into_inner();
        if self.store.initialized() {
            return Err(Status::invalid_argument("the plugin is already configured; start another process for other settings"));
        }
        let directory = match settings::parse(&request.settings_json, &request.data_dir) {
            Ok(directory) => directory,
            Err(problems) => return Ok(Response::new(ConfigureResponse { problems })),
        };
        self.store.get_or_try_init(|| Store::open(directory.clone())).await?;
        log::info("The store is ready.", &[("directory", Value::from(directory.to_string_lossy()))]);
        Ok(Response::new(ConfigureResponse::default()))
    }

    async fn validate(&self, request: Request<ValidateRequest>) -> Result<Response<ValidateResponse>, Status> {
        let request = request.into_inner();
        let problems = settings::parse(&request.settings_json, &request.data_dir).err().unwrap_or_default();
        Ok(Response::new(ValidateResponse { problems }))
    }
}

/// The session store service.
pub struct Sessions {
    store: Arc<OnceCell<Store>>,
}

impl Sessions {
    /// Serves the store that the plugin was configured with.
    pub fn new(plugin: &Plugin) -> Self {
        Self { store: plugin.store.clone() }
    }

    fn store(&self) -> Result<&Store, Status> {
        self.store.get().ok_or_else(|| Status::failed_precondition("call Configure first"))
    }
}

#[tonic::async_trait]
impl session_store_service_server::SessionStoreService for Sessions {
    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let PutRequest { record, ttl } = request.into_inner();
        self.store()?.put(record.unwrap_or_default(), ttl).await?;
        Ok(Response::new(PutResponse {}))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let (record, expires_at) = self.store()?.get(request.into_inner().id).await?;
        Ok(Response::new(GetResponse { record: Some(record), expires_at: Some(expires_at) }))
    }

    async fn touch(&self, request: Request<TouchRequest>) -> Result<Response<TouchResponse>, Status> {
        self.store()?.touch(request.into_inner().touches).await?;
        Ok(Response::new(TouchResponse {}))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        self.store()?.delete(request.into_inner().id).await?;
        Ok(Response::new(DeleteResponse {}))
    }

    async fn replace(&self, request: Request<ReplaceRequest>) -> Result<Response<ReplaceResponse>, Status> {
        let ReplaceRequest { record, expected_owner, ttl } = request.into_inner();
        let replaced = self.store()?.replace(record.unwrap_or_default(), expected_owner, ttl).await?;
        Ok(Response::new(ReplaceResponse { replaced }))
    }
}

/// plugin.GRPCController of go-plugin.
pub struct Controller {
    end: watch::Sender<bool>,
}

impl Controller {
    /// Shutdown sets `end`.
    pub fn new(end: watch::Sender<bool>) -> Self {
        Self { end }
    }
}

#[tonic::async_trait]
impl grpc_controller_server::GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        self.end.send_replace(true);
        Ok(Response::new(Empty {}))
    }
}
