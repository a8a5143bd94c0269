use super::*;

fn append(log: &mut Log, window: u64, tick: u64) {
    log.append(Append {
        left: log.left(window, tick),
        asked: tick,
        tick,
        permits: 1,
    });
}

// Case 35: a million in a window, and no two of them at one tick.
// shows: B3 (local), H1 (bounded memory)
#[test]
fn a_log_holds_its_entries_and_a_quarter_more() {
    let window = 1_000_000;
    let mut log = Log::default();
    let mut most = 0;
    for tick in 0..2 * window {
        append(&mut log, window, tick);
        let (held, entries) = (log.entries.capacity(), log.entries.len());
        most = entries.max(most);
        assert!(
            held <= most + most / 4 + 4,
            "{held} for {entries} at {tick}"
        );
    }
    assert_eq!(most, 1_000_000);
    assert_eq!(ENTRY_BYTES, 16);
    // Busy once: what it held is given up with the next that comes.
    append(&mut log, window, 5 * window);
    append(&mut log, window, 5 * window + 1);
    assert_eq!(log.entries.len(), 2);
    assert!(log.entries.capacity() <= 64, "{}", log.entries.capacity());
}
