use super::{Block, Kind, blocks, run_block};

/// Each line has its own log file, and tests run side by side.
fn block(line: usize, kind: Kind, script: &str) -> Block {
    let script = script.to_owned();
    Block { kind, line, script }
}

#[test]
fn only_tagged_blocks_are_run_and_only_their_prompted_lines() {
    let text = "# a\n```sh\nrm x\n```\n```sh check\n$ curl a\nok\n$ curl b\n```\n\
                ```sh serve\ntidegate serve\n```\n```rust\n```\n";
    let found = blocks(text);
    assert_eq!(
        found,
        [
            Block {
                kind: Kind::Check,
                line: 5,
                script: "curl a\ncurl b".to_owned()
            },
            Block {
                kind: Kind::Serve,
                line: 10,
                script: "tidegate serve".to_owned()
            },
        ]
    );
}

#[test]
fn a_command_that_fails_fails_the_block() {
    let mut serving = Vec::new();
    assert!(run_block(&block(1001, Kind::Check, "true"), &mut serving).is_ok());
    let failure = run_block(
        &block(1002, Kind::Check, "echo seen; false; true"),
        &mut serving,
    );
    assert!(failure.unwrap_err().to_string().contains("seen"));
}

#[test]
fn a_server_that_ends_before_it_is_ready_fails_and_a_ready_one_is_ended() {
    let mut serving = Vec::new();
    assert!(run_block(&block(1003, Kind::Serve, "echo no port"), &mut serving).is_err());

    let server = block(
        1004,
        Kind::Serve,
        "echo listening on 127.0.0.1:1; exec sleep 600",
    );
    run_block(&server, &mut serving).unwrap();
    let mut script = serving.pop().unwrap();
    script.end();
    assert_eq!(script.ended(), Some(false));
}
