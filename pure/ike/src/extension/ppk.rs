//! Post-quantum pre-shared keys (RFC 8784): a secret that is mixed into the keys (`keys.rs`), in
//! addition to the proofs of identity. An attacker that records all traffic today, and breaks the
//! key exchange with a quantum computer later, then obtains no tunnel's keys.
//!
//! ```text
//!  IKE_SA_INIT  ..., N(USE_PPK)  -->            "I have a PPK for you"
//!                           <--  ..., N(USE_PPK)            "I have PPKs"
//!  IKE_AUTH     ..., N(PPK_IDENTITY, its name), [N(NO_PPK_AUTH)]  -->
//!                           <--  ..., N(PPK_IDENTITY)       "it is in our keys"
//! ```
//!
//! AUTH proves the PPK together with the identity. An initiator that treats the PPK as optional
//! adds the AUTH value without it, in NO_PPK_AUTH. The responder accepts that value if it does not
//! have the PPK. An attacker gains nothing by removing USE_PPK from the first messages, because
//! AUTH covers them.
//!
//! IKE_AUTH itself is sealed without the PPK. A quantum computer may therefore reveal identities
//! and selectors, and all later messages of an IKE SA that was not rekeyed (section 6).

use crate::exchange::{find_notify, notify};
use crypto::Secret;
use wire::ike::{Authentication, Message, NotifyType, Payload};

/// Types of PPK names (section 5.1). Both ends have to agree on the meaning of an opaque name; here
/// it is treated like a fixed one.
const OPAQUE: u8 = 1;
const FIXED: u8 = 2;

/// Maximum number of octets that are kept of a name from an unauthenticated peer.
const LONGEST: usize = 64;

/// A post-quantum pre-shared key for one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ppk {
    /// Name of the key at both ends.
    pub id: String,
    /// The key. It needs 256 bits of entropy for full protection (section 6).
    pub secret: Secret,
    /// True if the SA requires the key; otherwise it is used if the peer has it too.
    pub required: bool,
}

/// Reason for which an initiator's use of a PPK is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPpk {
    /// The initiator uses no PPK, but one is required.
    #[error("the peer uses no PPK, which is required here")]
    Missing,
    /// The initiator announced a PPK, but did not name it.
    #[error("the peer violated the protocol: it does not name the PPK that it uses")]
    Unnamed,
    /// The initiator named another PPK than the configured one.
    #[error("the peer's PPK `{0}` is not the configured one")]
    Unknown(String),
    /// The proof does not verify, although the name of the PPK matches.
    #[error("the peer's proof does not verify")]
    Wrong,
}

