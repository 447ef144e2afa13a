//! KEY_REQUEST (DESIGN section 5, DKM): a licensed node to which a mobile node has come asks the one before for the
//! keys of what both ends go on in, on their own IKE SA, with a token that the mobile node has given it.
//!
//! ```text
//! request   N(TOKEN)
//! response  GRANT, SECRET...        as KEY_DISTRIBUTE has them
//!           N(KEY_REFUSED)          with a code
//! ```
//!
//! A gateway says with a grant who may have it from its node, and gives it the key of tokens. That is made of the
//! slot's root and of the node's identity, so no node can make a token for another one, and none is good for
//! another slot or for other keys of the same. The MAC is over who may ask besides, and whoever verifies it takes the peer of
//! the IKE SA for that. Whether a token is new and not too old, its owner knows.

use crate::Engine;
use crate::exchange::{find_notify, first_error, notify};
use crate::extension::distribute;
use crate::refusal::KeyRefusal;
use crypto::{Prf, Secret, equal};
use model::{CsaId, Grant, Identity, IkeSaId, Instant, NODE_SUITE};
use wire::ike::{Message, NotifyType, Payload, RefusalCode, Token, encode_nodes};

const PRF: Prf = Prf::HmacSha256;

/// Commands.
impl Engine {
    /// Licensed node: asks a neighbour for keys with a token of a mobile node that has come to us. Ends in
    /// [`Event::KeysAnswered`](crate::Event::KeysAnswered), or in the IKE SA's [`Event::IkeDown`](crate::Event::IkeDown).
    pub fn request_keys(&mut self, sa: IkeSaId, token: Token, now: Instant) {
        self.with_established(sa, now, |core, state, ctx| {
            state.request_keys(token, core, ctx);
        });
    }

    /// Licensed node: answers [`Event::KeysAsked`](crate::Event::KeysAsked), by the nonce of its token.
    pub fn answer_request(
        &mut self,
        sa: IkeSaId,
        nonce: [u8; 16],
        answer: &Result<Grant<Secret>, RefusalCode>,
        now: Instant,
    ) {
        self.with_established(sa, now, |core, state, ctx| {
            state.answer_request(nonce, answer, core, ctx);
        });
    }
}

/// The key of the tokens that a licensed node takes, from the root of a slot.
pub fn token_key(root: &Secret, holder: &Identity) -> Secret {
    let len = NODE_SUITE.keymat_len();
    PRF.plus(root.expose(), &[&encode_nodes([holder])], len)
}

/// Proves a token, which this node may use.
pub fn sign_token(token: &mut Token, key: &Secret, asker: &Identity) {
    token.mac = mac(token, key, asker);
}

/// Whether a mobile node has made a token, for this node.
pub fn is_signed(token: &Token, key: &Secret, asker: &Identity) -> bool {
    equal(&token.mac, &mac(token, key, asker))
}

/// HMAC-SHA-256, cut to half.
fn mac(token: &Token, key: &Secret, asker: &Identity) -> [u8; 16] {
    let whole = PRF.mac(key.expose(), &[&token.covered(asker)]);
    let mut half = [0; 16];
    half.copy_from_slice(&whole.expose()[..16]);
    half
}

/// The request.
pub(crate) fn request(token: &Token) -> Payload {
    notify(NotifyType::TOKEN, token.encode())
}

/// The token of a request.
pub(crate) fn read(request: &Message) -> Option<Token> {
    let notify = find_notify(request, NotifyType::TOKEN)?;
    Token::decode(&notify.data).ok()
}

/// The answer.
pub(crate) fn answer(answer: &Result<Grant<Secret>, RefusalCode>) -> Vec<Payload> {
    match answer {
        Ok(grant) => distribute::payloads(grant),
        Err(code) => vec![distribute::reply((CsaId(0), 0), Some(*code))],
    }
}

/// What an answer says.
pub(crate) fn outcome(response: &Message) -> Result<Grant<Secret>, KeyRefusal> {
    if let Some(code) = distribute::refusal(response) {
        return Err(KeyRefusal::Code(code));
    }
    distribute::read(response)
        .ok_or_else(|| first_error(response).map_or(KeyRefusal::NoAnswer, KeyRefusal::Notify))
}
