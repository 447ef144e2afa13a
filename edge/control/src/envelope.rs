//! The JSON object around every request and answer. It adds the version of the API.

use crate::{Failure, Request, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the API. A version may gain fields, but never renames or removes one.
pub const VERSION: u64 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    version: u64,
    #[serde(flatten)]
    body: &'a T,
}

impl Request {
    /// Returns the request as one line, without the newline.
    pub fn to_line(&self) -> String {
        to_line(self)
    }

    /// Parses one line, without its newline. The failure is an answer for the client that sent the
    /// line.
    pub fn from_line(line: &[u8]) -> Result<Self, Failure> {
        from_line(line)
    }
}

impl Response {
    /// Returns the response as one line, without the newline.
    pub fn to_line(&self) -> String {
        to_line(self)
    }

    /// Parses one line, without its newline.
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
                format!("unsupported API version {other}, expected {VERSION}"),
                "use `strata` and `stratad` of the same release",
            ));
        }
        None => return Err(Failure::new("missing `version`", SHAPE)),
    }
    let unknown = |error| Failure::new(format!("invalid message: {error}"), SHAPE);
    serde_json::from_value(body).map_err(unknown)
}

const SHAPE: &str = r#"write one object per line, such as {"version":1,"request":"status"}"#;
