//! nginx and the gateway, each told in its words.

use std::net::SocketAddr;

use crate::running::{Folder, Nginx, Serve};

/// Both, started on free ports.
#[derive(Debug)]
pub(crate) struct Sides {
    pub(crate) nginx: Nginx,
    pub(crate) gateway: Serve,
    _folder: Folder,
}

/// What nginx tells in its answers: what its limits said, and the time of the answer and of the
/// request.
const TELLS: &str = "add_header x-limit \"$limit_req_status$limit_conn_status\" always;\n\
    add_header x-time \"$msec $request_time\" always;\n";

impl Sides {
    /// What stands in nginx's `http` and in its server; and a policy whose gateway listens
    /// nowhere yet.
    pub(crate) fn start(http: &str, server: &str, policy: &str) -> Self {
        let gateway = "gateway:\n  listen: [\"127.0.0.1:0\"]\n  \
                       debug_header: { from: 127.0.0.0/8 }\n";
        let policy = policy.replace("gateway:\n", gateway);
        let policy = format!("{policy}admin: {{ listen: \"127.0.0.1:0\" }}\n");
        let folder = Folder::new();
        let policy = folder.write("policy.yaml", &policy);
        Self {
            nginx: Nginx::with(&format!("{TELLS}{http}"), server),
            gateway: Serve::start(&policy),
            _folder: folder,
        }
    }

    /// nginx's, and the gateway's.
    pub(crate) const fn addresses(&self) -> [SocketAddr; 2] {
        [self.nginx.address, self.gateway.gateway]
    }
}
