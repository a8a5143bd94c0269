//! What is noted of a request until it has ended.

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use http::header::{AUTHORIZATION, HOST, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use smallvec::SmallVec;
use tidegate::Timestamp;
use tidegate_http::access_log::{Asked, Decided, Ended, Entry, Upstream};
use tidegate_node::Admission;

use super::lines::Lines;
use crate::settings::Settings;

/// The status, in the log only, of a request whose client went away before there was an answer;
/// nginx's.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// What is noted of the request that a client connection is busy with; nothing where requests
/// are not logged. When it is dropped, a request that has not ended is logged as one whose client
/// has gone.
pub(crate) struct Recorder {
    lines: Rc<Lines>,
    peer: IpAddr,
    record: RefCell<Option<Box<Record>>>,
}

/// What is noted of one request.
pub(crate) struct Record {
    settings: Rc<Settings>,
    started: Instant,
    client: IpAddr,
    method: Method,
    uri: Uri,
    version: Version,
    host: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    authorization: Option<HeaderValue>,
    /// Of the headers that are logged: which, and its value.
    headers: SmallVec<[(usize, HeaderValue); 2]>,
    pub(crate) id: Option<HeaderValue>,
    route: Text,
    decision: Option<Decided>,
    limit: Text,
    remaining: Option<u64>,
    /// How long it stood in line.
    in_line: Duration,
    /// How long it is held back after that.
    delay: Duration,
    upstream: Text,
    server: Text,
    asked_at: Option<Instant>,
    server_duration: Option<Duration>,
    status: Option<StatusCode>,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    timed_out: bool,
}

/// A name, mostly short.
type Text = SmallVec<[u8; 32]>;

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty())
}

impl Recorder {
    pub(crate) const fn new(lines: Rc<Lines>, peer: IpAddr) -> Self {
        Self {
            lines,
            peer,
            record: RefCell::new(None),
        }
    }

    /// A request has come: from now on it is noted, if it may be logged.
    pub(crate) fn begin<B>(&self, request: &Request<B>, settings: &Rc<Settings>, now: Instant) {
        if settings.access_log.is_some() {
            let mut record = self.record.borrow_mut();
            if record.is_none() {
                *record = Some(Box::new(Record::new(request, settings, self.peer, now)));
            }
        }
    }

    /// Notes something, if anything is noted.
    #[inline]
    pub(crate) fn note(&self, note: impl FnOnce(&mut Record)) {
        if let Some(record) = &mut *self.record.borrow_mut() {
            note(record);
        }
    }

    /// Whether a request is being noted.
    pub(crate) fn is_noting(&self) -> bool {
        self.record.borrow().is_some()
    }

    /// The request has ended.
    pub(crate) fn end(&self, ended: Ended) {
        let record = self.record.borrow_mut().take();
        if let Some(record) = record {
            record.write(self.peer, ended, &self.lines);
        }
    }

    /// A request came that could not be read, and was answered with `status`.
    pub(crate) fn unreadable(&self, settings: &Settings, status: StatusCode) {
        let Some(rules) = &settings.access_log else {
            return;
        };
        let entry = Entry {
            at: wall_time(),
            client: self.peer,
            peer: self.peer,
            asked: None,
            status: status.as_u16(),
            bytes_sent: 0,
            bytes_received: 0,
            duration: Duration::ZERO,
            waited: Duration::ZERO,
            upstream: None,
            route: None,
            decision: None,
            limit: None,
            remaining: None,
            id: None,
            ended: Ended::Unreadable,
        };
        self.lines.push(rules, &entry);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end(Ended::ClientGone);
    }
}

impl Record {
    fn new<B>(
        request: &Request<B>,
        settings: &Rc<Settings>,
        peer: IpAddr,
        started: Instant,
    ) -> Self {
        let headers = request.headers();
        let rules = settings.access_log.as_ref();
        let wants_user = rules.is_some_and(super::Rules::wants_user);
        Self {
            settings: Rc::clone(settings),
            started,
            client: peer,
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            host: headers.get(HOST).cloned(),
            referer: headers.get(REFERER).filter(|_| wants_user).cloned(),
            user_agent: headers.get(USER_AGENT).filter(|_| wants_user).cloned(),
            authorization: headers.get(AUTHORIZATION).filter(|_| wants_user).cloned(),
            headers: rules
                .map(|rules| logged(rules, headers))
                .unwrap_or_default(),
            id: None,
            route: Text::new(),
            decision: None,
            limit: Text::new(),
            remaining: None,
            in_line: Duration::ZERO,
            delay: Duration::ZERO,
            upstream: Text::new(),
            server: Text::new(),
            asked_at: None,
            server_duration: None,
            status: None,
            bytes_sent: 0,
            bytes_received: 0,
            timed_out: false,
        }
    }

