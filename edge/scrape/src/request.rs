//! The head of a request.

use crate::Refusal;
use httparse::{EMPTY_HEADER, Error, Request, Status};

/// Longest head of a request, in octets.
pub const LONGEST_HEAD: usize = 8 << 10;

/// Most header fields of a request.
const MOST_FIELDS: usize = 64;

/// The meaning of the octets that a client has sent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// More octets are needed.
    Incomplete,
    /// A request for the page.
    Page,
    /// Anything else.
    Refused(Refusal),
}

impl Head {
    /// Reads the head of a request. What follows it is ignored.
    pub fn read(octets: &[u8]) -> Self {
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut request = Request::new(&mut fields);
        match request.parse(octets) {
            Ok(Status::Complete(_)) => judge(&request),
            Ok(Status::Partial) if octets.len() < LONGEST_HEAD => Self::Incomplete,
            Ok(Status::Partial) | Err(Error::TooManyHeaders) => Self::Refused(Refusal::TooLong),
            Err(_) => Self::Refused(Refusal::Malformed),
        }
    }
}

fn judge(request: &Request<'_, '_>) -> Head {
    let target = request.path.unwrap_or_default();
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    match (request.method, path) {
        (Some("GET"), "/metrics") => Head::Page,
        (Some("GET"), _) => Head::Refused(Refusal::NotFound),
        _ => Head::Refused(Refusal::Method),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Head {
        Head::read(text.as_bytes())
    }

    #[test]
    fn only_a_get_of_metrics_is_the_page() {
        let prometheus = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9580\r\n\
            Accept: text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n\r\n";
        assert_eq!(read(prometheus), Head::Page);
        assert_eq!(read("GET /metrics?x=1 HTTP/1.0\n\n"), Head::Page);
        for (text, why) in [
            ("GET / HTTP/1.1\r\n\r\n", Refusal::NotFound),
            ("GET /metrics/ HTTP/1.1\r\n\r\n", Refusal::NotFound),
            ("GET /../metrics HTTP/1.1\r\n\r\n", Refusal::NotFound),
            ("POST /metrics HTTP/1.1\r\n\r\n", Refusal::Method),
            ("PRI * HTTP/2.0\r\n\r\n", Refusal::Malformed),
            ("\x16\x03\x01\x02\x00\x01", Refusal::Malformed),
            (
                "{\"version\":1,\"request\":\"status\"}\n",
                Refusal::Malformed,
            ),
        ] {
            assert_eq!(read(text), Head::Refused(why), "{text:?}");
        }
    }

    #[test]
    fn a_head_that_does_not_end_is_waited_for_up_to_its_limit() {
        let whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Head::Incomplete, "{end}");
        }
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(LONGEST_HEAD));
        assert_eq!(read(&long[..LONGEST_HEAD - 1]), Head::Incomplete);
        assert_eq!(read(&long[..LONGEST_HEAD]), Head::Refused(Refusal::TooLong));
        let many = format!(
            "GET /metrics HTTP/1.1\r\n{}",
            "X: y\r\n".repeat(MOST_FIELDS + 1)
        );
        assert_eq!(read(&many), Head::Refused(Refusal::TooLong));
    }
}
