//! The JSON Schema accepts what is read, and refuses what is refused for its shape.

use regex_lite::Regex;
use serde_json::{Map, Value, json};

/// Whether `value` is of `schema`: as much of JSON Schema as ours uses, and a panic for more.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Value::Object(schema) = schema else {
        return schema != &Value::Bool(false);
    };
    schema
        .iter()
        .all(|(keyword, rule)| holds(root, schema, keyword, rule, value))
}

fn holds(
    root: &Value,
    schema: &Map<String, Value>,
    keyword: &str,
    rule: &Value,
    value: &Value,
) -> bool {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match keyword {
        "$schema" | "$defs" | "title" | "description" | "examples" | "default" | "format"
        // These two are looked at with `additionalProperties`, which ours always has.
        | "properties" | "patternProperties" => true,
        "$ref" => {
            let target = root
                .pointer(rule.as_str().unwrap().trim_start_matches('#'))
                .unwrap();
            is_valid(root, target, value)
        }
        "type" => match rule {
            Value::Array(types) => types.iter().any(|of| is_type(of, value)),
            of => is_type(of, value),
        },
        "const" => rule == value,
        "enum" => items(rule).contains(value),
        "minimum" => value
            .as_f64()
            .is_none_or(|number| number >= rule.as_f64().unwrap()),
        "pattern" => {
            let pattern = Regex::new(rule.as_str().unwrap()).unwrap();
            value.as_str().is_none_or(|text| pattern.is_match(text))
        }
        "anyOf" => items(rule).iter().any(|one| is_valid(root, one, value)),
        "oneOf" => {
            items(rule)
                .iter()
                .filter(|one| is_valid(root, one, value))
                .count()
                == 1
        }
        "minProperties" => value
            .as_object()
            .is_none_or(|entries| entries.len() as u64 >= rule.as_u64().unwrap()),
        "items" => items(value).iter().all(|item| is_valid(root, rule, item)),
        "required" => items(rule)
            .iter()
            .all(|name| value.get(name.as_str().unwrap()).is_some()),
        "additionalProperties" => value.as_object().is_none_or(|entries| {
            entries
                .iter()
                .all(|(name, value)| property(root, schema, rule, name, value))
        }),
        other => panic!("the schema has {other}, which this test does not know"),
    }
}

/// One entry of an object, by the first of the three keywords that speaks of it.
fn property(
    root: &Value,
    schema: &Map<String, Value>,
    others: &Value,
    name: &str,
    value: &Value,
) -> bool {
    if let Some(rule) = schema.get("properties").and_then(|known| known.get(name)) {
        return is_valid(root, rule, value);
    }
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let pattern = patterns
        .into_iter()
        .flatten()
        .find(|(pattern, _)| Regex::new(pattern).unwrap().is_match(name));
    is_valid(root, pattern.map_or(others, |(_, rule)| rule), value)
}

fn is_type(of: &Value, value: &Value) -> bool {
    match of.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        other => panic!("the schema has the type {other}"),
    }
}

fn accepts(yaml: &str) -> bool {
    let schema = tidegate_policy::schema();
    let value: Value = serde_saphyr::from_str(yaml).unwrap();
    is_valid(&schema, &schema, &value)
}

#[test]
fn it_accepts_every_example() {
    for (name, text) in super::policies() {
        // A number with `_` is a text to the YAML of the test.
        let text = text.replace("2_000_000", "2000000");
        assert!(accepts(&text), "{name}");
    }
}

#[test]
fn it_refuses_what_has_another_shape() {
    for wrong in [
        "limit: {}",
        "limits: []",
        "limits: { a: { rate: 100 } }",
        "limits: { a: { key: client_ip } }",
        "limits: { a: { rate: 10/s, concurrency: 5 } }",
        "upstreams: { a: {} }",
        "limits: { a: { rate: fast } }",
        "limits: { a: { rate: 10/s, brust: 5 } }",
        "limits: { a: { rate: 10/s, burst: many } }",
        "limits: { a: { rate: [10/s, fast] } }",
        "limits: { a: { rate: [10/s, 9/min], burst: [many, 9] } }",
        "limits: { a: { rate: 10/s, algorithm: fixed_windw } }",
        "limits: { a: { rate: 10/s, overrides: [{ rate: 5/s }] } }",
        "upstreams: { a: { builtin: ecko } }",
        "gateway: { routes: [{ id: a }] }",
        "gateway: { routes: [{ upstream: a }] }",
        "gateway: { routes: [{ id: a, upstream: u, match: { methd: GET } }] }",
        "gateway: { idle_timeout: 60 }",
        "gateway: { access_log: { format: json } }",
        "gateway: { access_log: { path: a, format: apache } }",
        "gateway: { access_log: [a] }",
        "gateway: { debug_header: {} }",
        "gateway: { headers: { retry_after: 1 } }",
        "admin: { listen: 8090 }",
    ] {
        assert!(!accepts(wrong), "{wrong}");
        assert!(tidegate_policy::parse("wrong", wrong).is_err(), "{wrong}");
    }
    assert!(accepts("{}"));
}

#[test]
fn it_says_what_keys_are_for() {
    let schema = tidegate_policy::schema();
    assert_eq!(
        schema["$schema"],
        json!("https://json-schema.org/draft/2020-12/schema")
    );
    assert_eq!(schema["title"], json!("Policy"));
    let rate = schema["$defs"]["Limit"]["properties"]["rate"]["description"]
        .as_str()
        .unwrap();
    assert!(rate.starts_with("Permits over time"), "{rate}");
    assert_eq!(
        schema["$defs"]["Route"]["required"],
        json!(["id", "upstream"])
    );
}
