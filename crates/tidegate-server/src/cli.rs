//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// May this request go ahead now? A flow-control engine: gateway, simulator, policies.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway and the admin port of a policy.
    Serve(ServeArgs),
    /// Run requests against a policy in virtual time, and say who would have been limited.
    Simulate(SimulateArgs),
    /// Send a bounded load to an address of this machine, to try a policy out.
    Load(LoadArgs),
    /// Check a policy, or print the built-in one or its schema.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Where to: http://ADDRESS:PORT/PATH on this machine.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Connections at once (at most 1,000).
    #[arg(short, long, default_value_t = 8)]
    pub(crate) connections: usize,
    /// How long (at most 600).
    #[arg(short, long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Requests a second over all connections; without it, as fast as answers come.
    #[arg(short, long)]
    pub(crate) rate: Option<NonZeroU32>,
    /// The most requests.
    #[arg(short = 'n', long, default_value_t = 1_000_000)]
    pub(crate) requests: u64,
    /// A header of each request, as `name: value`; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The policy file; without it, the built-in policy.
    #[arg(short, long = "config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Traces, one JSON object a line; `-` for standard input.
    ///
    /// A request: `{"at_ns":0,"client_ip":"192.0.2.1","path":"/","headers":{"user-id":"7"}}`, with
    /// `method`, `host`, `permits`, `limits`, `timeout_ns` and `peek` besides. A reload:
    /// `{"at_ns":5,"policy":"other.yaml"}`. The end of the request of line 3:
    /// `{"at_ns":9,"release":3}`.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Write one decision a line, in JSON, here (`-` for standard output) instead of a table.
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,
    /// Draw a picture here (SVG): what came, what went ahead and when, what was refused.
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// How the table is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The policy file; without it, the built-in policy (see `tidegate policy default`).
    ///
    /// The file is watched: a change takes effect while requests go on, and a policy that is
    /// wrong is refused, with the old one staying in force.
    #[arg(short, long = "config", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Take over, without losing a connection, from the `tidegate serve` that was started with the
    /// same path, if one runs; and hand over to the next one. The path of a Unix socket.
    #[arg(long, value_name = "PATH")]
    pub(crate) hand_over: Option<PathBuf>,
    /// How the log is written to standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check a policy file. Exit status 0 if it is right, 1 if not, 2 if it cannot be read.
    Check(CheckArgs),
    /// Print the built-in policy, which `serve` runs without a file.
    Default,
    /// Print the JSON Schema of policy files.
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The policy file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For scripts.
    Json,
}
