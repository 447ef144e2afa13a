//! KEY_REQUEST (DESIGN section 5, DKM): a mobile node has moved to a licensed node, which requests
//! the keys of the composite SA that both endpoints continue to use from the previous licensed
//! node, on the IKE SA between the two. It presents a token that the mobile node has issued.
//!
//! ```text
//! request   N(TOKEN)
//! response  GRANT, SECRET...        as KEY_DISTRIBUTE has them
//!           N(KEY_REFUSED)          with a code
//! ```
//!
//! With a grant, a gateway names the nodes that may request it from its holder, and provides the
//! key of the tokens. This key derives from the slot's root and the holder's identity. A node can
//! therefore make no token for another node, and no token is valid for another slot or for later
//! keys of the same slot. The MAC also covers the identity of the requester, which the verifier
//! takes from the peer of the IKE SA. The caller checks that a token is new and not too old.

use crate::exchange::{find_notify, first_error, notify};
use crate::extension::distribute;
use crate::refusal::KeyRefusal;
use crypto::{Prf, Secret, equal};
use model::{CsaId, Grant, Identity, NODE_SUITE};
use wire::ike::{Message, NotifyType, Payload, RefusalCode, Token, encode_nodes};

const PRF: Prf = Prf::HmacSha256;

/// Derives the key of the tokens that a licensed node accepts, from the root of a slot. The
/// identity is canonical, because both ends may spell a name in different case.
pub fn token_key(root: &Secret, holder: &Identity) -> Secret {
    let len = NODE_SUITE.keymat_len();
    PRF.plus(root.expose(), &[&encode_nodes([&holder.canonical()])], len)
}

/// Signs a token for use by the node `asker`.
pub fn sign_token(token: &mut Token, key: &Secret, asker: &Identity) {
    token.mac = mac(token, key, asker);
}

/// Returns true if a token was signed for use by the node `asker`.
pub fn is_signed(token: &Token, key: &Secret, asker: &Identity) -> bool {
    equal(&token.mac, &mac(token, key, asker))
}

/// HMAC-SHA-256, truncated to half its length.
fn mac(token: &Token, key: &Secret, asker: &Identity) -> [u8; 16] {
    let whole = PRF.mac(key.expose(), &[&token.covered(asker)]);
    let mut half = [0; 16];
    half.copy_from_slice(&whole.expose()[..16]);
    half
}

/// Returns the notify of the request.
pub(crate) fn request(token: &Token) -> Payload {
    notify(NotifyType::TOKEN, token.encode())
}

/// Reads the token of a request.
pub(crate) fn read(request: &Message) -> Option<Token> {
    let notify = find_notify(request, NotifyType::TOKEN)?;
    Token::decode(&notify.data).ok()
}

/// Returns the payloads of the answer.
pub(crate) fn answer(answer: &Result<Grant<Secret>, RefusalCode>) -> Vec<Payload> {
    match answer {
        Ok(grant) => distribute::payloads(grant),
        Err(code) => vec![distribute::reply(CsaId(0), 0, Some(*code))],
    }
}

/// Evaluates an answer.
pub(crate) fn outcome(response: &Message) -> Result<Grant<Secret>, KeyRefusal> {
    if let Some(code) = distribute::refusal(response) {
        return Err(KeyRefusal::Code(code));
    }
    distribute::read(response)
        .ok_or_else(|| first_error(response).map_or(KeyRefusal::NoAnswer, KeyRefusal::Notify))
}
