//! Certificates of a test's own, and servers that speak TLS with them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::server::{RedisServer, free_address};

/// An authority, and a certificate that it signed: for 127.0.0.1 and for clients.
#[derive(Debug)]
pub(crate) struct Certificates(PathBuf);

impl Certificates {
    pub(crate) fn make(name: &str) -> Self {
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

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What makes a server speak TLS at a port; whether it asks clients for a certificate.
    pub(crate) fn arguments(&self, port: &str, clients: &str) -> Vec<String> {
        let file = |name| self.file(name).display().to_string();
        let arguments = [
            ("--tls-port", port.to_owned()),
            ("--tls-cert-file", file("certificate.pem")),
            ("--tls-key-file", file("key.pem")),
            ("--tls-ca-cert-file", file("ca.pem")),
            ("--tls-auth-clients", clients.to_owned()),
        ];
        arguments
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }

    /// A server, and its URL by TLS.
    pub(crate) fn serve(&self, clients: &str, further: &[&str]) -> (RedisServer, String) {
        let port = free_address().port().to_string();
        let arguments = self.arguments(&port, clients);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let server = RedisServer::start_with(&[&arguments, further].concat());
        (server, format!("rediss://127.0.0.1:{port}"))
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
