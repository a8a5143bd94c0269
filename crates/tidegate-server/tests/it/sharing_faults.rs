//! A Redis that stands still, dies and comes back, under load of requests: nobody gets an error
//! for it, and nobody waits long.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::running::{Folder, Redis, Serve, get, status};

/// A call of Redis may take 25 ms, and there may be one for the rates and one for the places; the
/// rest is room for a busy machine.
const LONGEST: Duration = Duration::from_secs(1);
/// Most requests are answered before that: five calls may miss before Redis is asked no more.
const MOST: Duration = Duration::from_millis(250);

/// The first has both kinds of rates; and a share of the places, and single places.
const PATHS: [&str; 3] = ["/", "/share", "/slots"];

fn policy(redis: &Redis) -> String {
    format!(
        "limits:\n\
         \x20 exact: {{ rate: 400/s, burst: 100, store: exact }}\n\
         \x20 leased: {{ rate: 4000/s, burst: 1000, store: leased }}\n\
         \x20 share: {{ concurrency: 50, store: leased }}\n\
         \x20 slots: {{ concurrency: 50, store: exact }}\n\
         redis: {{ url: \"redis://{}\" }}\n\
         upstreams: {{ echo: {{ builtin: echo }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes:\n\
         \x20 - {{ id: share, match: {{ path: /share }}, upstream: echo, limits: [share] }}\n\
         \x20 - {{ id: slots, match: {{ path: /slots }}, upstream: echo, limits: [slots] }}\n\
         \x20 - {{ id: rates, upstream: echo, limits: [exact, leased] }}\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n",
        redis.address
    )
}

/// The answer to one request, when it had been made and how long it took.
struct Answer {
    path: &'static str,
    at: Instant,
    took: Duration,
    status: u16,
}

/// Requests one after the other, until it is over.
fn ask(gateway: SocketAddr, is_over: &AtomicBool) -> Vec<Answer> {
    let mut answers = Vec::new();
    for path in PATHS.into_iter().cycle() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let at = Instant::now();
        let (head, _) = get(gateway, path, "");
        answers.push(Answer {
            path,
            at,
            took: at.elapsed(),
            status: status(&head),
        });
        std::thread::park_timeout(Duration::from_millis(2));
    }
    answers
}

fn wait(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
}

// shows: C5
#[test]
fn a_redis_that_stands_still_or_dies_under_load_gives_nobody_an_error() {
    let mut redis = Redis::start();
    let folder = Folder::new();
    let file = folder.write("policy.yaml", &policy(&redis));
    let nodes = [Serve::start(&file), Serve::start(&file)];
    let is_over = AtomicBool::new(false);
    let (answers, times) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6)
            .map(|number| {
                let (gateway, is_over) = (nodes[number % 2].gateway, &is_over);
                scope.spawn(move || ask(gateway, is_over))
            })
            .collect();
        let mut times = vec![Instant::now()];
        let mut next = || times.push(Instant::now());
        wait(Duration::from_millis(500));
        next();
        redis.signal("-STOP");
        wait(Duration::from_secs(1));
        redis.signal("-CONT");
        next();
        wait(Duration::from_millis(800));
        next();
        redis.kill();
        wait(Duration::from_secs(1));
        redis.start_again();
        next();
        wait(Duration::from_millis(800));
        next();
        is_over.store(true, Ordering::Relaxed);
        let answers = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        (answers.collect::<Vec<_>>(), times)
    });
    for answer in &answers {
        assert!([200, 429].contains(&answer.status), "{}", answer.status);
        assert!(answer.took < LONGEST, "{:?}", answer.took);
    }
    let slow = answers.iter().filter(|answer| answer.took > MOST).count();
    assert!(slow * 100 < answers.len(), "{slow} of {}", answers.len());
    for (stage, from_to) in times.windows(2).enumerate() {
        for path in PATHS {
            let within = |answer: &&Answer| {
                answer.path == path && (from_to[0]..from_to[1]).contains(&answer.at)
            };
            let passed = answers.iter().filter(within);
            let passed = passed.filter(|answer| answer.status == 200).count();
            let longest = answers.iter().filter(within).map(|answer| answer.took);
            let longest = longest.max().unwrap();
            println!("stage {stage}, {path}: {passed} passed, none took longer than {longest:?}");
            // A single place is in Redis, or nowhere.
            let is_away = stage % 2 == 1;
            assert!(passed > 0 || is_away && path == "/slots");
        }
    }
}
