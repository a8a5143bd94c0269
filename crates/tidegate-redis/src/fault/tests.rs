use super::*;

fn fault(text: &str) -> Fault {
    let (code, detail) = text.split_once(' ').unwrap_or((text, ""));
    Fault::from_text(code, detail)
}

const SAID: &[(&str, &str, Outcome)] = &[
    (
        "ERR The user executing the script can't run this command or subcommand script: x",
        "+evalsha",
        Outcome::Missed,
    ),
    (
        "READONLY You can't write against a read only replica.",
        "primary",
        Outcome::Useless,
    ),
    (
        "LOADING Redis is loading the dataset in memory",
        "loaded",
        Outcome::Useless,
    ),
    (
        "MASTERDOWN Link with MASTER is down",
        "replication",
        Outcome::Useless,
    ),
    (
        "CLUSTERDOWN Hash slot not served",
        "CLUSTER INFO",
        Outcome::Missed,
    ),
    (
        "OOM command not allowed when used memory",
        "maxmemory",
        Outcome::Missed,
    ),
    (
        "MISCONF Redis is configured to save RDB",
        "repair",
        Outcome::Missed,
    ),
    (
        "NOREPLICAS Not enough good replicas",
        "min-replicas",
        Outcome::Missed,
    ),
    (
        "BUSY Redis is busy running a script",
        "too long",
        Outcome::Missed,
    ),
    (
        "NOAUTH Authentication required.",
        "configure one",
        Outcome::Missed,
    ),
    (
        "WRONGPASS invalid username-password pair",
        "check user",
        Outcome::Missed,
    ),
    (
        "NOPERM this user has no permissions",
        "+evalsha",
        Outcome::Missed,
    ),
    ("ERR DB index is out of range", "database", Outcome::Missed),
    (
        "ERR max number of clients reached",
        "maxclients",
        Outcome::Missed,
    ),
    (
        "TRYAGAIN Multiple keys request",
        "being moved",
        Outcome::Unknown,
    ),
    ("CROSSSLOT Keys in request", "hash tag", Outcome::Answered),
    (
        "ERR user_script:1: attempt to index",
        "user_script",
        Outcome::Answered,
    ),
];

#[test]
fn what_redis_says_comes_with_what_to_do() {
    for &(text, advice, outcome) in SAID {
        let fault = fault(text);
        assert!(fault.why().contains(advice), "{}", fault.why());
        assert_eq!(fault.outcome(), outcome, "{text}");
    }
    assert_eq!(fault("NOSCRIPT No matching script."), Fault::NoScript);
}

#[test]
fn servers_name_others() {
    let to = |host: &str| Address::new(host, 6381);
    assert_eq!(
        fault("MOVED 3999 127.0.0.1:6381"),
        Fault::Moved(to("127.0.0.1"))
    );
    assert_eq!(
        fault("ASK 3999 host.example:6381"),
        Fault::Ask(to("host.example"))
    );
    assert_eq!(fault("MOVED 3999 ::1:6381"), Fault::Moved(to("::1")));
    assert_eq!(fault("MOVED 3999 :6381"), Fault::Moved(to("")));
    for text in [
        "MOVED",
        "MOVED 1",
        "MOVED 1 host",
        "ASK 1 host:x",
        "ASK 1 host:99999",
    ] {
        assert!(matches!(fault(text), Fault::Bad(_)), "{text}");
    }
}

#[test]
fn answers_are_integers() {
    let array = Value::Array(vec![Value::Int(1), Value::Int(-2)]);
    assert_eq!(integers(array), Ok(vec![1, -2]));
    assert_eq!(integers(Value::Int(7)), Ok(vec![7]));
    for value in [
        Value::Nil,
        Value::BulkString(b"1".to_vec()),
        Value::Array(vec![Value::Int(1), Value::Nil]),
        Value::Okay,
    ] {
        assert!(matches!(integers(value), Err(Fault::Bad(_))));
    }
}

#[test]
fn long_texts_are_cut_between_characters() {
    assert_eq!(cut("short"), "short");
    let long = "ä".repeat(200);
    assert_eq!(cut(&long).len(), 300);
    assert_eq!(cut(&format!("a{long}")).len(), 299);
}
