//! The points of Curve25519 whose order divides 8, by their u-coordinates. A peer that sends one
//! makes the shared secret zero for any private value (RFC 7748 section 6.1).

/// The values below 2^255, in the octet order of RFC 7748. Two points have order 8; 0, 1 and p - 1
/// have a smaller one. The last two are 0 and 1 with p added.
const VALUES: [[u8; 32]; 7] = [
    edge(0x00, 0x00),
    edge(0x01, 0x00),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57,
    ],
    edge(0xec, 0xff),
    edge(0xed, 0xff),
    edge(0xee, 0xff),
];

/// Returns a number close to 0 or to 2^255.
const fn edge(lowest: u8, others: u8) -> [u8; 32] {
    let mut value = [others; 32];
    value[0] = lowest;
    value[31] &= 0x7f;
    value
}

/// Returns true if a public value has small order. "Implementations of X25519 MUST mask the most
/// significant bit in the final byte" (section 5). The value is public, so the time of this check
/// may depend on it.
pub(crate) fn is_of(public: &[u8]) -> bool {
    let Ok(mut value) = <[u8; 32]>::try_from(public) else {
        return false;
    };
    value[31] &= 0x7f;
    VALUES.contains(&value)
}
