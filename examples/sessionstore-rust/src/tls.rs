//! TLS between the server and this process. Each has a certificate that was created for this start, and accepts
//! only the other's.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::log;

const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Creates a key and a certificate for "localhost", and an acceptor that admits only the client with the
/// certificate `client`, in PEM. The returned text is the sixth field of the handshake line.
pub fn acceptor(client: &str) -> Result<(TlsAcceptor, String), Box<dyn std::error::Error>> {
    let client = CertificateDer::from_pem_slice(client.as_bytes()).map_err(|_| "PLUGIN_CLIENT_CERT is not a certificate in PEM")?;
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?; // P-256
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(OnlyClient { certificate: client, provider }))
        .with_single_cert(vec![own.cert.der().clone()], PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into())?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), base64(own.cert.der())))
}

/// Accepts one certificate, whatever it contains: the one that the server passed.
#[derive(Debug)]
struct OnlyClient {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for OnlyClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(&self, end: &CertificateDer<'_>, _: &[CertificateDer<'_>], _: UnixTime) -> Result<ClientCertVerified, Error> {
        if *end == self.certificate {
            return Ok(ClientCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(&self, message: &[u8], cert: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(&self, message: &[u8], cert: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts connections for as long as the process lives. Connections that fail are dropped.
pub fn accept(listener: UnixListener, acceptor: TlsAcceptor) -> mpsc::Receiver<io::Result<Connection>> {
    let (send, receive) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    log::warn("A connection could not be accepted.", &[("error", error.to_string().into())]);
                    tokio::time::sleep(Duration::from_millis(100)).await; // for example, too many open files
                    continue;
                }
            };
            let (send, handshake) = (send.clone(), acceptor.accept(stream));
            tokio::spawn(async move {
                if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_WITHIN, handshake).await {
                    let _ = send.send(Ok(Connection(stream))).await;
                }
            });
        }
    });
    receive
}

/// A connection from the server.
pub struct Connection(TlsStream<UnixStream>);

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Base64 without padding, RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for i in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * i)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_has_no_padding() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(super::base64(bytes.as_bytes()), text, "RFC 4648 section 10");
        }
    }
}
