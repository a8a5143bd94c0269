//! Why a call has no answer, as the endpoint sees it: what Redis says, and what to do about it.

use std::time::Duration;

use redis::{RedisError, ServerError, Value};

use crate::breaker::Outcome;
use crate::{Address, Unavailable};

#[cfg(test)]
mod tests;

/// Longest text of a server's that is kept, in bytes.
const MAX_TEXT: usize = 300;

/// What a user must be allowed to do.
const FORBIDDEN: &str = "grant the user `+evalsha +eval +script|load +ping`, what the scripts \
                         call, and the keys";

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The breaker is open.
    Open,
    /// As many calls are under way as may be.
    Full(usize),
    /// No answer in time.
    TimedOut(Duration),
    /// The connection was lost while the call was under way.
    Lost(String),
    /// The server does not know the script; it has not run.
    NoScript,
    /// The slot is another server's: ask that one from now on; the script has not run.
    Moved(Address),
    /// The slot's keys are on their way to another server: ask that one, now; it has not run.
    Ask(Address),
    /// The server cannot answer at the moment.
    Unwell(String),
    /// The server is not (or not yet) one to ask.
    Useless(String),
    /// Not now, though the server is well: some of a slot's keys are here, and some there.
    TryAgain,
    /// The script failed, or answered with something else than integers.
    Bad(String),
}

impl Fault {
    /// What a server's error says.
    pub(crate) fn of(error: &ServerError) -> Self {
        Self::from_text(error.code(), error.details().unwrap_or_default())
    }

    /// From the first word of an error, and the rest.
    fn from_text(code: &str, detail: &str) -> Self {
        let says = |advice: &str| format!("{code} {}; {advice}", cut(detail));
        match code {
            "NOSCRIPT" => Self::NoScript,
            "MOVED" | "ASK" => match address_in(detail) {
                Some(address) if code == "MOVED" => Self::Moved(address),
                Some(address) => Self::Ask(address),
                None => Self::Bad(says("this names no server")),
            },
            "TRYAGAIN" => Self::TryAgain,
            "READONLY" => {
                Self::Useless(says("it is a replica: name the primary, or its Sentinels"))
            }
            "LOADING" => Self::Useless(says("it answers when its data is loaded")),
            "MASTERDOWN" => Self::Useless(says(
                "it is a replica without a primary: look at replication",
            )),
            "CLUSTERDOWN" => Self::Unwell(says("look at `CLUSTER INFO`: slots have no server")),
            "OOM" => Self::Unwell(says(
                "raise `maxmemory`, or give limits a Redis of their own (with `noeviction` or \
                 `volatile-ttl`)",
            )),
            "MISCONF" => Self::Unwell(says("its disk or its configuration needs repair")),
            "NOREPLICAS" => Self::Unwell(says("too few replicas follow (`min-replicas-to-write`)")),
            "BUSY" => Self::Unwell(says("a script is running for too long there")),
            "NOAUTH" => Self::Unwell(says("it wants a password: configure one")),
            "WRONGPASS" => Self::Unwell(says("check user and password")),
            "NOPERM" => Self::Unwell(says(FORBIDDEN)),
            // What 7.0 says of commands within a script.
            "ERR" if detail.contains("user executing the script can't") => {
                Self::Unwell(says(FORBIDDEN))
            }
            "UNKILLABLE" => Self::Unwell(says("a script is stuck there")),
            "CROSSSLOT" => Self::Bad(says("all keys of a call must have one hash tag")),
            // AUTH without any password set, on the server's side.
            "ERR" if detail.contains("AUTH") && detail.contains("without any password") => {
                Self::Unwell(says("it has no password: configure none"))
            }
            "ERR" if detail.contains("DB index is out of range") => {
                Self::Unwell(says("configure a database that it has"))
            }
            "ERR" if detail.contains("max number of clients") => {
                Self::Unwell(says("raise `maxclients`"))
            }
            _ => Self::Bad(format!("{code} {}", cut(detail))),
        }
    }

    /// How the breaker sees it.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::TimedOut(_) | Self::Unwell(_) => Outcome::Missed,
            Self::Useless(_) => Outcome::Useless,
            Self::Open | Self::Full(_) | Self::Lost(_) | Self::TryAgain => Outcome::Unknown,
            Self::NoScript | Self::Moved(_) | Self::Ask(_) | Self::Bad(_) => Outcome::Answered,
        }
    }

    /// In words.
    pub(crate) fn why(&self) -> String {
        Unavailable::from(self.clone()).to_string()
    }
}

impl From<&RedisError> for Fault {
    /// What the client says of a connection: only losses come this way.
    fn from(error: &RedisError) -> Self {
        Self::Lost(cut(&error.to_string()).to_owned())
    }
}

impl From<Fault> for Unavailable {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Open => Self::Open,
            Fault::TimedOut(budget) => Self::TimedOut(budget),
            Fault::Full(most) => Self::Server(format!("{most} calls are under way already")),
            Fault::Lost(why) => Self::Server(format!("the connection is lost: {why}")),
            Fault::Moved(to) | Fault::Ask(to) => {
                Self::Server(format!("its servers send on and on, at last to {to}"))
            }
            Fault::TryAgain => Self::Server("TRYAGAIN: a slot is being moved".to_owned()),
            Fault::Unwell(why) | Fault::Useless(why) => Self::Server(why),
            Fault::NoScript => Self::BadAnswer("NOSCRIPT to EVAL".to_owned()),
            Fault::Bad(what) => Self::BadAnswer(what),
        }
    }
}

/// A script's answer.
pub(crate) fn integers(value: Value) -> Result<Vec<i64>, Fault> {
    let other = |what: &str| Fault::Bad(format!("{what}, and not integers"));
    match value {
        Value::Int(number) => Ok(vec![number]),
        Value::Array(values) => values
            .into_iter()
            .map(|value| match value {
                Value::Int(number) => Ok(number),
                _ => Err(other("an array of something else")),
            })
            .collect(),
        Value::ServerError(error) => Err(Fault::of(&error)),
        Value::Nil => Err(other("nil")),
        Value::BulkString(_) | Value::SimpleString(_) | Value::Okay => Err(other("a string")),
        _ => Err(other("something else")),
    }
}

/// `<slot> <host>:<port>`. A server that does not know its own address leaves the host empty.
fn address_in(detail: &str) -> Option<Address> {
    let (_, address) = detail.split_once(' ')?;
    let (host, port) = address.trim().rsplit_once(':')?;
    let host = host.trim_matches(['[', ']']);
    Some(Address::new(host, port.parse().ok()?))
}

/// As much of a server's text as is kept.
fn cut(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
