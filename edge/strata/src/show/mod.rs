//! Answers as text: one pure function for each type, from values to the text on a screen.

mod explain;
mod flows;
mod leases;
mod mobile_ip;
mod paths;
mod ping;
mod reload;
mod sessions;
pub mod status;
mod zones;

use crate::text::{Paint, clean};
use control::{Changed, Daemon, Keylog, PeerState, Response};

/// Formats any answer.
pub fn response(response: &Response, paint: Paint) -> String {
    match response {
        Response::Up(changed) | Response::Down(changed) => peers(changed, paint),
        Response::Rekey(changed) => {
            asked(changed, "rekey started; `strata status` shows the new SPIs")
        }
        Response::Reauth(changed) => asked(
            changed,
            "re-authentication started; `strata status` shows the new SPIs",
        ),
        Response::Redirect(changed) => asked(
            changed,
            "redirect sent; `strata status` shows when the peer has left",
        ),
        Response::Level(changed) => asked(changed, "protection changed; `strata zones` shows it"),
        Response::Move(moved) => paths::moved(moved),
        Response::Signal(signal) => paths::signal(signal, paint),
        Response::Ping(ping) => ping::show(ping, paint),
        Response::Paths(paths) => paths::show(paths, paint),
        Response::Status(status) => status::overview(status, None, paint),
        Response::Zones(zones) => zones::show(zones, paint),
        Response::Flows(flows) => flows::show(flows, paint),
        Response::Leases(leases) => leases::show(leases, paint),
        Response::Sessions(sessions) => sessions::show(sessions, paint),
        Response::Explain(explain) => explain::show(explain, paint),
        Response::Keylog(keylog) => keys(keylog),
        Response::Reload(reload) => reload::show(reload, paint),
        Response::Metrics(text) => text.clone(),
        Response::Daemon(daemon) => versions(daemon),
        Response::Error(failure) => terminal::failure(failure, paint),
    }
}

fn peers(changed: &Changed, paint: Paint) -> String {
    let line = |peer: &control::PeerChanged| {
        let reason = peer
            .reason
            .as_deref()
            .map_or(String::new(), |reason| format!(": {}", clean(reason)));
        format!(
            "{} {}{reason}\n",
            clean(&peer.name),
            state(peer.state, paint)
        )
    };
    changed.peers.iter().map(line).collect()
}

fn asked(changed: &Changed, what: &str) -> String {
    let line = |peer: &control::PeerChanged| {
        let name = clean(&peer.name);
        format!("{name}: {what}\n")
    };
    changed.peers.iter().map(line).collect()
}

fn keys(keylog: &Keylog) -> String {
    match &keylog.directory {
        Some(directory) => format!(
            "keys of new SAs are written to {}\n\
             Wireshark can decrypt IKE, and ESP with explicit IVs. It does not support zones,\n\
             implicit IVs (RFC 8750), which two Strata hosts prefer, or ChaCha20-Poly1305.\n",
            clean(&directory.to_string_lossy())
        ),
        None => "no keys are written\n".to_owned(),
    }
}

fn versions(daemon: &Daemon) -> String {
    let ours = env!("CARGO_PKG_VERSION");
    format!(
        "strata {ours}\nstratad {} (process {})\n",
        clean(&daemon.version),
        daemon.pid
    )
}

fn state(state: PeerState, paint: Paint) -> String {
    match state {
        PeerState::Up => paint.good("up"),
        PeerState::Connecting => paint.doubtful("connecting"),
        PeerState::Down => paint.bad("down"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::PeerChanged;

    pub(super) const PLAIN: Paint = Paint::new(false);

    #[test]
    fn a_peer_that_did_not_come_up_says_why_in_harmless_words() {
        let changed = Changed {
            peers: vec![
                PeerChanged {
                    name: "home".to_owned(),
                    state: PeerState::Up,
                    reason: None,
                },
                PeerChanged {
                    name: "office".to_owned(),
                    state: PeerState::Connecting,
                    reason: Some("no \x1b[31mproposal\n chosen".to_owned()),
                },
            ],
        };
        assert_eq!(
            response(&Response::Up(changed), PLAIN),
            "home up\noffice connecting: no \\u{1b}[31mproposal\\n chosen\n"
        );
    }
}
