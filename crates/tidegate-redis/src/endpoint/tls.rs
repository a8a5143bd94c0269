//! TLS by rustls, with ring: said here, so that no provider of the process is needed or used.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{ConfigError, Tls};

/// Reads the files, once: a change of them needs a new endpoint.
pub(crate) fn connector(tls: &Tls) -> Result<TlsConnector, ConfigError> {
    let error = |error| ConfigError::new(format!("TLS to Redis: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(error)?
        .with_root_certificates(authorities(tls)?);
    let config = match &tls.client_certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(error)?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn authorities(tls: &Tls) -> Result<RootCertStore, ConfigError> {
    let (found, from) = match &tls.ca_file {
        Some(file) => (certificates(file)?, file.display().to_string()),
        None => (
            rustls_native_certs::load_native_certs().certs,
            "the system's store".to_owned(),
        ),
    };
    let mut store = RootCertStore::empty();
    let (usable, _) = store.add_parsable_certificates(found);
    if usable == 0 {
        let why = format!("TLS to Redis: no authority to trust in {from}; name a CA file");
        return Err(ConfigError::new(why));
    }
    Ok(store)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(file, &error))
}

fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::new(format!("TLS to Redis: {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let why = |tls: &Tls| connector(tls).err().expect("wrong").to_string();
        let mut tls = Tls {
            ca_file: Some("/no/such/ca.pem".into()),
            ..Tls::default()
        };
        assert!(why(&tls).contains("/no/such/ca.pem"), "{}", why(&tls));
        // A file, but none of certificates.
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        tls.ca_file = Some(here.into());
        assert!(why(&tls).contains("no authority to trust"), "{}", why(&tls));
    }
}
