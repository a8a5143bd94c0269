use super::*;

fn subject(parts: &[&[u8]]) -> String {
    Subject::new(parts).as_str().to_owned()
}

#[test]
fn short_plain_text_stands_as_it_is() {
    assert_eq!(subject(&[b"alice"]), "5:alice");
    assert_eq!(subject(&[]), "");
    let key = key_of("tg", &Subject::from("alice"), "per-user");
    assert_eq!(key, b"tg:{5:alice}:per-user");
}

#[test]
fn parts_that_would_read_the_same_are_not_the_same() {
    let lists: [&[&[u8]]; 6] = [
        &[b"ab", b"c"],
        &[b"a", b"bc"],
        &[b"abc"],
        &[b"abc", b""],
        &[b"", b"abc"],
        &[b"2:ab1:c"],
    ];
    for (at, a) in lists.iter().enumerate() {
        for b in &lists[..at] {
            assert_ne!(subject(a), subject(b));
        }
    }
}

#[test]
fn any_bytes_make_a_key_of_bounded_length_with_one_tag() {
    let long = vec![b'x'; 100_000];
    let parts: [&[u8]; 7] = [
        b"}",
        b"{",
        b"a}b{",
        b"\0\xff",
        b"a b",
        "Ünï".as_bytes(),
        &long,
    ];
    for part in parts {
        let hashed = subject(&[part]);
        assert!(hashed.starts_with('#') && hashed.len() == 65, "{hashed}");
        let key = key_of(
            "tgl",
            &Subject::new([part]),
            &String::from_utf8_lossy(&long),
        );
        assert!(key.len() <= MAX_KEY_BYTES, "{}", key.len());
        for brace in b"{}" {
            assert_eq!(key.split(|byte| byte == brace).count(), 2);
        }
    }
    // `printf '1:{' | sha256sum`
    let known = "260b4cd458ddd7a348ed4bfcb16f8c66f333af904a1f2e670734dfa88e48ecdd";
    assert_eq!(subject(&[b"{"]), format!("#{known}"));
}

#[test]
fn a_name_that_looks_like_a_hash_is_hashed() {
    let key = key_of("tg", &Subject::from("a"), "#0123");
    assert_eq!(key.len(), "tg:{1:a}:".len() + 65);
}
