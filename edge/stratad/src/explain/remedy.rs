//! The line to change after a failed attempt, and its new text.

use super::certificate;
use super::compare::{Topic, verdict};
use config::Places;
use control::{Fix, Verdict};
use crypto::Certificate;
use model::{Group, Identity, Kem, Suite, Zone, ZoneAgreement};
use node::{Attempt, BadPpk, DownReason, End, Refusal};
use std::fmt::Display;
use wire::ike::{GroupId, NotifyType, Transform, TransformType};

/// The lines of one peer in the file.
pub struct Remedy<'a> {
    /// All lines.
    pub places: &'a Places,
    /// The peer's table in dotted form.
    pub table: &'a str,
    /// True if we connect to the peer by UDP only.
    pub by_udp: bool,
    /// True if our file encodes the pre-shared key behind `0s` or `0x`.
    pub decodes_psk: bool,
}

impl Remedy<'_> {
    /// Returns fixes, the most likely first; empty if the attempt is in progress or succeeded.
    pub fn fixes(&self, attempt: &Attempt) -> Vec<Fix> {
        let mut fixes = match &attempt.end {
            None | Some(End::Up) => self.for_error(attempt),
            Some(End::Down(why)) => self.for_end(why, attempt),
            Some(End::Refused(why)) => self.for_refusal(why, attempt),
        };
        let remarks = attempt.remarks.iter();
        fixes.extend(remarks.flat_map(|remark| self.for_remark(remark, attempt)));
        fixes
    }

    fn for_end(&self, why: &DownReason, attempt: &Attempt) -> Vec<Fix> {
        let peer = attempt.path.remote.ip();
        match why {
            DownReason::Refused { .. } => self.for_error(attempt),
            DownReason::WrongKey => vec![self.key()],
            DownReason::AuthenticationRefused { ours } => {
                [vec![self.key()], self.identities(ours)].concat()
            }
            DownReason::PpkRefused { ours, .. } => {
                [vec![self.same_ppk(), self.key()], self.identities(ours)].concat()
            }
            DownReason::NoPpk => self.no_ppk(),
            DownReason::BadProof(why) => certificate::theirs(self, why, presented(attempt)),
            DownReason::CertificateRefused { ours, why } => {
                certificate::ours(self, ours, *why, attempt.ours.certificate.as_deref())
            }
            DownReason::KeyRefused { ours } => {
                let key = elsewhere(
                    "write the output of `strata pki pubkey` for our `key` into the file of `pubkey`",
                );
                [vec![key], self.identities(ours)].concat()
            }
            DownReason::SignatureNotAccepted(_) => certificate::other_kind(self),
            DownReason::CannotSign => vec![self.fix("node.key", "name the private key of `cert`")],
            DownReason::WrongIdentity { theirs, .. } => vec![self.identity(theirs)],
            DownReason::ChildRefused { notify } => match *notify {
                NotifyType::NO_PROPOSAL_CHOSEN if is_unencrypted(&attempt.ours.esp) => vec![
                    self.at(
                        "unencrypted",
                        "remove the line, and the tunnel is encrypted",
                    ),
                    elsewhere("or write the same `unencrypted`, with a time to come"),
                ],
                NotifyType::NO_PROPOSAL_CHOSEN => {
                    let mut fixes = self.suite(&attempt.theirs.esp);
                    let group = "or write a group that the peer allows";
                    fixes.push(self.at("groups", group));
                    fixes
                }
                NotifyType::TS_UNACCEPTABLE => self.selectors(attempt),
                NotifyType::ZONES_REQUIRED => vec![match attempt.ours.zones {
                    None => self.at("zones", "write `zones = \"require\"`"),
                    Some(_) => self.at("layout", "write the same `layout` and `map` as the peer"),
                }],
                NotifyType::FAILED_CP_REQUIRED => {
                    vec![self.at("local", "write `local = [\"dynamic\"]`")]
                }
                NotifyType::INTERNAL_ADDRESS_FAILURE => {
                    vec![elsewhere("add a prefix to `addresses` of the pool")]
                }
                NotifyType::TEMPORARY_FAILURE => vec![elsewhere("run `strata up` for this host")],
                _ => Vec::new(),
            },
            DownReason::NoAddress => vec![
                elsewhere("configure a pool for this host"),
                self.at("local", "or list our addresses"),
            ],
            DownReason::ZonesRequired => self.zones_required(attempt),
            DownReason::RedirectNotListed { to } => {
                vec![self.at(
                    "redirect",
                    format!("list {to}, if it is a gateway of this peer"),
                )]
            }
            DownReason::Unreachable { .. } => self.silence(attempt),
            DownReason::NotConnected { to } => self.not_connected(to.port()),
            DownReason::StreamUnanswered { to } => vec![self.at(
                "tcp_port",
                format!("compare {} with `tcp` in [listen] of the peer", to.port()),
            )],
            DownReason::AuthUnanswered { port } => vec![elsewhere(format!(
                "allow UDP port {port} between this host and {peer}"
            ))],
            DownReason::LongAuthUnanswered(uncut) | DownReason::LongKemUnanswered(uncut) => {
                vec![self.fragment(uncut.ours)]
            }
            DownReason::NotChildless => vec![elsewhere(
                "use an implementation with RFC 6023, such as Strata",
            )],
            _ => Vec::new(),
        }
    }

    fn for_refusal(&self, why: &Refusal, attempt: &Attempt) -> Vec<Fix> {
        match why {
            Refusal::NoIkeProposal { .. } => self.algorithms(attempt),
            Refusal::NoEspProposal { .. } => self.child_algorithms(attempt),
            Refusal::Unencrypted => vec![
                elsewhere("remove `unencrypted`, and the tunnel is encrypted"),
                self.at(
                    "unencrypted",
                    "or write the same as the peer, if every router on the path may read the tunnel",
                ),
            ],
            Refusal::UnknownIdentity(theirs) => vec![self.identity(theirs)],
            Refusal::WrongKey(_) => vec![self.key()],
            Refusal::BadProof { why, .. } => certificate::theirs(self, why, presented(attempt)),
            Refusal::BadPpk { why, .. } => match why {
                BadPpk::Missing => self.no_ppk(),
                _ => vec![self.same_ppk()],
            },
            Refusal::CannotProve | Refusal::SignatureNotAccepted(_) => {
                certificate::other_kind(self)
            }
            Refusal::AuthenticationMethod => {
                vec![elsewhere("use a pre-shared key or a signature")]
            }
            Refusal::NotWhoWeAre { wanted, ours } => vec![
                elsewhere(format!(
                    "write `id = \"{ours}\"` in its table for this host"
                )),
                self.fix("node.id", format!("or write `id = \"{wanted}\"` here")),
            ],
            Refusal::WrongAddress { address, .. } => vec![self.at(
                "address",
                format!("write `address = \"{address}\"`, or remove the line"),
            )],
            Refusal::TrafficSelectors => self.selectors(attempt),
            Refusal::NoAddressLeft { pool } => vec![self.fix(
                &format!("pool.{pool}.addresses"),
                "add a prefix, or shorten `lease`",
            )],
            Refusal::TooManyUsers { most, .. } => {
                vec![self.at("users", format!("write a number above {most}"))]
            }
            Refusal::UpElsewhere { .. } => vec![self.at(
                "unique",
                "write `unique = \"replace\"`, if the newer tunnel should replace the older",
            )],
            Refusal::NoRequest { .. } => {
                vec![elsewhere(
                    "write `local = [\"dynamic\"]` in its table for this host",
                )]
            }
            Refusal::ZonesRequired => self.zones_required(attempt),
            Refusal::NoChildForRole => {
                vec![self.fix(self.table, "add a [peer.NAME] for a tunnel")]
            }
            _ => Vec::new(),
        }
    }

    fn for_remark(&self, remark: &Refusal, attempt: &Attempt) -> Vec<Fix> {
        match remark {
            Refusal::UnprovedLack(why) if attempt.end.is_none() => self.for_end(why, attempt),
            Refusal::LicenceNotAccepted(licence) => vec![self.at(
                "licences",
                format!(
                    "list the licence for {} at the peer too, or remove it here",
                    licence.node
                ),
            )],
            Refusal::ZonesNotAgreed => self.zones(attempt),
            Refusal::LevelNotAgreed => self.level(attempt),
            Refusal::WithoutPpk => vec![self.same_ppk()],
            Refusal::WithoutKem => vec![same_kem()],
            _ => Vec::new(),
        }
    }

    /// Returns fixes for an error notify, which is unauthenticated but the only evidence.
    fn for_error(&self, attempt: &Attempt) -> Vec<Fix> {
        match attempt.theirs.error {
            Some(NotifyType::NO_PROPOSAL_CHOSEN) => {
                let mut fixes = self.suite(&attempt.theirs.ike);
                if verdict(Topic::Kem, attempt) == Verdict::Suspect && asks_for_kem(attempt) {
                    fixes.extend(self.kem(&attempt.theirs.ike));
                }
                fixes
            }
            Some(NotifyType::INVALID_KE_PAYLOAD) => self.algorithms(attempt),
            None if is_silence(attempt) => self.silence(attempt),
            _ => Vec::new(),
        }
    }

    /// Returns fixes for a peer that has not answered so far, or at all.
    fn silence(&self, attempt: &Attempt) -> Vec<Fix> {
        if let Some(uncut) = attempt.uncut {
            return vec![self.fragment(uncut.ours)];
        }
        let remote = attempt.path.remote.ip();
        let mut fixes = vec![
            self.at("address", format!("check that {remote} is correct")),
            elsewhere("start stratad, and allow UDP ports 500 and 4500"),
        ];
        fixes.extend(self.stream());
        fixes
    }

    /// Returns the fix for networks that block UDP, unless TCP is configured already.
    fn stream(&self) -> Option<Fix> {
        let fix = self.at(
            "tcp",
            "or write `tcp = \"fallback\"`, and `tcp = 4500` in [listen] of the peer",
        );
        self.by_udp.then_some(fix)
    }

    fn not_connected(&self, port: u16) -> Vec<Fix> {
        vec![
            elsewhere(format!(
                "write `tcp = {port}` in [listen], start stratad, and allow that TCP port"
            )),
            self.at("tcp_port", "or write the TCP port of the peer"),
        ]
    }

    /// Returns the fix for paths that drop IP fragments.
    fn fragment(&self, ours: bool) -> Fix {
        match ours {
            true => self.fix("listen.fragment", "write `fragment = 1280`"),
            false => elsewhere("enable IKE fragmentation (RFC 7383)"),
        }
    }

    /// Returns fixes for IKE algorithms. Suite and group can be changed here; other differences
    /// must be fixed at the other end.
    fn algorithms(&self, attempt: &Attempt) -> Vec<Fix> {
        let differs = |topic: &Topic| verdict(*topic, attempt) == Verdict::Differs;
        if differs(&Topic::IkeCipher) {
            return self.suite(&attempt.theirs.ike);
        }
        if differs(&Topic::KeyExchange) {
            return self.group(&attempt.theirs.ike);
        }
        let kem = verdict(Topic::Kem, attempt);
        if kem == Verdict::Differs || (kem == Verdict::Suspect && asks_for_kem(attempt)) {
            return self.kem(&attempt.theirs.ike);
        }
        let kinds = [
            (Topic::Prf, "PRF"),
            (Topic::Integrity, "AEAD without integrity"),
        ];
        let other = kinds.iter().filter(|(topic, _)| differs(topic));
        other
            .map(|(_, what)| elsewhere(format!("allow our {what}, shown above")))
            .collect()
    }

    /// Returns fixes for child algorithms. A peer that proposes only extended sequence numbers
    /// accepts no others.
    fn child_algorithms(&self, attempt: &Attempt) -> Vec<Fix> {
        match verdict(Topic::SequenceNumbers, attempt) {
            Verdict::Differs => vec![
                self.at("esn", "write `esn = true`, without `zones`"),
                elsewhere("or allow 32-bit sequence numbers as well"),
            ],
            _ => self.suite(&attempt.theirs.esp),
        }
    }

    /// Returns a fix with a suite that the other end proposes and that we support, if there is one.
    fn suite(&self, theirs: &[Transform]) -> Vec<Fix> {
        let offered = |suite: &&Suite| {
            let forms = [false, true].map(|implicit| Transform::suite(**suite, implicit));
            let hmac = Transform::integrity(**suite);
            forms.iter().any(|form| theirs.contains(form))
                && hmac.is_none_or(|hmac| theirs.contains(&hmac))
        };
        vec![match Suite::ALL.iter().find(offered) {
            Some(suite) => self.at("suite", format!("write `suite = \"{suite}\"`")),
            None if theirs.is_empty() => self.at("suite", "write a suite that the peer allows"),
            None => elsewhere("allow one of our suites, shown above"),
        }]
    }

    /// Returns a fix with a group that the other end proposes and that we support, if there is one.
    fn group(&self, theirs: &[Transform]) -> Vec<Fix> {
        let known = [
            (Group::X25519, GroupId::CURVE25519),
            (Group::P256, GroupId::SECP256R1),
            (Group::P384, GroupId::SECP384R1),
            (Group::Modp3072, GroupId::MODP_3072),
            (Group::Modp2048, GroupId::MODP_2048),
        ];
        let offered = |(_, id): &&(Group, GroupId)| theirs.contains(&Transform::group(*id));
        vec![match known.iter().find(offered) {
            Some((group, _)) => self.at("groups", format!("write `groups = \"{group}\"`")),
            None => elsewhere("allow one of our groups, shown above"),
        }]
    }

    /// Returns a fix with an additional key exchange that the other end proposes; otherwise the
    /// other end must allow ours.
    fn kem(&self, theirs: &[Transform]) -> Vec<Fix> {
        let known = [
            (Kem::MlKem768, GroupId::ML_KEM_768),
            (Kem::MlKem1024, GroupId::ML_KEM_1024),
            (Kem::MlKem512, GroupId::ML_KEM_512),
        ];
        let names = |one: &Transform, id: GroupId| one.kind.is_additional() && one.id == id.0;
        let offered =
            |(_, id): &&(Kem, GroupId)| theirs.iter().any(|transform| names(transform, *id));
        match known.iter().find(offered) {
            Some((kem, _)) => vec![self.at("kem", format!("write `kem = \"{kem}\"`"))],
            None => vec![
                same_kem(),
                self.at("kem", "or add \"none\" to the list, to make it optional"),
            ],
        }
    }

    fn key(&self) -> Fix {
        let change = match self.decodes_psk {
            false => "write the same key into the files of both ends",
            true => {
                "write the same key into the files of both ends; ours is decoded behind `0s` or `0x`, and the peer may use the text"
            }
        };
        self.at("psk", change)
    }

    fn same_ppk(&self) -> Fix {
        self.at(
            "ppk",
            "write the same `id` at both ends, and the same key into both files",
        )
    }

    /// Returns fixes for a PPK that is required here and missing at the other end.
    fn no_ppk(&self) -> Vec<Fix> {
        vec![
            elsewhere("write the same `ppk` in its table for this host"),
            self.at("ppk", "or write `required = false`, to make it optional"),
        ]
    }

    /// Returns fixes for a peer that knows us by another identity, or has itself another: it
    /// refuses both without a reason.
    fn identities(&self, ours: &Identity) -> Vec<Fix> {
        vec![
            elsewhere(format!(
                "write `id = \"{ours}\"` in its table for this host"
            )),
            self.at("id", "compare it with `id` in [node] of the peer"),
        ]
    }

    fn identity(&self, theirs: &Identity) -> Fix {
        self.at(
            "id",
            format!("write `id = \"{theirs}\"`, if that is the peer"),
        )
    }

    fn zones(&self, attempt: &Attempt) -> Vec<Fix> {
        if let (Some(ours), Some(theirs)) = (&attempt.ours.zones, &attempt.theirs.zones) {
            return match ours.zones == theirs.zones {
                true => vec![self.at("map", map(theirs))],
                false => {
                    let layout = layout(theirs);
                    vec![self.at("layout", format!("write `{layout}`, as at the peer"))]
                }
            };
        }
        vec![elsewhere(
            "write `zones = \"accept\"` or `zones = \"require\"` in its table for this host; only Strata supports zones",
        )]
    }

    fn zones_required(&self, attempt: &Attempt) -> Vec<Fix> {
        let mut fixes = self.zones(attempt);
        if attempt.ours.zones.is_none() || attempt.theirs.zones.is_none() {
            let change = "or write `zones = \"accept\"`, to allow a tunnel without zones";
            fixes.push(self.at("zones", change));
        }
        fixes
    }

    /// Returns the fix for different levels. The other end's level is known only if the peer has
    /// sent it.
    fn level(&self, attempt: &Attempt) -> Vec<Fix> {
        let theirs = attempt.theirs.zones.as_ref();
        let fix = match theirs.and_then(|theirs| theirs.level) {
            Some(theirs) => format!("write the same as the peer, {}", theirs.class),
            None => "write the same `level` at both ends, or remove it here".to_owned(),
        };
        vec![self.at("level.integrity", fix)]
    }

    fn selectors(&self, attempt: &Attempt) -> Vec<Fix> {
        let sides = [
            (Topic::OurTraffic, "local", &attempt.theirs.remote),
            (Topic::TheirTraffic, "remote", &attempt.theirs.local),
        ];
        let sides = sides
            .into_iter()
            .filter(|(topic, ..)| verdict(*topic, attempt) != Verdict::Fits);
        sides
            .map(|(_, key, theirs)| match theirs.is_empty() {
                true => self.at(key, "write the prefixes that the peer allows"),
                false => self.at(key, format!("write `{key} = [{}]`", quoted(theirs))),
            })
            .collect()
    }

    pub(super) fn at(&self, key: &str, change: impl Into<String>) -> Fix {
        self.fix(&format!("{}.{key}", self.table), change)
    }

    pub(super) fn fix(&self, key: &str, change: impl Into<String>) -> Fix {
        Fix {
            file: Some(self.places.file().display().to_string()),
            line: self.places.line(key),
            key: Some(key.to_owned()),
            change: change.into(),
        }
    }
}

