//! Chains of certificates, good and bad in many ways, judged by us and by OpenSSL.

#![allow(clippy::expect_used, reason = "what a test sets up has to work")]

mod factory;

use crypto::{Certificate, TrustStore, UnixTime, Unsupported, Untrusted};
use factory::{Change, Factory, Kind, Purpose, of_authorities, of_ends};
use pem::Pem;
use std::path::PathBuf;
use std::process::Command;

/// 2030-01-01.
const TODAY: UnixTime = UnixTime::from_date(2030, 1, 1);

/// Certificates of a chain: root, two CAs, end.
const LENGTH: usize = 4;
const END: usize = LENGTH - 1;

/// Of all pairs of changes, every so many is tried.
const EACH: usize = 11;

/// Changes for which Strata refuses a chain that OpenSSL accepts, with the reason.
const DIFFERENT: &[(Where, Change, &str)] = &[
    (
        Where::End,
        Change::NoSignature,
        "IKE signs with the key (RFC 4945 section 5.1.3.2); OpenSSL judges no purpose here",
    ),
    (
        Where::End,
        Change::For(Purpose::Servers),
        "a purpose has to be IKE or any (RFC 4945 section 5.1.3.12)",
    ),
    (Where::End, Change::EndIsCa, "webpki takes no CA for a peer"),
    (
        Where::Anywhere,
        Change::CriticalPolicies,
        "webpki knows no policies, and refuses what is critical",
    ),
    (
        Where::Authority,
        Change::Permitted(Kind::Mail, true),
        "webpki judges no constraints on mail addresses, and refuses where there is one",
    ),
    (
        Where::Authority,
        Change::Excluded(Kind::Mail, true),
        "the same",
    ),
    (
        Where::Authority,
        Change::Permitted(Kind::Uri, true),
        "webpki judges no constraints on URIs",
    ),
    (
        Where::Authority,
        Change::Excluded(Kind::Uri, true),
        "webpki takes an excluded URI for that of the end",
    ),
    (
        Where::Authority,
        Change::Permitted(Kind::Directory, true),
        "webpki judges no constraints on subjects",
    ),
    (
        Where::Authority,
        Change::Excluded(Kind::Directory, true),
        "webpki takes an excluded subject for that of the end",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Authority,
    End,
    Anywhere,
}

impl Where {
    fn covers(self, place: usize) -> bool {
        match self {
            Self::Authority => place < END,
            Self::End => place == END,
            Self::Anywhere => true,
        }
    }
}

/// A folder for the files that OpenSSL reads, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("strata-chains-{name}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&folder.0).expect("a temporary folder can be made");
        folder
    }

    /// Returns OpenSSL's verdict: `Ok`, or the number of the first error.
    fn openssl(&self, chain: &[rcgen::Certificate]) -> Result<(), u32> {
        let write = |name: &str, certificates: &[rcgen::Certificate]| {
            let text: String = certificates.iter().map(pem).collect();
            std::fs::write(self.0.join(name), text).expect("the file can be written");
        };
        write("root.pem", &chain[..1]);
        write("between.pem", &chain[1..END]);
        write("end.pem", &chain[END..]);
        let line = format!(
            "verify -attime {} -purpose any -no-CApath -no-CAstore -CAfile root.pem \
             -untrusted between.pem end.pem",
            TODAY.0
        );
        let mut openssl = Command::new("openssl");
        openssl.args(line.split_whitespace()).current_dir(&self.0);
        let output = openssl.output().expect("openssl runs");
        if output.status.success() {
            return Ok(());
        }
        let told = String::from_utf8_lossy(&output.stderr);
        let number = told.lines().find_map(|line| line.strip_prefix("error "));
        let number = number.and_then(|line| line.split(' ').next());
        let number = number.and_then(|number| number.parse().ok());
        Err(number.unwrap_or_else(|| panic!("openssl: {told}")))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pem(certificate: &rcgen::Certificate) -> String {
    pem::encode(&Pem::new("CERTIFICATE", certificate.der().to_vec()))
}

/// Returns our verdict on a chain that ends at one of these roots.
fn ours(roots: &[&rcgen::Certificate], chain: &[rcgen::Certificate]) -> Result<(), Untrusted> {
    let roots = roots.iter();
    let roots = roots.map(|root| Certificate::from_der(root.der()).expect("it is a certificate"));
    let sent = chain[1..].iter().rev();
    let sent: Vec<_> = sent.map(|one| one.der().to_vec()).collect();
    TrustStore::new(roots.collect())
        .verify(&sent, TODAY)
        .map(drop)
}

fn singles() -> Vec<(usize, Change)> {
    let authorities =
        (0..END).flat_map(|place| of_authorities().into_iter().map(move |c| (place, c)));
    let ends = of_ends().into_iter().map(|change| (END, change));
    authorities.chain(ends).collect()
}

fn is_listed(changes: &[(usize, Change)]) -> bool {
    let mut changes = changes.iter();
    changes.any(|(place, change)| {
        let mut rows = DIFFERENT.iter();
        rows.any(|(at, different, _)| at.covers(*place) && different == change)
    })
}

/// The numbers of OpenSSL's errors (`X509_V_ERR_…`) that say the same as ours.
fn same(why: &Untrusted) -> &'static [u32] {
    match why {
        Untrusted::NotYetValid(_) | Untrusted::AuthorityNotYetValid(_) => &[9],
        Untrusted::Expired(_) | Untrusted::AuthorityExpired(_) => &[10],
        Untrusted::MayNotCertify(_) => &[24, 32, 79],
        Untrusted::TooDeep(_) => &[25],
        Untrusted::NameOutside => &[47, 48],
        Untrusted::Unsupported(Unsupported::Extension(_)) => &[34],
        // OpenSSL judges these names, and finds them outside.
        Untrusted::Unsupported(Unsupported::Constraints(_)) => &[47, 48],
        _ => &[],
    }
}

