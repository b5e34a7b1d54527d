//! TLS: a certificate and a key in PEM files, and the upgrade of a stream.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::login::TlsInfo;

/// A certificate with its key, for TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or holds nothing of its kind.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not fit, or are of a kind that is not supported.
    #[error(transparent)]
    Config(#[from] rustls::Error),
}

impl Tls {
    /// Reads a chain of certificates, the server's first, and its key.
    ///
    /// # Errors
    /// When a file cannot be read, or the two do not fit.
    pub fn from_pem_files(certificates: &Path, key: &Path) -> Result<Tls, TlsError> {
        let file_error = |path: &Path| {
            let path = path.to_owned();
            |source| TlsError::File { path, source }
        };
        let chain = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(file_error(certificates))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(file_error(key))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Tls {
            config: Arc::new(config),
        })
    }

    /// Goes on under TLS.
    pub(crate) async fn upgrade<S>(&self, stream: S) -> io::Result<(TlsStream<S>, TlsInfo)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = TlsAcceptor::from(Arc::clone(&self.config))
            .accept(stream)
            .await?;
        let (_, state) = stream.get_ref();
        let info = TlsInfo {
            version: match state.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2".to_owned(),
                _ => "TLSv1.3".to_owned(),
            },
            cipher: state
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str())
                .unwrap_or_default()
                .to_owned(),
        };
        Ok((stream, info))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}
