//! `strata paths`: the path of each tunnel, and the possible ones.

use crate::text::{Paint, clean};
use control::{
    Candidate, Carrier, Chosen, LivePath, Moved, Paths, Signal, SignalTunnel, Standing, Strength,
    TunnelPaths, Who, host_on, place_on,
};

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
        interface,
        soft,
    } = moved;
    let name = clean(name);
    let [local, remote] = [local, remote].map(|end| place_on(*end, interface.as_deref()));
    let pause = if *soft { " without a pause" } else { "" };
    format!(
        "{name} goes from {local} to {remote}{pause}; `strata paths` shows when the peer follows\n"
    )
}

/// Formats the answer to `strata signal`.
pub fn signal(signal: &Signal, paint: Paint) -> String {
    let Signal {
        interface,
        strength,
        tunnels,
    } = signal;
    let interface = clean(interface);
    let shown = self::strength(strength, paint);
    let tunnel = |tunnel: &SignalTunnel| {
        let name = clean(&tunnel.name);
        match (tunnel.follows, strength.weak) {
            (true, true) => format!("  {name} leaves it if another path works\n"),
            (true, false) => format!("  {name} may use it\n"),
            (false, _) => format!(
                "  {name} does not follow signals: write `clone = true` or `paths = 2` in \
                 [peer.{name}] at both ends\n"
            ),
        }
    };
    let tunnels: String = match tunnels.is_empty() {
        true => "  no tunnel that this host moves has a path there\n".to_owned(),
        false => tunnels.iter().map(tunnel).collect(),
    };
    format!("{interface}: {shown}, for 30 s\n{tunnels}")
}

fn strength(strength: &Strength, paint: Paint) -> String {
    let percent = strength.percent;
    let by = strength.by.as_deref().map(clean);
    let by = by.map_or_else(String::new, |by| format!(" (by {by})"));
    match strength.weak {
        true => paint.doubtful(&format!("weak signal, {percent} %{by}")),
        false => format!("signal {percent} %{by}"),
    }
}

fn tunnel(tunnel: &TunnelPaths, paint: Paint) -> String {
    let name = paint.bold(&clean(&tunnel.name));
    let link = tunnel.interface.as_deref();
    let [local, remote] = [tunnel.local, tunnel.remote].map(|end| place_on(end, link));
    let by = by(tunnel.carrier);
    let who = match tunnel.moved_by {
        Who::Us => "this host moves it",
        Who::Peer => "the peer moves it",
        Who::Neither => "fixed",
    };
    let why = tunnel.why.map(|why| reason(why, tunnel.faded_percent));
    let why = why.map_or_else(String::new, |why| format!(", because of {why}"));
    let candidates = tunnel.candidates.iter();
    let candidates: String = candidates.map(|way| candidate(way, paint)).collect();
    let live = tunnel.live.iter().filter(|_| tunnel.live.len() > 1);
    let live: String = live.map(|path| live_path(path, paint)).collect();
    format!("{name}  {local} - {remote}{by}  {who}{why}\n{candidates}{live}")
}

fn live_path(path: &LivePath, paint: Paint) -> String {
    let (local, remote) = (path.local, path.remote);
    let traffic = path.traffic.join(", ");
    let traffic = clean(&traffic);
    let state = match (path.works, path.traffic.is_empty(), path.shared) {
        (true, ..) if path.avoided => {
            paint.doubtful("weak signal, other paths carry what this host sends")
        }
        (true, true, _) => paint.good("carries packets"),
        (true, false, false) => paint.good(&format!("carries only {traffic}")),
        (true, false, true) => paint.good(&format!("carries {traffic}, and other packets")),
        (false, true, _) => paint.doubtful("no answer, other paths carry its packets"),
        (false, false, _) => paint.doubtful(&format!("no answer, other paths carry {traffic}")),
    };
    format!("  live: {local} - {remote}  {state}\n")
}

fn reason(why: Chosen, faded_percent: Option<u8>) -> String {
    match why {
        Chosen::Route => "the route".to_owned(),
        Chosen::Asked => "a command".to_owned(),
        Chosen::Faded => {
            let lost = faded_percent.unwrap_or_default();
            format!("loss on the path before ({lost} %)")
        }
        Chosen::Weak => "a weak signal on the path before".to_owned(),
        Chosen::Silent => "silence on the path before".to_owned(),
        Chosen::Quicker => "a shorter round trip".to_owned(),
    }
}

/// Formats the round trip and the loss of a path, if it is measured.
fn quality(candidate: &Candidate) -> String {
    let lost = candidate.lost_percent;
    let lost = lost.map_or_else(String::new, |lost| format!("  {lost} % lost"));
    match candidate.round_trip_micros {
        Some(micros) => format!("  {:.1} ms{lost}", micros as f64 / 1000.0),
        None => lost,
    }
}

