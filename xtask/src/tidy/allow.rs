//! Every list and every exception that tidy knows, in one place. An exception needs a reason.

/// Longest line of code, in characters.
pub(super) const LINE_LENGTH: usize = 100;

/// Longest Rust file, in lines: tests are code, too.
pub(super) const FILE_LENGTH: usize = 500;

/// Longest file of code, in lines, without its tests.
pub(super) const CODE_LENGTH: usize = 400;

/// Files whose code may be longer, up to `FILE_LENGTH`, and why.
pub(super) const LONG_FILES: &[(&str, &str)] = &[(
    "crates/tidegate-policy/src/yaml/reader.rs",
    "one serde deserializer: its methods belong together",
)];

/// Longest README, in lines.
pub(super) const README_LENGTH: usize = 200;

/// Which of our packages a package may use (normal and build dependencies): only ones above it.
/// `tidegate-sim` is for development only, so none of those below may use it.
pub(super) const CRATE_GRAPH: &[(&str, &[&str])] = &[
    ("tidegate", &[]),
    ("tidegate-policy", &["tidegate"]),
    ("tidegate-resp", &[]),
    ("tidegate-http", &["tidegate"]),
    ("tidegate-node", &["tidegate", "tidegate-policy"]),
    ("tidegate-redis", &["tidegate"]),
    ("tidegate-tower", &["tidegate", "tidegate-http"]),
    (
        "tidegate-gateway",
        &[
            "tidegate",
            "tidegate-policy",
            "tidegate-http",
            "tidegate-node",
            "tidegate-tower",
        ],
    ),
    (
        "tidegate-server",
        &[
            "tidegate",
            "tidegate-policy",
            "tidegate-resp",
            "tidegate-http",
            "tidegate-node",
            "tidegate-redis",
            "tidegate-tower",
            "tidegate-gateway",
        ],
    ),
    ("xtask", &[]),
];

/// Packages that may use any of ours, and are used by none.
pub(super) const USE_ANY: &[&str] = &["tidegate-sim", "tidegate-bench", "tidegate-examples"];

/// The engine's budget, with its default features: direct dependencies, and all of them.
pub(super) const ENGINE_DIRECT: usize = 3;
pub(super) const ENGINE_ALL: usize = 12;

/// Build-time crates that need a C compiler or a C library.
pub(super) const NEEDS_C: &[&str] = &["cc", "cmake", "bindgen", "pkg-config", "vcpkg"];

/// Crates that read or write a file format, and the one package that may use them.
pub(super) const FORMAT_OWNER: &str = "tidegate-policy";
pub(super) const FORMATS: &[&str] = &[
    "config",
    "figment",
    "json5",
    "ron",
    "serde-saphyr",
    "serde_norway",
    "serde_yaml",
    "serde_yaml_ng",
    "serde_yml",
    "toml",
    "toml_edit",
    "yaml-rust2",
];

/// Folders of code without clock, sleep, thread, file, socket or `async`.
pub(super) const PURE: &[&str] = &["crates/tidegate", "crates/tidegate-http"];

/// Files within them that stand at the edge, and why.
pub(super) const EDGES: &[(&str, &str)] = &[
    (
        "crates/tidegate/src/clock.rs",
        "hands time to the rest, and sleeps for blocking callers",
    ),
    (
        "crates/tidegate/src/acquire.rs",
        "waits for callers of rates, in their runtime if they have one",
    ),
    (
        "crates/tidegate/src/limiter.rs",
        "hands callers to it that wait in a runtime",
    ),
    (
        "crates/tidegate/src/keyed_limiter.rs",
        "hands callers to it that wait in a runtime",
    ),
    (
        "crates/tidegate/src/concurrency_limiter.rs",
        "hands callers to it that wait in a runtime",
    ),
    (
        "crates/tidegate/src/keyed_concurrency_limiter.rs",
        "hands callers to it that wait in a runtime",
    ),
    (
        "crates/tidegate/src/limits/rates.rs",
        "hands callers to it that wait in a runtime",
    ),
    (
        "crates/tidegate/src/limits/permits.rs",
        "hands callers to it that wait in a runtime",
    ),
];

/// Crates that write seconds to a wire.
pub(super) const WIRE: &[&str] = &[
    "crates/tidegate-http/",
    "crates/tidegate-node/",
    "crates/tidegate-tower/",
    "crates/tidegate-gateway/",
    "crates/tidegate-server/",
    "crates/tidegate-resp/",
];

/// Files of theirs that count seconds for another reason, and which.
pub(super) const SECONDS: &[(&str, &str)] = &[(
    "crates/tidegate-server/src/command/load.rs",
    "tells a person how long its own requests took",
)];

/// Crates that translate between a protocol and the node, and decide nothing.
pub(super) const DOORS: &[&str] = &[
    "crates/tidegate-http/",
    "crates/tidegate-gateway/",
    "crates/tidegate-server/",
    "crates/tidegate-resp/",
];

/// What would be a limit of a door's own.
pub(super) const OWN_LIMIT: &[&str] = &[
    "Quota::",
    "Limit::new",
    "Limiter::",
    "Gate::new",
    "Meter::",
    "Timestamp::from_system",
];

/// Files of theirs that may, and why.
pub(super) const OWN_LIMIT_FILES: &[(&str, &str)] = &[];

/// Words that say nothing about the thing they name.
pub(super) const BANNED_WORDS: &[&str] = &[
    "manager", "helper", "util", "utils", "common", "misc", "handler", "data", "info", "process",
    "do",
];

/// Names with such a word that somebody else chose, and who.
pub(super) const BANNED_EXCEPTIONS: &[(&str, &str)] =
    &[("Data", "the associated type of http_body::Body")];