// Weakness: 203
#[test]
fn we_refuse_what_openssl_refuses_and_say_the_same_of_it() {
    let (factory, folder) = (Factory::new(LENGTH), Folder::new("singles"));
    let mut listed = Vec::new();
    for change in singles() {
        let chain = factory.issue(&[change]);
        match (ours(&[&chain[0]], &chain), folder.openssl(&chain)) {
            (Ok(()), Ok(())) => {}
            (Err(why), Err(theirs)) => {
                assert!(
                    same(&why).contains(&theirs),
                    "{change:?}: {why}, OpenSSL {theirs}"
                );
            }
            (Err(why), Ok(())) => {
                assert!(is_listed(&[change]), "{change:?}: only we refuse: {why}");
                listed.push(change);
            }
            (Ok(()), Err(theirs)) => panic!("{change:?}: only OpenSSL refuses: {theirs}"),
        }
    }
    for (at, change, why) in DIFFERENT {
        let mut found = listed.iter();
        let found = found.any(|(place, other)| at.covers(*place) && other == change);
        assert!(found, "no difference by {change:?}, which is listed: {why}");
    }
}

#[test]
fn of_two_changes_none_hides_the_other() {
    let (factory, folder) = (Factory::new(LENGTH), Folder::new("pairs"));
    let singles = singles();
    let pairs = singles.iter().enumerate();
    let pairs = pairs.flat_map(|(at, one)| singles[at + 1..].iter().map(move |two| [*one, *two]));
    for changes in pairs.step_by(EACH) {
        let chain = factory.issue(&changes);
        match (ours(&[&chain[0]], &chain), folder.openssl(&chain)) {
            (Err(why), Ok(())) => {
                assert!(is_listed(&changes), "{changes:?}: only we refuse: {why}")
            }
            (Ok(()), Err(theirs)) => panic!("{changes:?}: only OpenSSL refuses: {theirs}"),
            _ => {}
        }
    }
}

/// Otherwise any chain might be refused.
// Weakness: 203
#[test]
fn what_the_root_says_of_itself_is_the_reason_and_nothing_else() {
    let factory = Factory::new(LENGTH);
    let good = factory.issue(&[]);
    for (change, number) in [
        (Change::PathLen(0), 25),
        (Change::NoCertSign, 32),
        (Change::NoCa, 24),
        (Change::Future, 9),
        (Change::Past, 10),
        (Change::UnknownCritical, 34),
        (Change::Permitted(Kind::Dns, false), 47),
    ] {
        let chain = factory.issue(&[(0, change)]);
        let why = ours(&[&chain[0]], &chain).expect_err("it is refused");
        assert!(same(&why).contains(&number), "{change:?}: {why}");
        assert_eq!(ours(&[&good[0]], &chain), Ok(()), "{change:?}");
    }
}

/// In either order, as the operator lists them.
#[test]
fn one_certificate_of_a_ca_that_was_renewed_suffices() {
    let factory = Factory::new(LENGTH);
    let chain = factory.issue(&[]);
    for change in [
        Change::Past,
        Change::PathLen(0),
        Change::UnknownCritical,
        Change::Permitted(Kind::Dns, false),
    ] {
        let (old, new) = (&factory.issue(&[(0, change)])[0], &chain[0]);
        assert!(ours(&[old], &chain).is_err(), "{change:?}");
        for roots in [[old, new], [new, old]] {
            assert_eq!(ours(&roots, &chain), Ok(()), "{change:?}");
        }
    }
}
