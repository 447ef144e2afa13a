//! Proposals of algorithms, `aes256gcm16-prfsha256-x25519`, as strongSwan and Libreswan write them.

use crate::draft::Row;
use crate::fate::{Verdict, lost, refused, remark};

/// What an algorithm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Aead(&'static str),
    /// AES-CBC with keys of so many bits.
    Cbc(u16),
    Hmac(&'static str),
    Prf(bool),
    Group(&'static str),
    Kem(&'static str),
    NoKem,
    Esn(bool),
    /// The default proposals of the other program.
    Default,
    /// Broken or too weak.
    Weak(Kind),
    /// Sound, but absent in Strata.
    Absent(Kind),
}

/// The kind of an algorithm that Strata does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cipher,
    Hmac,
    Group,
}

/// Names of algorithms. The first name of each is that of strongSwan.
const NAMES: &[(&[&str], Part)] = &[
    (
        &[
            "aes128gcm16",
            "aes128gcm128",
            "aes128gcm",
            "aes_gcm128",
            "aes_gcm_c_128",
            "aes_gcm",
        ],
        Part::Aead("aes128gcm16"),
    ),
    (
        &[
            "aes256gcm16",
            "aes256gcm128",
            "aes256gcm",
            "aes_gcm256",
            "aes_gcm_c_256",
        ],
        Part::Aead("aes256gcm16"),
    ),
    (
        &["chacha20poly1305", "chacha20_poly1305"],
        Part::Aead("chacha20poly1305"),
    ),
    (&["aes128", "aes", "aes_cbc128", "aes_cbc"], Part::Cbc(128)),
    (&["aes256", "aes_cbc256"], Part::Cbc(256)),
    (
        &["sha256", "sha2_256", "sha2", "hmac_sha2_256"],
        Part::Hmac("sha256"),
    ),
    (
        &["sha384", "sha2_384", "hmac_sha2_384"],
        Part::Hmac("sha384"),
    ),
    (
        &["sha512", "sha2_512", "hmac_sha2_512"],
        Part::Hmac("sha512"),
    ),
    (&["prfsha256"], Part::Prf(true)),
    (
        &[
            "prfsha384",
            "prfsha512",
            "prfsha1",
            "prfmd5",
            "prfaesxcbc",
            "prfaescmac",
        ],
        Part::Prf(false),
    ),
    (&["x25519", "curve25519", "dh31"], Part::Group("x25519")),
    (&["ecp256", "dh19", "ecp_256"], Part::Group("p256")),
    (&["ecp384", "dh20", "ecp_384"], Part::Group("p384")),
    (&["modp3072", "dh15"], Part::Group("modp3072")),
    (&["modp2048", "dh14"], Part::Group("modp2048")),
    (&["ke1_mlkem512"], Part::Kem("mlkem512")),
    (&["ke1_mlkem768"], Part::Kem("mlkem768")),
    (&["ke1_mlkem1024"], Part::Kem("mlkem1024")),
    (&["ke1_none"], Part::NoKem),
    (&["esn"], Part::Esn(true)),
    (&["noesn"], Part::Esn(false)),
    (&["default", "aead"], Part::Default),
    (
        &[
            "3des",
            "des",
            "blowfish128",
            "blowfish192",
            "blowfish256",
            "blowfish",
            "cast128",
            "serpent",
            "twofish",
            "null",
        ],
        Part::Weak(Kind::Cipher),
    ),
    (
        &[
            "sha1",
            "sha",
            "md5",
            "sha1_160",
            "md5_128",
            "sha256_96",
            "hmac_sha1",
            "hmac_md5",
        ],
        Part::Weak(Kind::Hmac),
    ),
    (
        &[
            "modp768",
            "modp1024",
            "modp1536",
            "modp1024s160",
            "modp2048s224",
            "modp2048s256",
            "dh1",
            "dh2",
            "dh5",
            "dh22",
            "dh23",
            "dh24",
            "ecp192",
            "ecp224",
        ],
        Part::Weak(Kind::Group),
    ),
    (&["aesxcbc", "aescmac"], Part::Absent(Kind::Hmac)),
    (
        &[
            "modp4096", "modp6144", "modp8192", "ecp521", "x448", "curve448", "ecp256bp",
            "ecp384bp", "ecp512bp", "dh16", "dh17", "dh18", "dh21",
        ],
        Part::Absent(Kind::Group),
    ),
];

fn part(word: &str) -> Part {
    let named = NAMES.iter().find(|(names, _)| names.contains(&word));
    named.map_or(Part::Absent(Kind::Cipher), |(_, part)| *part)
}

/// The algorithms of all proposals of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Algorithms {
    suites: Vec<String>,
    groups: Vec<&'static str>,
    kems: Vec<&'static str>,
    esn: bool,
    /// True if a proposal leaves the choice to the program.
    takes_any: bool,
}

/// The protocol that a proposal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Ike,
    Esp,
}

/// A proposal.
#[derive(Default)]
struct Proposal {
    suites: Vec<String>,
    groups: Vec<&'static str>,
    kems: Vec<&'static str>,
    esn: bool,
    has_sha256: bool,
    weak: Vec<String>,
    absent: Vec<String>,
    takes_any: bool,
    lacks_group: bool,
}

