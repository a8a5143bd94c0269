use super::*;

fn address(host: &str, port: u16) -> Address {
    Address::new(host, port)
}

fn why<T: fmt::Debug>(result: Result<T, ConfigError>) -> String {
    result.expect_err("wrong").to_string()
}

#[test]
fn a_url_says_all_of_one_server() {
    let config = EndpointConfig::single("rediss://us%40er:p%2Fw%23@[::1]:7/3").expect("right");
    assert_eq!(config.topology, Topology::Single(address("::1", 7)));
    assert_eq!(config.login.user.as_deref(), Some("us@er"));
    assert_eq!(config.login.password.as_deref(), Some("p/w#"));
    assert_eq!((config.database, config.tls.is_some()), (3, true));
    let config = EndpointConfig::single("redis://:pw@host").expect("right");
    assert_eq!(config.topology, Topology::Single(address("host", 6379)));
    assert_eq!(config.login.user, None);
    assert_eq!((config.database, config.tls), (0, None));
}

#[test]
fn wrong_urls_are_told_without_their_passwords() {
    for url in [
        "http://user:pa55@host",
        "user:pa55@host",
        "redis://user:pa55@host/x",
        "redis://user:pa55@host:99999",
        "redis://user:pa@55@host/-1",
        "redis://user:pa55@host#insecure",
        "redis://user:pa55@/0",
        "redis://user:pa55@0.0.0.0",
        "unix:///pa55@host",
    ] {
        let why = why(EndpointConfig::single(url));
        assert!(!why.contains("55"), "{why}");
        assert!(why.contains("redis://[[user]:password@]host"), "{why}");
    }
}

#[test]
fn nothing_prints_a_password() {
    let config = EndpointConfig::single("redis://user:pa55@host").expect("right");
    let sentinel = EndpointConfig::sentinel("m", &["redis://:pa55@host"]).expect("right");
    for text in [format!("{config:?}"), format!("{sentinel:#?}")] {
        assert!(!text.contains("pa55") && text.contains("***"), "{text}");
    }
}

#[test]
fn urls_of_several_servers_agree() {
    let urls = ["redis://u:p@a:1", "redis://b:2", "redis://u:p@c"];
    let config = EndpointConfig::cluster(&urls).expect("right");
    let seeds = vec![address("a", 1), address("b", 2), address("c", 6379)];
    assert_eq!(config.topology, Topology::Cluster { seeds });
    assert_eq!(config.login.password.as_deref(), Some("p"));
    assert_eq!(config.validate(), Ok(()));

    let wrong = why(EndpointConfig::cluster(&["redis://a", "rediss://b"]));
    assert!(wrong.contains("at once"), "{wrong}");
    let wrong = why(EndpointConfig::cluster(&["redis://:a@a", "redis://:b@b"]));
    assert!(wrong.contains("another login"), "{wrong}");
    assert!(why(EndpointConfig::cluster(&["redis://a/1"])).contains("databases"));
    assert!(why(EndpointConfig::cluster(&[])).contains("no URL"));
}

#[test]
fn sentinels_have_a_login_and_a_port_of_their_own() {
    let config = EndpointConfig::sentinel("m", &["rediss://:p@a", "rediss://b:2"]);
    let config = config.expect("right");
    let expected = Topology::Sentinel {
        primary: "m".into(),
        sentinels: vec![address("a", 26379), address("b", 2)],
        login: Login {
            user: None,
            password: Some("p".into()),
        },
        tls: true,
    };
    assert_eq!(config.topology, expected);
    assert_eq!((config.login, config.tls), (Login::default(), None));
    assert!(why(EndpointConfig::sentinel("", &["redis://a"])).contains("name"));
}

#[test]
fn fields_are_checked() {
    let with = |change: fn(&mut EndpointConfig)| {
        let mut config = EndpointConfig::cluster(&["redis://a"]).expect("right");
        change(&mut config);
        why(config.validate())
    };
    assert!(with(|config| config.connections = 0).contains("1 to 64"));
    assert!(with(|config| config.connections = 65).contains("1 to 64"));
    assert!(with(|config| config.max_in_flight = 0).contains("under way"));
    assert!(with(|config| config.max_in_flight = 70_000).contains("under way"));
    assert!(with(|config| config.database = 1).contains("only database 0"));
    assert!(with(|config| config.connect_timeout = Duration::ZERO).contains("longer"));
    assert!(with(|config| config.login.user = Some("u".into())).contains("password"));
    let nobody = |config: &mut EndpointConfig| {
        config.topology = Topology::Cluster { seeds: Vec::new() };
    };
    assert!(with(nobody).contains("1 to 1000"));
}