/// A responder's decision about an initiator's PPK (section 3, table 1).
pub(crate) enum Choice<'a> {
    /// Mix the PPK into the keys.
    Use(&'a Ppk),
    /// Use no PPK, as in plain IKEv2.
    Without,
    /// Use no PPK, and verify NO_PPK_AUTH instead of AUTH.
    WithoutBy(&'a [u8]),
}

/// Returns the notify for IKE_SA_INIT of an end with a PPK. An initiator sends it if it has a PPK
/// for the responder; a responder sends it if it has any, because it does not know the initiator
/// yet.
pub(crate) const fn payload() -> Payload {
    notify(NotifyType::USE_PPK, Vec::new())
}

/// Returns true if an IKE_SA_INIT message announces a PPK.
pub(crate) fn is_offered(message: &Message) -> bool {
    find_notify(message, NotifyType::USE_PPK).is_some()
}

/// Returns the notify that names a PPK in the IKE_AUTH request.
pub(crate) fn identity(ppk: &Ppk) -> Payload {
    let data = [&[FIXED], ppk.id.as_bytes()].concat();
    notify(NotifyType::PPK_IDENTITY, data)
}

/// Returns the notify with the proof for a responder that does not have the PPK.
pub(crate) fn no_ppk_auth(proof: Authentication) -> Payload {
    notify(NotifyType::NO_PPK_AUTH, proof.data)
}

/// Returns the notify for the IKE_AUTH response that confirms the PPK.
pub(crate) const fn confirmation() -> Payload {
    notify(NotifyType::PPK_IDENTITY, Vec::new())
}

/// Returns true if a response confirms the PPK; "the content of the received PPK_IDENTITY (if any)
/// MUST be ignored".
pub(crate) fn is_confirmed(response: &Message) -> bool {
    find_notify(response, NotifyType::PPK_IDENTITY).is_some()
}

/// Returns the PPK's name in a request, escaped for logs: it is not authenticated.
pub(crate) fn named(request: &Message) -> Option<String> {
    let name = name(request)?;
    let name = &name[..name.len().min(LONGEST)];
    Some(String::from_utf8_lossy(name).escape_debug().to_string())
}

fn name(request: &Message) -> Option<&[u8]> {
    let identity = find_notify(request, NotifyType::PPK_IDENTITY)?;
    match identity.data.split_first() {
        Some((&(OPAQUE | FIXED), name)) => Some(name),
        // Private and later types: no configured PPK has such a name.
        _ => Some(&[]),
    }
}

/// Decides about an IKE_AUTH request. `agreed`: both ends sent USE_PPK.
pub(crate) fn choose<'a>(
    agreed: bool,
    ours: Option<&'a Ppk>,
    request: &'a Message,
) -> Result<Choice<'a>, BadPpk> {
    let required = ours.is_some_and(|ppk| ppk.required);
    if !agreed {
        return match required {
            true => Err(BadPpk::Missing),
            false => Ok(Choice::Without),
        };
    }
    let name = name(request).ok_or(BadPpk::Unnamed)?;
    if let Some(ppk) = ours.filter(|ppk| ppk.id.as_bytes() == name) {
        return Ok(Choice::Use(ppk));
    }
    match find_notify(request, NotifyType::NO_PPK_AUTH) {
        Some(proof) if !required => Ok(Choice::WithoutBy(&proof.data)),
        _ => Err(BadPpk::Unknown(named(request).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::saying;

    fn ppk(required: bool) -> Ppk {
        Ppk {
            id: "office2026".to_owned(),
            secret: Secret::new(vec![7; 32]),
            required,
        }
    }

    /// Returns a message with a PPK_IDENTITY of this type and name, and optionally NO_PPK_AUTH.
    fn naming(kind: u8, name: &str, without: bool) -> Message {
        let data = [&[kind], name.as_bytes()].concat();
        let identity = notify(NotifyType::PPK_IDENTITY, data);
        let without = without.then(|| notify(NotifyType::NO_PPK_AUTH, vec![9; 32]));
        saying(std::iter::once(identity).chain(without).collect())
    }

    fn chosen(agreed: bool, ours: Option<&Ppk>, request: &Message) -> Result<&'static str, BadPpk> {
        choose(agreed, ours, request).map(|choice| match choice {
            Choice::Use(_) => "use it",
            Choice::Without => "without",
            Choice::WithoutBy(_) => "without, by NO_PPK_AUTH",
        })
    }

    /// Every row of the table, in its order.
    #[test]
    fn the_choice_is_that_of_rfc_8784_table_1() {
        let (optional, required) = (ppk(false), ppk(true));
        let unknown = || Err(BadPpk::Unknown("office2026".to_owned()));
        for without in [false, true] {
            let request = naming(FIXED, "office2026", without);
            assert_eq!(chosen(false, None, &request), Ok("without"));
            assert_eq!(chosen(false, Some(&optional), &request), Ok("without"));
            let refused = chosen(false, Some(&required), &request);
            assert_eq!(refused, Err(BadPpk::Missing));
            for ours in [&optional, &required] {
                assert_eq!(chosen(true, Some(ours), &request), Ok("use it"));
            }
        }
        let only = naming(FIXED, "office2026", false);
        let either = naming(FIXED, "office2026", true);
        // "Configured with PPK" means that the end has the named one.
        let other = |required| Ppk {
            id: "office2025".to_owned(),
            ..ppk(required)
        };
        let (optional, required) = (other(false), other(true));
        for ours in [None, Some(&optional), Some(&required)] {
            assert_eq!(chosen(true, ours, &only), unknown());
        }
        assert_eq!(chosen(true, Some(&required), &either), unknown());
        for ours in [None, Some(&optional)] {
            assert_eq!(chosen(true, ours, &either), Ok("without, by NO_PPK_AUTH"));
        }
    }

    #[test]
    fn a_ppk_that_was_agreed_has_to_be_named() {
        let ours = ppk(false);
        let no_ppk_auth = notify(NotifyType::NO_PPK_AUTH, vec![9; 32]);
        let nameless = saying(vec![no_ppk_auth]);
        assert_eq!(chosen(true, Some(&ours), &nameless), Err(BadPpk::Unnamed));
    }

    #[test]
    fn a_name_of_either_type_counts_and_one_of_another_type_is_nobodys() {
        let ours = ppk(true);
        for kind in [OPAQUE, FIXED] {
            let request = naming(kind, "office2026", false);
            assert_eq!(chosen(true, Some(&ours), &request), Ok("use it"));
        }
        for kind in [0, 3, 128] {
            let request = naming(kind, "office2026", false);
            let nobodys = Err(BadPpk::Unknown(String::new()));
            assert_eq!(chosen(true, Some(&ours), &request), nobodys);
        }
        let empty = saying(vec![confirmation()]);
        assert!(chosen(true, Some(&ours), &empty).is_err());
    }

    // Weakness: 127
    #[test]
    fn what_a_stranger_calls_its_ppk_writes_no_line_of_its_own() {
        let forged = "x\n2026-11-26T06:00:00Z  INFO peer office: up\x1b[2K\u{202e}";
        let refused = chosen(true, None, &naming(FIXED, forged, false)).unwrap_err();
        let told = refused.to_string();
        assert!(
            told.contains(r"x\n2026") && told.contains(r"\u{202e}"),
            "{told}"
        );
        assert!(!told.contains(|c: char| c.is_control()), "{told}");
    }

    #[test]
    fn what_a_stranger_calls_its_ppk_is_kept_within_bounds() {
        let long = "x".repeat(5000);
        let kept = named(&naming(FIXED, &long, false)).unwrap();
        assert_eq!(kept.len(), LONGEST);
        assert_eq!(
            named(&saying(vec![identity(&ppk(true))])).unwrap(),
            "office2026"
        );
    }
}
