//! Fuzzes the control protocol: any line is a request or an error with a message, and a request is
//! written as a line that reads the same.

use control::Request;

/// Parses octets as a line.
pub fn run(octets: &[u8]) {
    match Request::from_line(octets) {
        Ok(request) => {
            let line = request.to_line();
            assert_eq!(Request::from_line(line.as_bytes()).ok(), Some(request));
        }
        Err(failure) => assert!(!failure.message.is_empty()),
    }
    let _ = control::Response::from_line(octets);
}