/// Returns true if an offer has a suite of ESP without encryption.
fn is_unencrypted(esp: &[Transform]) -> bool {
    let mut ciphers = esp.iter().filter(|one| one.kind == TransformType::ENCR);
    ciphers.any(|cipher| !cipher.encrypts())
}

/// Formats zones in the syntax of the file.
fn layout(agreement: &ZoneAgreement) -> String {
    let zones = agreement.zones.iter();
    let zones = zones.map(|zone| {
        let Zone {
            selector, suite, ..
        } = zone;
        format!("{{ zone = \"{selector}\", suite = \"{suite}\" }}")
    });
    format!("layout = [{}]", zones.collect::<Vec<_>>().join(", "))
}

/// Returns the fix for a map that differs from the other end's.
fn map(agreement: &ZoneAgreement) -> String {
    match agreement.fixed_runs() {
        runs if runs.is_empty() => "remove the line: the map is not fixed at the peer".to_owned(),
        runs => format!("write `map = [{}]`, as at the peer", quoted(&runs)),
    }
}

/// Returns true if more than one request was sent and no response arrived.
fn is_silence(attempt: &Attempt) -> bool {
    attempt.end.is_none() && attempt.tries > 1 && attempt.remarks.is_empty()
}

/// Returns true if we propose an additional key exchange.
fn asks_for_kem(attempt: &Attempt) -> bool {
    let mut ours = attempt.ours.ike.iter();
    ours.any(|transform| transform.kind.is_additional())
}

fn same_kem() -> Fix {
    elsewhere("write the same `kem` in its table for this host")
}

/// Returns the certificate that the peer sent.
fn presented(attempt: &Attempt) -> Option<&Certificate> {
    attempt.theirs.certificate.as_deref()
}

/// Returns a fix at the other end.
pub(super) fn elsewhere(change: impl Into<String>) -> Fix {
    Fix {
        file: None,
        line: None,
        key: None,
        change: change.into(),
    }
}

fn quoted(texts: &[impl Display]) -> String {
    let quoted: Vec<_> = texts.iter().map(|one| format!("\"{one}\"")).collect();
    quoted.join(", ")
}
