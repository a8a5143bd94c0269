//! Asks Sentinels where the primary is.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis::{Value, cmd};
use tokio::time::timeout;

use super::{Shared, connect};
use crate::{Address, Login};

/// Which part of the time to connect each Sentinel has to answer: one that is gone must not use
/// up the time in which others could.
const PART: u32 = 4;

/// Sentinels, and what they are asked for.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) primary: String,
    addresses: Vec<Address>,
    login: Login,
    /// Who answered last is asked first.
    first: AtomicUsize,
}

impl Sentinels {
    pub(super) fn new(primary: &str, sentinels: &[Address], login: &Login) -> Self {
        Self {
            primary: primary.to_owned(),
            addresses: sentinels.to_vec(),
            login: login.clone(),
            first: AtomicUsize::new(0),
        }
    }

    /// The address of the primary, as the first of them says that knows it.
    pub(super) async fn resolve(&self, shared: &Shared) -> Result<Address, String> {
        let first = self.first.load(Ordering::Relaxed);
        let limit = shared.config.connect_timeout / PART;
        let mut reasons = Vec::new();
        for turn in 0..self.addresses.len() {
            let which = (first + turn) % self.addresses.len();
            let sentinel = &self.addresses[which];
            let asked = timeout(limit, self.ask(shared, sentinel)).await;
            match asked.unwrap_or_else(|_| Err(format!("has not answered within {limit:?}"))) {
                Ok(address) => {
                    self.first.store(which, Ordering::Relaxed);
                    return Ok(address);
                }
                Err(why) => reasons.push(format!("{sentinel}: {why}")),
            }
        }
        let (primary, reasons) = (&self.primary, reasons.join("; "));
        Err(format!("no Sentinel says where {primary} is: {reasons}"))
    }

    async fn ask(&self, shared: &Shared, sentinel: &Address) -> Result<Address, String> {
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.primary);
        let tls = shared.sentinel_tls.as_ref();
        let answer = connect::question(shared, sentinel, &self.login, tls, &question).await?;
        address(&answer).ok_or_else(|| "knows no primary of that name".to_owned())
    }
}

/// `[host, port]`, both strings; nil for a name that is not known.
fn address(answer: &Value) -> Option<Address> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [Value::BulkString(host), Value::BulkString(port)] = parts.as_slice() else {
        return None;
    };
    let host = String::from_utf8(host.clone()).ok()?;
    let port = std::str::from_utf8(port).ok()?.parse().ok()?;
    Some(Address::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_host_and_a_port() {
        let text = |text: &str| Value::BulkString(text.into());
        let answer = Value::Array(vec![text("::1"), text("7")]);
        assert_eq!(address(&answer), Some(Address::new("::1", 7)));
        assert_eq!(address(&Value::Nil), None);
        assert_eq!(address(&Value::Array(vec![text("h"), text("x")])), None);
        assert_eq!(address(&Value::Array(vec![text("h")])), None);
    }
}
