//! An endpoint that speaks TLS.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tidegate_redis::{Endpoint, EndpointConfig};

use crate::endpoint::{count, start, until, why};
use crate::server::{RedisServer, free_address};

/// An authority, and a certificate that it signed: for 127.0.0.1 and for clients.
struct Certificates(PathBuf);

impl Certificates {
    fn make(name: &str) -> Self {
        let folder = format!("tidegate-certificates-{}-{name}", std::process::id());
        let made = Self(std::env::temp_dir().join(folder));
        std::fs::create_dir_all(&made.0).unwrap();
        let extensions = "subjectAltName=IP:127.0.0.1,DNS:localhost";
        std::fs::write(made.file("extensions"), extensions).unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(
            &made.0,
            &format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"),
        );
        openssl(
            &made.0,
            &format!("req {key} -keyout key.pem -out request -subj /CN=redis"),
        );
        openssl(
            &made.0,
            "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -extfile extensions -out certificate.pem",
        );
        made
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed (`cargo xtask setup`)");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A server, and its URL by TLS.
fn serve(certificates: &Certificates, clients: &str) -> (RedisServer, String) {
    let port = free_address().port().to_string();
    let file = |name| certificates.file(name).display().to_string();
    let server = RedisServer::start_with(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &file("certificate.pem"),
        "--tls-key-file",
        &file("key.pem"),
        "--tls-ca-cert-file",
        &file("ca.pem"),
        "--bind",
        "127.0.0.1 127.0.0.2",
        "--tls-auth-clients",
        clients,
    ]);
    (server, format!("rediss://127.0.0.1:{port}"))
}

fn config(url: &str, certificates: &Certificates) -> EndpointConfig {
    let mut config = EndpointConfig::single(url).unwrap();
    let tls = config.tls.as_mut().unwrap();
    tls.ca_file = Some(certificates.file("ca.pem"));
    config
}

async fn fails_with(config: EndpointConfig, expected: &[&str]) {
    let endpoint = Endpoint::start(config, &[]).unwrap();
    until(&endpoint, |endpoint| {
        endpoint.health().counts.failed_connects > 0
    })
    .await;
    let why = why(&endpoint);
    assert!(
        expected.iter().any(|expected| why.contains(expected)),
        "{why}"
    );
}

#[tokio::test]
async fn an_authority_of_its_own_is_trusted_and_no_other() {
    let certificates = Certificates::make("server");
    let (_server, url) = serve(&certificates, "no");
    let endpoint = start(config(&url, &certificates)).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));

    let others = Certificates::make("others");
    fails_with(config(&url, &others), &["invalid peer certificate"]).await;
    // The certificate is for the address, not for any other way to it.
    let elsewhere = url.replace("127.0.0.1", "127.0.0.2");
    fails_with(
        config(&elsewhere, &certificates),
        &["not valid for name", "NotValidForName"],
    )
    .await;
}

#[tokio::test]
async fn a_client_shows_its_certificate() {
    let certificates = Certificates::make("client");
    let (_server, url) = serve(&certificates, "yes");
    let nobody = config(&url, &certificates);
    fails_with(
        nobody.clone(),
        &["CertificateRequired", "certificate required", "lost"],
    )
    .await;
    let mut somebody = nobody;
    let pair = (
        certificates.file("certificate.pem"),
        certificates.file("key.pem"),
    );
    somebody.tls.as_mut().unwrap().client_certificate = Some(pair);
    let endpoint = start(somebody).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));
}
