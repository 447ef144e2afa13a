//! The answers to a request.

use std::fmt::Write;

/// The reason for an answer without the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The octets are no request of HTTP/1.
    Malformed,
    /// The head is too long, or has too many fields.
    TooLong,
    /// The method is not GET.
    Method,
    /// The path is not that of the page.
    NotFound,
    /// The daemon did not write the page in time.
    Late,
}

impl Refusal {
    /// Returns the status line's code and reason, and the text below the head.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Malformed => ("400 Bad Request", "This is no request of HTTP/1.1."),
            Self::TooLong => (
                "431 Request Header Fields Too Large",
                "The head of the request is too long.",
            ),
            Self::Method => ("405 Method Not Allowed", "Use GET."),
            Self::NotFound => ("404 Not Found", "Read /metrics."),
            Self::Late => ("503 Service Unavailable", "stratad did not answer in time."),
        }
    }

    /// Returns the answer.
    pub(crate) fn answer(self) -> String {
        let (status, text) = self.words();
        let mut answer = head(status, "text/plain; charset=utf-8", text.len() + 1);
        if self == Self::Method {
            answer.truncate(answer.len() - 2);
            answer.push_str("Allow: GET\r\n\r\n");
        }
        let _ = writeln!(answer, "{text}");
        answer
    }
}

/// Returns the head of the answer with a page of this length.
pub(crate) fn page(length: usize) -> String {
    head("200 OK", "text/plain; version=0.0.4; charset=utf-8", length)
}

fn head(status: &str, kind: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
}
