//! `strata paths`: the path of each tunnel, and the possible ones.

use crate::text::{Paint, clean};
use control::{Candidate, Carrier, Moved, Paths, Standing, TunnelPaths, Who};

/// Formats the answer.
pub fn show(paths: &Paths, paint: Paint) -> String {
    if paths.tunnels.is_empty() {
        return "no tunnel is up\n".to_owned();
    }
    let tunnels = paths.tunnels.iter();
    tunnels.map(|tunnel| self::tunnel(tunnel, paint)).collect()
}

/// Formats the answer to `strata move`.
pub fn moved(moved: &Moved) -> String {
    let Moved {
        name,
        local,
        remote,
    } = moved;
    let name = clean(name);
    format!("{name} goes from {local} to {remote}; `strata paths` shows when the peer follows\n")
}

fn tunnel(tunnel: &TunnelPaths, paint: Paint) -> String {
    let name = paint.bold(&clean(&tunnel.name));
    let (local, remote) = (tunnel.local, tunnel.remote);
    let by = by(tunnel.carrier);
    let who = match tunnel.moved_by {
        Who::Us => "this host moves it",
        Who::Peer => "the peer moves it",
        Who::Neither => "fixed",
    };
    let candidates = tunnel.candidates.iter();
    let candidates: String = candidates.map(|way| candidate(way, paint)).collect();
    format!("{name}  {local} - {remote}{by}  {who}\n{candidates}")
}

fn candidate(candidate: &Candidate, paint: Paint) -> String {
    let standing = match candidate.standing {
        Standing::Used => paint.good("used"),
        Standing::Fresh => "possible".to_owned(),
        Standing::Silent => paint.doubtful("no answer"),
        Standing::Refused => paint.bad("refused by the peer"),
    };
    let (local, remote) = (candidate.local, candidate.remote);
    let by = by(candidate.carrier);
    format!("  {local} - {remote}{by}  {standing}\n")
}

/// Returns a suffix that names the encapsulation. UDP is the default and has none.
pub const fn by(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Udp => "",
        Carrier::Tcp => " by TCP",
        Carrier::Ip => " without UDP",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::tests::PLAIN;

    #[test]
    fn a_tunnel_is_shown_with_the_ways_it_could_take() {
        let way = |local: &str, standing| Candidate {
            local: local.parse().unwrap(),
            remote: "192.0.2.1".parse().unwrap(),
            carrier: Carrier::Tcp,
            standing,
        };
        let tunnel = TunnelPaths {
            name: "office".to_owned(),
            local: "10.4.0.2:4500".parse().unwrap(),
            remote: "192.0.2.1:4500".parse().unwrap(),
            carrier: Carrier::Udp,
            moved_by: Who::Us,
            candidates: vec![
                way("10.3.0.2", Standing::Silent),
                way("10.4.0.2", Standing::Used),
            ],
        };
        let shown = show(
            &Paths {
                tunnels: vec![tunnel],
            },
            PLAIN,
        );
        assert_eq!(
            shown,
            "office  10.4.0.2:4500 - 192.0.2.1:4500  this host moves it\n  \
             10.3.0.2 - 192.0.2.1 by TCP  no answer\n  \
             10.4.0.2 - 192.0.2.1 by TCP  used\n"
        );
    }
}
