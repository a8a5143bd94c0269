//! A limit that several machines share, at the gateway: tidegate, which leases it, against nginx
//! with a script in Lua that asks Redis about each request.
//!
//! What counts is the processor time of the proxy and of its Redis together. All is allowed. The
//! rival's bucket has what a shared one needs and no more: Redis's time, and one round trip.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::gateway::{Folder, Server, free_address, nginx, start, start_tidegate_with, wrk};
use crate::pairs::{ratios, spread};
use crate::shared::start_redis;

const SECONDS: u64 = 3;
const TARGET: f64 = 0.35;

/// Debian's modules of nginx, as its package links them.
const MODULES: [&str; 2] = [
    "/usr/lib/nginx/modules/ndk_http_module.so",
    "/usr/lib/nginx/modules/ngx_http_lua_module.so",
];

/// KEYS[1]: a hash of tokens and the time; ARGV: burst, tokens a second.
const BUCKET: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local burst, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local tokens = burst
if kept[1] then tokens = math.min(burst, kept[1] + (now - kept[2]) * rate / 1000000) end
local passes = tokens >= 1
if passes then tokens = tokens - 1 end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], 10000)
return passes and 1 or 0";

/// A proxy and its Redis.
struct Side {
    proxy: Server,
    redis: Server,
}

/// CPU seconds per million requests, and requests a second.
#[derive(Clone, Copy)]
struct Round {
    proxy: f64,
    redis: f64,
    per_second: f64,
}

impl Round {
    fn in_all(&self) -> f64 {
        self.proxy + self.redis
    }
}

/// Prints the row if its title has `filter` in it.
pub(crate) fn row(
    filter: &str,
    rounds: usize,
    folder: &Folder,
    upstream: SocketAddr,
) -> Result<(), String> {
    let title = "shared by machines";
    if !title.contains(filter) {
        return Ok(());
    }
    if let Some(missing) = MODULES.iter().find(|module| !Path::new(module).exists()) {
        println!(
            "{title:<20} left out: no {missing} (apt-get install libnginx-mod-http-lua \
             lua-nginx-redis)"
        );
        return Ok(());
    }
    let sides = [
        start_nginx(folder, upstream)?,
        start_tidegate(folder, upstream)?,
    ];
    for side in &sides {
        wrk(side.proxy.address(), 2)?.all_passed()?;
    }
    let mut measured = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (side, rounds) in sides.iter().zip(&mut measured) {
            rounds.push(side.measure()?);
        }
    }
    let [nginx, tidegate] = measured;
    let all = |rounds: &[Round]| rounds.iter().map(Round::in_all).collect::<Vec<_>>();
    let (least, middle, most) = spread(&ratios(&all(&tidegate), &all(&nginx)));
    println!(
        "{title:<20} nginx + Lua + Redis {} | tidegate {}  ratio {middle:.2} \
         ({least:.2}..{most:.2})  <= {TARGET}: {}",
        described(&nginx),
        described(&tidegate),
        if middle <= TARGET { "met" } else { "missed" },
    );
    Ok(())
}

fn described(rounds: &[Round]) -> String {
    let median = |of: fn(&Round) -> f64| spread(&rounds.iter().map(of).collect::<Vec<_>>()).1;
    format!(
        "{:.2} + {:.2} ({:.0}/s)",
        median(|round| round.proxy),
        median(|round| round.redis),
        median(|round| round.per_second)
    )
}

impl Side {
    fn measure(&self) -> Result<Round, String> {
        let before = [self.proxy.cpu_seconds()?, self.redis.cpu_seconds()?];
        let requests = wrk(self.proxy.address(), SECONDS)?.all_passed()?;
        let per_million = |after: f64, before: f64| (after - before) / requests * 1e6;
        Ok(Round {
            proxy: per_million(self.proxy.cpu_seconds()?, before[0]),
            redis: per_million(self.redis.cpu_seconds()?, before[1]),
            per_second: requests / SECONDS as f64,
        })
    }
}

fn start_nginx(folder: &Folder, upstream: SocketAddr) -> Result<Side, String> {
    let redis = start_redis()?;
    let loaded = Command::new("redis-cli")
        .args(["-p", &redis.address().port().to_string()])
        .args(["SCRIPT", "LOAD", BUCKET])
        .output()
        .map_err(|error| format!("redis-cli: {error}"))?;
    let digest = String::from_utf8_lossy(&loaded.stdout).trim().to_owned();
    let address = free_address()?;
    let port = redis.address().port();
    let http = format!(
        "upstream up {{ server {upstream}; keepalive 128; keepalive_requests 100000000; }}\n\
         proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
         proxy_set_header Host $http_host;\n\
         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
         server {{ listen {address} reuseport; location / {{ access_by_lua_block {{\n\
         local redis = require('nginx.redis'):new()\n\
         redis:set_timeout(1000)\n\
         if not redis:connect('127.0.0.1', {port}) then return ngx.exit(500) end\n\
         local passes = redis:evalsha('{digest}', 1, 'limit:' .. ngx.var.remote_addr, \
         1000000, 1000000)\n\
         if not passes then return ngx.exit(500) end\n\
         redis:set_keepalive(60000, 256)\n\
         if passes == 0 then return ngx.exit(429) end\n\
         }} proxy_pass http://up; }} }}"
    );
    let modules = MODULES.map(|module| format!("load_module {module};\n"));
    let modules = modules.concat();
    let command = nginx(folder, "nginx-lua", 2, &modules, &http)?;
    Ok(Side {
        proxy: start(command, address)?,
        redis,
    })
}

fn start_tidegate(folder: &Folder, upstream: SocketAddr) -> Result<Side, String> {
    let redis = start_redis()?;
    let limit = "rate: 1000000/s, burst: 1000000, store: leased";
    let further = format!("redis: {{ url: \"redis://{}\" }}\n", redis.address());
    Ok(Side {
        proxy: start_tidegate_with(folder, upstream, "leased", limit, &further)?,
        redis,
    })
}