fn candidate(candidate: &Candidate, paint: Paint) -> String {
    let standing = match candidate.standing {
        Standing::Used => paint.good("used"),
        Standing::Fresh => "possible".to_owned(),
        Standing::Silent => paint.doubtful("no answer"),
        Standing::Refused => paint.bad("refused by the peer"),
    };
    let link = candidate.interface.as_deref();
    let [local, remote] = [candidate.local, candidate.remote].map(|end| host_on(end, link));
    let by = by(candidate.carrier);
    let quality = quality(candidate);
    let signal = candidate.signal.as_ref();
    let signal = signal.map(|signal| format!("  {}", strength(signal, paint)));
    let signal = signal.unwrap_or_default();
    format!("  {local} - {remote}{by}  {standing}{quality}{signal}\n")
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

    fn weak(by: Option<&str>) -> Strength {
        Strength {
            percent: 25,
            weak: true,
            by: by.map(str::to_owned),
        }
    }

    #[test]
    fn a_report_is_confirmed_with_the_tunnels_that_follow_it() {
        let tunnel = |name: &str, follows| SignalTunnel {
            name: name.to_owned(),
            follows,
        };
        let mut report = Signal {
            interface: "wlan0".to_owned(),
            strength: weak(None),
            tunnels: vec![tunnel("home", false), tunnel("office", true)],
        };
        assert_eq!(
            signal(&report, PLAIN),
            "wlan0: weak signal, 25 %, for 30 s\n  home does not follow signals: write `clone = \
             true` or `paths = 2` in [peer.home] at both ends\n  office leaves it if another path \
             works\n"
        );
        report.tunnels.clear();
        (report.strength.percent, report.strength.weak) = (80, false);
        assert_eq!(
            signal(&report, PLAIN),
            "wlan0: signal 80 %, for 30 s\n  no tunnel that this host moves has a path there\n"
        );
    }

    #[test]
    fn a_tunnel_is_shown_with_the_ways_it_could_take() {
        let way = |local: &str, standing| Candidate {
            local: local.parse().unwrap(),
            remote: "192.0.2.1".parse().unwrap(),
            interface: None,
            carrier: Carrier::Tcp,
            standing,
            round_trip_micros: (standing == Standing::Used).then_some(12_340),
            lost_percent: Some(12),
            signal: (standing == Standing::Silent).then(|| weak(Some("iw\n"))),
        };
        let live = |local: &str, works| LivePath {
            local: local.parse().unwrap(),
            remote: "192.0.2.1:4500".parse().unwrap(),
            works,
            avoided: false,
            traffic: Vec::new(),
            shared: true,
        };
        let reserved = |works, shared| LivePath {
            traffic: vec!["10.8.0.0/16 protocol 17".to_owned()],
            shared,
            ..live("10.5.0.2:4500", works)
        };
        let tunnel = TunnelPaths {
            name: "office".to_owned(),
            local: "10.4.0.2:4500".parse().unwrap(),
            remote: "192.0.2.1:4500".parse().unwrap(),
            interface: None,
            carrier: Carrier::Udp,
            moved_by: Who::Us,
            why: Some(Chosen::Faded),
            faded_percent: Some(12),
            candidates: vec![
                way("10.3.0.2", Standing::Silent),
                way("10.4.0.2", Standing::Used),
            ],
            live: vec![
                live("10.4.0.2:4500", true),
                live("10.3.0.2:4500", false),
                LivePath {
                    avoided: true,
                    ..live("10.3.0.2:4500", true)
                },
                reserved(true, false),
                reserved(true, true),
                reserved(false, false),
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
            "office  10.4.0.2:4500 - 192.0.2.1:4500  this host moves it, because of loss on \
             the path before (12 %)\n  \
             10.3.0.2 - 192.0.2.1 by TCP  no answer  12 % lost  weak signal, 25 % (by iw\\n)\n  \
             10.4.0.2 - 192.0.2.1 by TCP  used  12.3 ms  12 % lost\n  \
             live: 10.4.0.2:4500 - 192.0.2.1:4500  carries packets\n  \
             live: 10.3.0.2:4500 - 192.0.2.1:4500  no answer, other paths carry its packets\n  \
             live: 10.3.0.2:4500 - 192.0.2.1:4500  weak signal, other paths carry what this host \
             sends\n  \
             live: 10.5.0.2:4500 - 192.0.2.1:4500  carries only 10.8.0.0/16 protocol 17\n  \
             live: 10.5.0.2:4500 - 192.0.2.1:4500  carries 10.8.0.0/16 protocol 17, and \
             other packets\n  \
             live: 10.5.0.2:4500 - 192.0.2.1:4500  no answer, other paths carry 10.8.0.0/16 \
             protocol 17\n"
        );
    }
}