    /// Whom it is for, and which route it takes.
    pub(crate) fn takes(&mut self, client: IpAddr, route: Option<&str>) {
        self.client = client;
        self.route = Text::from_slice(route.unwrap_or_default().as_bytes());
    }

    /// It waits for an answer of its limits.
    pub(crate) fn waits(&mut self) {
        self.decision = Some(Decided::Waiting);
    }

    /// Its limits have answered.
    pub(crate) fn decided(&mut self, admission: &Admission<'_>) {
        self.in_line = admission.waited();
        self.delay = admission.delay();
        let would_refuse = (admission.shadow().iter()).find(|one| one.decision.is_denied());
        let slowest = (admission.applied().iter()).max_by_key(|one| one.decision.delay());
        let (decision, by) = if !admission.is_allowed() {
            (Decided::Denied, admission.told())
        } else if !self.delay.is_zero() {
            (Decided::Delayed, slowest)
        } else if !self.in_line.is_zero() {
            (Decided::Delayed, admission.told())
        } else if would_refuse.is_some() {
            (Decided::Shadow, would_refuse)
        } else {
            (Decided::Allowed, admission.told())
        };
        // Of a request that no limit was asked about there is nothing to say.
        self.decision = by.map(|_| decision);
        if let Some(by) = by {
            self.limit = Text::from_slice(by.limit.name().as_bytes());
            self.remaining = Some(by.decision.remaining);
        }
    }

    /// A server is looked for.
    pub(crate) fn asks(&mut self, upstream: &str) {
        self.upstream = Text::from_slice(upstream.as_bytes());
        self.server.clear();
        self.server_duration = None;
        self.asked_at = Some(Instant::now());
    }

    /// This one is asked.
    pub(crate) fn asks_server(&mut self, server: &str) {
        self.server = Text::from_slice(server.as_bytes());
    }

    /// The header of its answer is there.
    pub(crate) fn server_answers(&mut self) {
        self.server_duration = self.asked_at.map(|asked_at| asked_at.elapsed());
    }

    /// The answer begins.
    pub(crate) fn answers(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// A deadline has passed.
    pub(crate) fn timed_out(&mut self) {
        self.timed_out = true;
    }

    /// Whether an answer to it has a body.
    pub(crate) fn wants_body(&self) -> bool {
        self.method != Method::HEAD
    }

    fn write(&self, peer: IpAddr, ended: Ended, lines: &Lines) {
        let Some(rules) = &self.settings.access_log else {
            return;
        };
        let ended = match ended {
            Ended::ClientGone if self.timed_out => Ended::TimedOut,
            ended => ended,
        };
        let duration = self.started.elapsed();
        let waited = match self.decision {
            Some(Decided::Waiting) => duration,
            // It may have gone away before its time had come.
            _ => (self.in_line + self.delay).min(duration),
        };
        let headers: SmallVec<[(&str, &[u8]); 2]> = (self.headers.iter())
            .map(|(index, value)| (rules.headers[*index].as_str(), value.as_bytes()))
            .collect();
        let referer = self.referer.as_ref().map(HeaderValue::as_bytes);
        let absolute;
        let target = match self.uri.path_and_query() {
            Some(target) if self.uri.authority().is_none() => target.as_str(),
            _ => {
                absolute = self.uri.to_string();
                &absolute
            }
        };
        let entry = Entry {
            at: wall_time(),
            client: self.client,
            peer,
            asked: Some(Asked {
                method: self.method.as_str(),
                target: rules.hide.in_target(target),
                version: self.version,
                host: self.host.as_ref().map(HeaderValue::as_bytes),
                referer: referer.map(|referer| rules.hide.in_bytes(referer)),
                user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
                authorization: self.authorization.as_ref().map(HeaderValue::as_bytes),
                headers: &headers,
            }),
            status: self
                .status
                .map_or(CLIENT_CLOSED_REQUEST, |status| status.as_u16()),
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            duration,
            waited,
            upstream: text(&self.upstream).map(|name| Upstream {
                name,
                server: text(&self.server).unwrap_or("-"),
                duration: self.server_duration,
            }),
            route: text(&self.route),
            decision: self.decision,
            limit: text(&self.limit),
            remaining: self.remaining,
            id: self.id.as_ref().map(HeaderValue::as_bytes),
            ended,
        };
        lines.push(rules, &entry);
    }
}

/// The values of the headers that are logged.
fn logged(rules: &super::Rules, headers: &HeaderMap) -> SmallVec<[(usize, HeaderValue); 2]> {
    let names = rules.headers.iter().enumerate();
    names
        .filter_map(|(index, name)| Some((index, headers.get(name)?.clone())))
        .collect()
}

/// What the clock on the wall says: a log is read beside others.
fn wall_time() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what is noted: it may be secret.
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}