impl Algorithms {
    /// Adds proposals, separated by commas. Algorithms that Strata lacks are left out.
    pub(crate) fn add(&mut self, text: &str, protocol: For) -> Verdict {
        let (mut weak, mut absent) = (Vec::new(), Vec::new());
        let mut is_any = false;
        let proposals = text.split(',').map(|one| one.trim().trim_end_matches('!'));
        if text.trim().is_empty() {
            return Ok(());
        }
        for text in proposals.filter(|text| !text.is_empty()) {
            let proposal = Proposal::read(&text.to_ascii_lowercase());
            is_any |= self.add_one(&proposal, protocol);
            let needs = proposal.needs(protocol);
            weak.extend(proposal.weak);
            absent.extend(proposal.absent.into_iter().chain(needs));
        }
        let lacks = [weak.clone(), absent].concat().join(", ");
        match (is_any, lacks.is_empty(), weak.is_empty()) {
            (true, true, _) => Ok(()),
            (true, false, true) => remark(format!("without {lacks}, which Strata does not have")),
            (true, false, false) => lost(format!(
                "without {}: Strata has no broken or weak algorithms",
                weak.join(", ")
            )),
            (false, ..) => refused(format!(
                "no proposal has algorithms that Strata has too ({lacks}): add aes256gcm16-prfsha256-x25519 at both ends first"
            )),
        }
    }

    fn add_one(&mut self, proposal: &Proposal, protocol: For) -> bool {
        if proposal.takes_any {
            self.takes_any = true;
            return true;
        }
        if !proposal.is_usable(protocol) {
            return false;
        }
        for suite in &proposal.suites {
            add(&mut self.suites, suite.clone());
        }
        if protocol == For::Ike {
            let kems = match proposal.kems.is_empty() {
                true => &["none"][..],
                false => &proposal.kems,
            };
            kems.iter().for_each(|kem| add(&mut self.kems, *kem));
            let groups = proposal.groups.iter();
            groups.for_each(|group| add(&mut self.groups, *group));
        }
        self.esn |= proposal.esn && protocol == For::Esp;
        true
    }

    /// Adds those of a child: a peer of Strata has one list for the IKE SA and its children.
    pub(crate) fn merge(&mut self, child: &Self) {
        child
            .suites
            .iter()
            .for_each(|suite| add(&mut self.suites, suite.clone()));
        self.esn |= child.esn;
        self.takes_any |= child.takes_any;
    }

    /// Returns the rows of the peer's table.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if !self.takes_any && !self.suites.is_empty() {
            rows.push(Row::list("suite", self.suites.iter().map(String::as_str)));
        }
        if !self.takes_any && !self.groups.is_empty() {
            rows.push(Row::list("groups", self.groups.iter().copied()));
        }
        if self.kems.iter().any(|kem| *kem != "none") {
            rows.push(Row::list("kem", self.kems.iter().copied()));
        }
        if self.esn {
            rows.push(Row::plain("esn", true));
        }
        rows
    }
}

impl Proposal {
    fn read(text: &str) -> Self {
        let words: Vec<_> = text
            .split(['-', ';', '+'])
            .filter(|word| !word.is_empty())
            .collect();
        let parts: Vec<_> = words.iter().map(|word| part(word)).collect();
        let mut proposal = Self::default();
        let has = |wanted: fn(&Part) -> bool| parts.iter().any(wanted);
        let is_cbc = |part: &Part| matches!(part, Part::Cbc(_));
        let hmacs = parts.iter().filter_map(|part| match part {
            Part::Hmac(hash) => Some(*hash),
            _ => None,
        });
        let hmacs: Vec<_> = hmacs.collect();
        for (word, part) in words.iter().zip(&parts) {
            proposal.take(word, *part, &hmacs);
        }
        let has_prf = has(|part| matches!(part, Part::Prf(_)));
        proposal.has_sha256 = match has_prf {
            true => has(|part| *part == Part::Prf(true)),
            false => hmacs.contains(&"sha256") || (!has(is_cbc) && hmacs.is_empty()),
        };
        let names_group = has(|part| {
            matches!(
                part,
                Part::Group(_) | Part::Weak(Kind::Group) | Part::Absent(Kind::Group)
            )
        });
        proposal.lacks_group = names_group && proposal.groups.is_empty();
        proposal
    }

    fn take(&mut self, word: &str, part: Part, hmacs: &[&str]) {
        match part {
            Part::Aead(suite) => self.suites.push(suite.to_owned()),
            Part::Cbc(bits) => {
                let suites = hmacs.iter().map(|hash| format!("aes{bits}-{hash}"));
                self.suites.extend(suites);
            }
            Part::Group(group) => self.groups.push(group),
            Part::Kem(kem) => self.kems.push(kem),
            Part::NoKem => self.kems.push("none"),
            Part::Esn(is_on) => self.esn |= is_on,
            Part::Default => self.takes_any = true,
            Part::Weak(_) => self.weak.push(word.to_owned()),
            Part::Absent(_) => self.absent.push(word.to_owned()),
            Part::Hmac(_) | Part::Prf(_) => {}
        }
    }

