//! An endpoint that speaks TLS.

use tidegate_redis::{Endpoint, EndpointConfig, Login, Tls};

use crate::certificates::Certificates;
use crate::cluster::Cluster;
use crate::endpoint::{count, start, until, why};
use crate::server::{RedisServer, free_address};

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
    let (_server, url) = certificates.serve("no", &["--bind", "127.0.0.1 127.0.0.2"]);
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
    let (_server, url) = certificates.serve("yes", &[]);
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

#[tokio::test]
async fn a_cluster_that_speaks_tls_sends_on_by_tls() {
    let certificates = Certificates::make("cluster");
    let cluster = Cluster::start_with(Some(&certificates));
    let urls: Vec<_> = cluster.urls.iter().map(String::as_str).collect();
    let mut config = EndpointConfig::cluster(&urls[..1]).unwrap();
    config.tls.as_mut().unwrap().ca_file = Some(certificates.file("ca.pem"));
    let endpoint = start(config).await;
    // One server was named: the others are known by the port at which they speak TLS.
    for number in 0..100 {
        assert_eq!(count(&endpoint, &format!("k{number}")).await, Ok(1));
    }
    let health = endpoint.health();
    let of_tls = |address: &str| urls.iter().any(|url| url.ends_with(address));
    assert_eq!(health.servers.len(), 3);
    assert!(health.servers.iter().all(|server| of_tls(&server.server)));
}

#[tokio::test]
async fn sentinels_and_primary_may_each_want_tls_and_a_login() {
    let certificates = Certificates::make("sentinels");
    let (primary, primary_url) = certificates.serve("no", &[]);
    let port = primary_url.rsplit(':').next().unwrap();
    primary.command(&[
        "ACL",
        "SETUSER",
        "limits",
        "on",
        ">of-primary",
        "~*",
        "+@all",
    ]);
    primary.command(&["ACL", "SETUSER", "default", "off"]);
    let sentinel_port = free_address().port().to_string();
    let arguments = certificates.arguments(&sentinel_port, "no");
    let mut arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    arguments.push("--sentinel");
    let file = format!("sentinel monitor limits 127.0.0.1 {port} 1\n");
    let sentinel = RedisServer::start_with_file(free_address(), &file, &arguments);
    sentinel.command(&["ACL", "SETUSER", "asker", "on", ">of-sentinel", "+@all"]);
    sentinel.command(&["ACL", "SETUSER", "default", "off"]);

    let config = |of_sentinel: &str, of_primary: &str| {
        let url = format!("rediss://asker:{of_sentinel}@127.0.0.1:{sentinel_port}");
        let mut config = EndpointConfig::sentinel("limits", &[&url]).unwrap();
        config.login = Login {
            user: Some("limits".to_owned()),
            password: Some(of_primary.to_owned()),
        };
        let mut tls = Tls::default();
        tls.ca_file = Some(certificates.file("ca.pem"));
        config.tls = Some(tls);
        config
    };
    let sentinels_refuse = config("of-primary", "of-primary");
    fails_with(sentinels_refuse, &["no Sentinel says where limits is"]).await;
    fails_with(config("of-sentinel", "of-sentinel"), &["WRONGPASS"]).await;
    let endpoint = start(config("of-sentinel", "of-primary")).await;
    assert_eq!(count(&endpoint, "k").await, Ok(1));
}
