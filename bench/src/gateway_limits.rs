//! What limits cost the gateway: none, one and five of them, in turn.

use crate::gateway::{self, Folder, Server};
use crate::pairs::spread;

/// Pairs of runs: the difference is small beside what two runs of the same differ by.
const ROUNDS: usize = 10;
const SECONDS: u64 = 3;

/// Prints the row if its title has `filter` in it.
pub(crate) fn row(
    filter: &str,
    folder: &Folder,
    upstream: std::net::SocketAddr,
) -> Result<(), String> {
    let title = "limits, on against off";
    if !title.contains(filter) {
        return Ok(());
    }
    let sides: Vec<Server> = [0, 1, 5]
        .into_iter()
        .map(|count| start(folder, upstream, count))
        .collect::<Result<_, _>>()?;
    for side in &sides {
        gateway::wrk(side.address(), 1)?;
    }
    let mut rounds = vec![Vec::new(); sides.len()];
    for _ in 0..ROUNDS {
        for (side, rounds) in sides.iter().zip(&mut rounds) {
            rounds.push(cpu_per_million(side)?);
        }
    }
    let [off, one, five] = rounds.as_slice() else {
        return Err("three sides".to_owned());
    };
    let more = |than: &[f64]| {
        let more: Vec<f64> = than.iter().zip(off).map(|(on, off)| on - off).collect();
        let (least, middle, most) = spread(&more);
        format!("{middle:+.2} ({least:+.2}..{most:+.2})")
    };
    println!(
        "{title:<20} none {:.2} | one {}, wanted +0.40 | five {}, wanted +1.20 CPU s per 1M, ten \
         pairs",
        spread(off).1,
        more(one),
        more(five),
    );
    Ok(())
}

fn start(folder: &Folder, upstream: std::net::SocketAddr, count: usize) -> Result<Server, String> {
    // Each counts by something else, and none refuses.
    let keys = [
        "[client_ip]",
        "[path]",
        "[host, method]",
        "[]",
        "[\"header:host\", client_ip]",
    ];
    let limits: Vec<String> = keys[..count]
        .iter()
        .enumerate()
        .map(|(at, key)| format!("  l{at}: {{ rate: 1000000/s, burst: 1000000, key: {key} }}\n"))
        .collect();
    let names: Vec<String> = (0..count).map(|at| format!("l{at}")).collect();
    let limits = match limits.as_slice() {
        [] => "{}\n".to_owned(),
        limits => format!("\n{}", limits.concat()),
    };
    gateway::start_policy(folder, &format!("limits-{count}"), |address| {
        format!(
            "limits: {limits}upstreams: {{ up: {{ servers: [\"{upstream}\"] }} }}\n\
             gateway:\n  listen: [\"{address}\"]\n  rate_limit_headers: false\n\
             \x20 routes: [{{ id: all, upstream: up, limits: [{}] }}]\n",
            names.join(", ")
        )
    })
}

fn cpu_per_million(server: &Server) -> Result<f64, String> {
    let before = server.cpu_seconds()?;
    let answers = gateway::wrk(server.address(), SECONDS)?.all_passed()?;
    Ok((server.cpu_seconds()? - before) / answers * 1e6)
}