    /// Returns what the proposal needs of Strata besides its algorithms.
    fn needs(&self, protocol: For) -> Option<String> {
        let is_lacking = protocol == For::Ike && !self.has_sha256 && !self.takes_any;
        is_lacking.then(|| "PRFs other than prfsha256".to_owned())
    }

    fn is_usable(&self, protocol: For) -> bool {
        let has_suite = !self.suites.is_empty();
        match protocol {
            For::Ike => has_suite && self.has_sha256 && !self.lacks_group,
            For::Esp => has_suite,
        }
    }
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fate::Objection;
    use crate::note::Weight;
    use model::{Group, Kem, Suite};

    fn read(text: &str, protocol: For) -> Result<String, Objection> {
        let mut algorithms = Algorithms::default();
        algorithms.add(text, protocol)?;
        let rows = algorithms.rows().into_iter();
        Ok(rows
            .map(|row| format!("{} = {}\n", row.key, row.value))
            .collect())
    }

    #[test]
    fn every_suite_group_and_mechanism_of_ours_has_a_name() {
        let written = |wanted: &str| {
            NAMES.iter().any(|(_, part)| match part {
                Part::Aead(name) | Part::Group(name) | Part::Kem(name) => *name == wanted,
                Part::Cbc(bits) => wanted.starts_with(&format!("aes{bits}-")),
                _ => false,
            })
        };
        assert!(Suite::ALL.iter().all(|suite| written(suite.name())));
        assert!(Group::ALL.iter().all(|group| written(group.name())));
        assert!(Kem::ALL.iter().all(|kem| written(kem.name())));
    }

    #[test]
    fn proposals_are_lists_of_suites_and_groups() {
        for (text, rows) in [
            (
                "aes128gcm16-prfsha256-x25519",
                "suite = [\"aes128gcm16\"]\ngroups = [\"x25519\"]\n",
            ),
            (
                "aes256-sha256-modp2048,aes128-sha256-ecp256",
                "suite = [\"aes256-sha256\", \"aes128-sha256\"]\ngroups = [\"modp2048\", \"p256\"]\n",
            ),
            (
                "aes256gcm16-prfsha256-x25519-ke1_mlkem768, aes256gcm16-prfsha256-x25519",
                "suite = [\"aes256gcm16\"]\ngroups = [\"x25519\"]\nkem = [\"mlkem768\", \"none\"]\n",
            ),
            // Libreswan.
            (
                "aes_gcm128-sha2_256-dh31",
                "suite = [\"aes128gcm16\"]\ngroups = [\"x25519\"]\n",
            ),
            (
                "aes256-sha2_256;dh14",
                "suite = [\"aes256-sha256\"]\ngroups = [\"modp2048\"]\n",
            ),
            ("default", ""),
            (
                "aes256gcm16-prfsha256-ecp384!",
                "suite = [\"aes256gcm16\"]\ngroups = [\"p384\"]\n",
            ),
        ] {
            assert_eq!(read(text, For::Ike).as_deref(), Ok(rows), "{text}");
        }
        let esp = read("aes256gcm16-x25519-esn", For::Esp);
        assert_eq!(
            esp.as_deref(),
            Ok("suite = [\"aes256gcm16\"]\nesn = true\n")
        );
    }

    #[test]
    fn weak_algorithms_are_left_out_and_told() {
        let mut algorithms = Algorithms::default();
        let text = "aes256-sha256-modp2048,3des-sha1-modp1024";
        let objection = algorithms.add(text, For::Ike).unwrap_err();
        assert_eq!(objection.weight, Weight::Lost);
        assert!(
            objection.why.contains("3des, sha1, modp1024"),
            "{}",
            objection.why
        );
        assert_eq!(algorithms.rows().len(), 2);
    }

    #[test]
    fn a_connection_without_common_algorithms_is_refused() {
        for (text, why) in [
            ("3des-sha1-modp1024", "3des, sha1, modp1024"),
            ("aes256-sha1-modp2048", "sha1"),
            ("aes256gcm16-prfsha384-ecp384", "prfsha256"),
            ("aes256-sha512-modp4096", "modp4096"),
            ("camellia256-sha256-modp2048", "camellia256"),
        ] {
            let objection = read(text, For::Ike).unwrap_err();
            assert_eq!(objection.weight, Weight::Refused, "{text}");
            assert!(objection.why.contains(why), "{text}: {}", objection.why);
        }
        let esp = read("aes256-sha1", For::Esp).unwrap_err();
        assert_eq!(esp.weight, Weight::Refused);
    }

    #[test]
    fn sound_algorithms_that_are_absent_are_a_remark() {
        let mut algorithms = Algorithms::default();
        let text = "aes256gcm16-prfsha384-ecp521,aes256gcm16-prfsha256-x25519";
        let objection = algorithms.add(text, For::Ike).unwrap_err();
        assert_eq!(objection.weight, Weight::Remark, "{}", objection.why);
        assert_eq!(algorithms.rows().len(), 2);
    }
}
