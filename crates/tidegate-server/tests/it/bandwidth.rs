//! What the admin port tells of limits of bandwidth, and what `simulate` does not.

use crate::running::{Folder, Nginx, Serve, get, run, status, text};

// shows: A3 (metrics), G1 (metrics)
#[test]
fn what_a_bandwidth_lets_pass_is_in_the_metrics_and_beside_the_limit() {
    let nginx = Nginx::start();
    let folder = Folder::new();
    let policy = format!(
        "limits:\n  down: {{ bandwidth: 1KB/s, burst: 60B, after: 10B, key: client_ip }}\n\
         upstreams: {{ shop: {{ servers: [\"{}\"] }} }}\n\
         gateway:\n  listen: [\"127.0.0.1:0\"]\n\
         \x20 routes: [{{ id: all, upstream: shop, limits: [down] }}]\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\n",
        nginx.address
    );
    let serve = Serve::start(&folder.write("policy.yaml", &policy));
    let (head, body) = get(serve.gateway, "/", "");
    assert_eq!((status(&head), body.len()), (200, 100));
    // It refuses nothing, so that there is nothing to tell a client.
    assert!(!head.contains("ratelimit"), "{head}");
    let metric = |name: &str| serve.metric(name).unwrap();
    let bytes = |direction| {
        metric(&format!(
            "tidegate_bandwidth_bytes_total{{limit=\"down\",direction=\"{direction}\"}}"
        ))
    };
    assert!((bytes("responses") - 100.0).abs() < 0.5);
    assert!(bytes("requests").abs() < 0.5);
    // 10 were free, 60 there at once, and 30 came in 30 ms.
    let held_back = metric("tidegate_bandwidth_held_back_seconds_total{limit=\"down\"}");
    assert!((0.02..=0.03).contains(&held_back), "{held_back}");

    let (_, limits) = get(serve.admin, "/api/v1/limits", "");
    let limits: serde_json::Value = serde_json::from_str(&limits).unwrap();
    let limit = &limits["limits"][0];
    assert_eq!(limit["algorithm"]["burst"], 60);
    assert_eq!(limit["bandwidth"]["direction"], "responses");
    assert_eq!(limit["bandwidth"]["after"], 10);
    assert_eq!(limit["bandwidth"]["response_bytes"], 100);
    assert_eq!(limit["decisions"]["allowed"], 1);
}

// shows: G3 (simulate)
#[test]
fn simulate_says_that_it_does_not_simulate_a_bandwidth() {
    let folder = Folder::new();
    let policy = "limits:\n  down: { bandwidth: 1KB/s }\n  rate: { rate: 5/s }\n";
    let policy = folder.write("policy.yaml", policy);
    let trace = folder.write("trace.jsonl", "{\"at_ns\":0}\n");
    let output = run(&[
        "simulate",
        "-c",
        policy.to_str().unwrap(),
        "--decisions",
        "-",
        trace.to_str().unwrap(),
    ]);
    let told = text(&output.stderr);
    let note = "note: `down` is not simulated: it limits bandwidth, and a trace has no bodies\n";
    assert_eq!(told, note);
    assert!(text(&output.stdout).contains("\"limit\":\"rate\""));
}
