//! Answers that a policy writes itself: `reject` and `degrade`.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use super::check_count;
use super::scalars::number;
use crate::file::{AnswerFile, Field, Map};
use crate::key::is_token;
use crate::on_limit::{Answer, Page};
use crate::quote::quote;
use crate::report::{Finding, Report};
use crate::source::Span;

/// Most fields of one answer's header.
const MAX_HEADERS: usize = 64;
/// Longest value of one.
const MAX_VALUE_BYTES: usize = 4_096;
/// Most bodies of one answer.
const MAX_PAGES: usize = 16;
/// Largest body of an answer.
const MAX_PAGE_BYTES: u64 = 1 << 20;
/// What messages frame themselves with, and what the limits say: not a policy's to write.
const NOT_OURS: [&str; 9] = [
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Media types by the ending of a file's name.
const ENDINGS: [(&str, &str); 7] = [
    ("html", HTML),
    ("htm", HTML),
    ("json", JSON),
    ("txt", TEXT),
    ("xml", "application/xml"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
];
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// To refuse.
    Reject,
    /// To say less than would have been said.
    Degrade,
}

/// The answer; what is wrong about it is reported.
pub(super) fn compile(file: &AnswerFile, kind: Kind, report: &Report<'_>) -> Option<Answer> {
    let (range, default) = match kind {
        Kind::Reject => (400..=599, u64::from(Answer::REFUSED)),
        Kind::Degrade => (200..=599, 200),
    };
    let status = number(&file.status, "status", range, report).unwrap_or(default);
    let mut pages = Vec::new();
    for (field, content_type) in [(&file.json, JSON), (&file.html, HTML), (&file.text, TEXT)] {
        pages.extend(inline(field, content_type, report));
    }
    for (name, place) in file.file.items() {
        pages.extend(of_file(name, place, report).map(|page| (page, place)));
    }
    check_count(pages.len(), MAX_PAGES, "bodies", file.file.place(), report);
    check_types(&pages, report);
    if status == 204 || status == 304 {
        let place = pages.first().map(|&(_, place)| place);
        if let Some(place) = place {
            let message = format!("an answer of status {status} has no body");
            report.push(Finding::error(place, message).help("write `status: 200`"));
        }
    }
    Some(Answer {
        status: u16::try_from(status).ok()?,
        headers: headers(file, report),
        pages: pages.into_iter().map(|(page, _)| page).collect(),
    })
}

/// Where the first thing stands that is said of an answer.
pub(super) fn first_of(file: &AnswerFile) -> Option<Span> {
    let places = [
        file.status.place(),
        file.headers.place(),
        file.json.place(),
        file.html.place(),
        file.text.place(),
        file.file.place(),
    ];
    places.into_iter().flatten().next()
}

fn inline(field: &Field<String>, content_type: &str, report: &Report<'_>) -> Option<(Page, Span)> {
    let (text, place) = field.placed()?;
    if text.len() as u64 > MAX_PAGE_BYTES {
        report.push(Finding::error(place, TOO_LARGE));
        return None;
    }
    let page = Page {
        content_type: content_type.to_owned(),
        body: text.clone().into_bytes(),
    };
    Some((page, place))
}

const TOO_LARGE: &str = "a body has at most 1 MiB";

fn of_file(name: &str, place: Span, report: &Report<'_>) -> Option<Page> {
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    let known = ending.and_then(|ending| {
        let mut endings = ENDINGS.iter();
        endings.find(|(known, _)| ending.eq_ignore_ascii_case(known))
    });
    let Some((_, content_type)) = known else {
        let message = format!("{}: of which type is it?", quote(name));
        let endings: Vec<_> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
        let help = format!("call it by one of the endings {}", endings.join(", "));
        report.push(Finding::error(place, message).help(help));
        return None;
    };
    let folder = Path::new(report.source().name()).parent();
    match read(&folder.unwrap_or(Path::new("")).join(name)) {
        Ok(body) => Some(Page {
            content_type: (*content_type).to_owned(),
            body,
        }),
        Err(error) => {
            let message = format!("{} cannot be read: {error}", quote(name));
            let help = "paths are as seen from the folder of the policy";
            report.push(Finding::error(place, message).help(help));
            None
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe in its place would block whoever opens it, or never end.
    let is_file = |of_path: Metadata| of_path.is_file();
    if !fs::metadata(path).map(is_file)? {
        return Err(io::Error::other("it is no regular file"));
    }
    let file = File::open(path)?;
    if !file.metadata().map(is_file)? {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut body = Vec::new();
    file.take(MAX_PAGE_BYTES + 1).read_to_end(&mut body)?;
    if body.len() as u64 > MAX_PAGE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, TOO_LARGE));
    }
    Ok(body)
}

/// Two bodies of one type: nobody would ever see the second.
fn check_types(pages: &[(Page, Span)], report: &Report<'_>) {
    for (at, (page, place)) in pages.iter().enumerate() {
        let mut before = pages[..at].iter();
        let same = before.find(|(other, _)| other.content_type == page.content_type);
        if let Some(&(_, first)) = same {
            let message = format!("another body of `{}`", page.content_type);
            let finding = Finding::error(*place, message).related(first, "the first");
            report.push(finding.help("keep one of them"));
        }
    }
}

fn headers(file: &AnswerFile, report: &Report<'_>) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, place, value) in file.headers.get().into_iter().flat_map(Map::iter) {
        let Some((value, of_value)) = value.placed() else {
            continue;
        };
        let lower = name.to_ascii_lowercase();
        if !is_token(name) || NOT_OURS.contains(&lower.as_str()) {
            let message = format!("{} is no field for an answer", quote(name));
            let help = "leave out what says how a message is sent, or of which type its body is";
            report.push(Finding::error(place, message).help(help));
            continue;
        }
        let is_text = |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic();
        let text = value.as_str();
        if text.len() > MAX_VALUE_BYTES || !text.bytes().all(is_text) {
            let message = format!("{} cannot be sent in a header", quote(text));
            let help = format!("write printable ASCII, at most {MAX_VALUE_BYTES} bytes");
            report.push(Finding::error(of_value, message).help(help));
            continue;
        }
        headers.push((lower, text.trim().to_owned()));
    }
    check_count(
        headers.len(),
        MAX_HEADERS,
        "fields",
        file.headers.place(),
        report,
    );
    headers
}
