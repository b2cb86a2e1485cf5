//! A client of the protocol, for Trefoil and for UmaDB itself.

use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::{
    AppendRequest, AppendResponse, ErrorResponse, HeadRequest, HeadResponse, HealthCheckRequest,
    HealthCheckResponse, ReadRequest, ReadResponse, SubscribeRequest, SubscribeResponse,
    TrackingRequest, TrackingResponse, method,
};

/// What UmaDB's own client allows the server to send ahead; a long read waits less than with the
/// 64 KiB of HTTP/2.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Where to connect to, and as whom.
#[derive(Clone, Default)]
pub struct Connect {
    /// `http://host:port`, or `https://host:port`.
    pub url: String,
    /// The token of a namespace; the API key of UmaDB.
    pub token: Option<String>,
    /// The certificate, in PEM, that signed the server's one; for `https` only.
    pub ca_certificate: Option<String>,
}

/// Without the token.
impl std::fmt::Debug for Connect {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Connect");
        shown.field("url", &self.url).finish_non_exhaustive()
    }
}

/// A connection to a server. Clones share it.
#[derive(Debug, Clone)]
pub struct Client {
    channel: Grpc<Channel>,
    authorization: Option<MetadataValue<Ascii>>,
}

impl Client {
    /// Connects to a server.
    pub async fn connect(connect: Connect) -> Result<Self, Status> {
        let refused = |error: tonic::transport::Error| {
            Status::unavailable(format!("cannot connect to {}: {error:?}", connect.url))
        };
        let mut endpoint = Endpoint::from_shared(connect.url.clone())
            .map_err(refused)?
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        if connect.url.starts_with("https:") {
            let authority = connect.ca_certificate.as_ref().map(Certificate::from_pem);
            let tls = ClientTlsConfig::new().ca_certificates(authority);
            endpoint = endpoint.tls_config(tls).map_err(refused)?;
        }
        let channel = endpoint.connect().await.map_err(refused)?;
        let authorization = connect.token.map(|token| format!("Bearer {token}").parse());
        let authorization = authorization.transpose();
        let authorization = authorization.map_err(|_| {
            Status::invalid_argument("the token has characters that no header can hold")
        })?;
        Ok(Self {
            channel: Grpc::new(channel).max_decoding_message_size(usize::MAX),
            authorization,
        })
    }

    /// Reads events.
    pub async fn read(&mut self, request: ReadRequest) -> Result<Streaming<ReadResponse>, Status> {
        self.stream(method::READ, request).await
    }

    /// Follows events.
    pub async fn subscribe(
        &mut self,
        request: SubscribeRequest,
    ) -> Result<Streaming<SubscribeResponse>, Status> {
        self.stream(method::SUBSCRIBE, request).await
    }

    /// Appends events; returns the position of the last one.
    pub async fn append(&mut self, request: AppendRequest) -> Result<u64, Status> {
        let answer: AppendResponse = self.call(method::APPEND, request).await?;
        Ok(answer.position)
    }

    /// The position of the last event.
    pub async fn head(&mut self) -> Result<Option<u64>, Status> {
        let answer: HeadResponse = self.call(method::HEAD, HeadRequest {}).await?;
        Ok(answer.position)
    }

    /// The position that was last recorded for a source.
    pub async fn tracking(&mut self, source: impl Into<String>) -> Result<Option<u64>, Status> {
        let source = source.into();
        let request = TrackingRequest { source };
        let answer: TrackingResponse = self.call(method::GET_TRACKING_INFO, request).await?;
        Ok(answer.position)
    }

    /// Whether a service answers; the empty name stands for the server as a whole.
    pub async fn health(
        &mut self,
        service: impl Into<String>,
    ) -> Result<HealthCheckResponse, Status> {
        let service = service.into();
        self.call(method::HEALTH_CHECK, HealthCheckRequest { service })
            .await
    }

    /// Whether a service answers, now and whenever that changes.
    pub async fn watch_health(
        &mut self,
        service: impl Into<String>,
    ) -> Result<Streaming<HealthCheckResponse>, Status> {
        let service = service.into();
        self.stream(method::HEALTH_WATCH, HealthCheckRequest { service })
            .await
    }

    async fn ready(&mut self) -> Result<(), Status> {
        let ready = self.channel.ready().await;
        ready.map_err(|error| Status::unavailable(format!("not connected: {error}")))
    }

    fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(value) = &self.authorization {
            request
                .metadata_mut()
                .insert("authorization", value.clone());
        }
        request
    }

    async fn call<M, A>(&mut self, path: &'static str, message: M) -> Result<A, Status>
    where
        M: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let request = self.request(message);
        let path = PathAndQuery::from_static(path);
        let codec = ProstCodec::default();
        Ok(self.channel.unary(request, path, codec).await?.into_inner())
    }

    async fn stream<M, A>(&mut self, path: &'static str, message: M) -> Result<Streaming<A>, Status>
    where
        M: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let request = self.request(message);
        let path = PathAndQuery::from_static(path);
        let codec = ProstCodec::default();
        let answer = self.channel.server_streaming(request, path, codec).await?;
        Ok(answer.into_inner())
    }
}

/// What the details of a failed call say; `None` if they say nothing.
pub fn error_of(status: &Status) -> Option<ErrorResponse> {
    let is_ours = status.code() != Code::Ok && !status.details().is_empty();
    is_ours.then(|| ErrorResponse::decode(status.details()).ok())?
}
