//! Rust source as text, told apart into code and comments, for checks that need no compiler.
//!
//! Not a parser: it only knows where comments and literals begin and end, so that a banned word
//! in a string or a brace in a comment misleads nobody.

/// Two texts as long as the source, line for line: what is not theirs is blank.
#[derive(Debug)]
pub(crate) struct RustText {
    /// Without comments and without what stands in string and character literals.
    pub(crate) code: String,
    /// Only the comments, doc comments among them.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

impl RustText {
    pub(crate) fn new(source: &str) -> Self {
        let mut code = String::with_capacity(source.len());
        let mut comments = String::with_capacity(source.len());
        let mut rest = source;
        let mut before = ' ';
        while !rest.is_empty() {
            let (part, length) = next_part(rest, before);
            let (piece, after) = rest.split_at(length);
            push(&mut code, piece, part == Part::Code);
            push(&mut comments, piece, part == Part::Comment);
            before = piece.chars().next_back().unwrap_or(' ');
            rest = after;
        }
        Self { code, comments }
    }

    /// The code outside items marked `#[cfg(test)]`.
    pub(crate) fn code_without_tests(&self) -> String {
        let mut code = self.code.clone();
        while let Some(start) = code
            .find("#[cfg(test)]")
            .or_else(|| code.find("#[cfg(all(test"))
        {
            let end = start + item_length(&code[start..]);
            let blank: String = code[start..end].chars().map(blank).collect();
            code.replace_range(start..end, &blank);
        }
        code
    }
}

/// How long the attribute and the item behind it are: up to its `;` or its closing brace.
fn item_length(code: &str) -> usize {
    let Some(body) = code.find(['{', ';']) else {
        return code.len();
    };
    if code[body..].starts_with(';') {
        return body + 1;
    }
    block_length(&code[body..]).map_or(code.len(), |length| body + length)
}

/// How long the block is that begins with the opening bracket at the start of `code`.
pub(crate) fn block_length(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether the character may stand in an identifier.
pub(crate) fn in_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn push(text: &mut String, piece: &str, keep: bool) {
    if keep {
        text.push_str(piece);
    } else {
        // As many bytes as before, so that offsets are those of the source.
        text.extend(
            piece
                .bytes()
                .map(|byte| if byte == b'\n' { '\n' } else { ' ' }),
        );
    }
}

fn blank(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

fn next_part(rest: &str, before: char) -> (Part, usize) {
    if rest.starts_with("//") {
        return (Part::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Part::Comment, block_comment(rest));
    }
    if rest.starts_with('"') {
        return (Part::Literal, string(rest));
    }
    if rest.starts_with('\'') {
        return character(rest).map_or((Part::Code, 1), |length| (Part::Literal, length));
    }
    if !in_word(before)
        && let Some(length) = raw_string(rest)
    {
        return (Part::Literal, length);
    }
    (Part::Code, rest.chars().next().map_or(1, char::len_utf8))
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(next) = rest.as_bytes().get(at..at + 2) {
        match next {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'x'` or `'\u{7f}'`; nothing for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        chars.next()?;
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(at + 1)
}

/// `r"..."`, `r#"..."#`, with a `b` or `c` before it or not.
fn raw_string(rest: &str) -> Option<usize> {
    let marker = rest
        .strip_prefix(['b', 'c'])
        .unwrap_or(rest)
        .strip_prefix('r')?;
    let quoted = marker.trim_start_matches('#');
    let hashes = marker.len() - quoted.len();
    let body = quoted.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - body.len();
    Some(
        body.find(&close)
            .map_or(rest.len(), |at| start + at + close.len()),
    )
}

#[cfg(test)]
mod tests;
