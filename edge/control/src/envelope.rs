//! The object around every request and answer: its version, and nothing else.

use crate::{Failure, Request, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the API. Fields may be added within a version, never renamed or removed.
pub const VERSION: u64 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    version: u64,
    #[serde(flatten)]
    body: &'a T,
}

impl Request {
    /// One line, without its end.
    pub fn to_line(&self) -> String {
        to_line(self)
    }

    /// Reads one line, without its end. The failure is meant for whoever sent it.
    pub fn from_line(line: &[u8]) -> Result<Self, Failure> {
        from_line(line)
    }
}

impl Response {
    /// One line, without its end.
    pub fn to_line(&self) -> String {
        to_line(self)
    }

    /// Reads one line, without its end.
    pub fn from_line(line: &[u8]) -> Result<Self, Failure> {
        from_line(line)
    }
}

fn to_line(body: &impl Serialize) -> String {
    let version = VERSION;
    serde_json::to_string(&Envelope { version, body })
        .expect("the types of this crate have string keys and no other way to fail")
}

fn from_line<T: for<'de> Deserialize<'de>>(line: &[u8]) -> Result<T, Failure> {
    let not_json = |error| Failure::new(format!("not a JSON object: {error}"), SHAPE);
    let mut body: Value = serde_json::from_slice(line).map_err(not_json)?;
    let version = body.as_object_mut().and_then(|body| body.remove("version"));
    match version.as_ref().and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(other) => {
            return Err(Failure::new(
                format!("version {other} of the API is not spoken here, only {VERSION}"),
                "use `strata` and `stratad` of the same release",
            ));
        }
        None => return Err(Failure::new("there is no version", SHAPE)),
    }
    let unknown = |error| Failure::new(format!("not understood: {error}"), SHAPE);
    serde_json::from_value(body).map_err(unknown)
}

const SHAPE: &str = r#"write one object a line, like {"version":1,"request":"status"}"#;
