//! `strata sessions`: a line per session.

use crate::text::{Paint, clean, octets, span};
use control::{Session, Sessions};
use std::fmt::Write;

/// Formats the answer. Writing to a `String` cannot fail.
pub fn show(sessions: &Sessions, paint: Paint) -> String {
    if sessions.sessions.is_empty() {
        return "no session can be resumed\n".to_owned();
    }
    let mut text = String::new();
    for session in &sessions.sessions {
        let Session {
            name,
            identity,
            age_seconds,
            established_seconds,
            carried_octets,
            left_seconds,
        } = session;
        let carried = match carried_octets {
            0 => String::new(),
            carried => format!("{} carried, ", octets(*carried)),
        };
        let _ = writeln!(
            text,
            "{}  {}  authenticated {} ago, up for {}, {carried}good for {}",
            paint.bold(&clean(identity)),
            clean(name),
            span(*age_seconds),
            span(*established_seconds),
            span(*left_seconds)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::PLAIN;
    use super::*;

    #[test]
    fn a_session_has_a_line_with_its_age_and_its_end() {
        let session = Session {
            name: "c0de0005".to_owned(),
            identity: "alice\x1b@example.net".to_owned(),
            age_seconds: 7200,
            established_seconds: 660,
            carried_octets: 0,
            left_seconds: 21_600,
        };
        let metered = Session {
            carried_octets: 20_000_000,
            ..session.clone()
        };
        let of = |session| {
            show(
                &Sessions {
                    sessions: vec![session],
                },
                PLAIN,
            )
        };
        assert_eq!(
            of(session),
            "alice\\u{1b}@example.net  c0de0005  authenticated 2 h ago, up for 11 min, good for 6 h\n"
        );
        assert!(of(metered).ends_with("up for 11 min, 19.1 MiB carried, good for 6 h\n"));
        assert_eq!(
            show(&Sessions::default(), PLAIN),
            "no session can be resumed\n"
        );
    }
}
