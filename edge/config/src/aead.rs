//! `[node] aead`: the implementation of AES-GCM that protects packets.

use crate::reader::Value;

/// The implementation of the AEADs. All produce the same octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aead {
    /// AWS-LC, which is built in.
    #[default]
    AwsLc,
    /// libipsec-mb only.
    IpsecMb,
    /// libipsec-mb where it is installed, otherwise AWS-LC.
    Auto,
}

impl Aead {
    const WORDS: [(&str, Self); 3] = [
        ("aws-lc", Self::AwsLc),
        ("ipsec-mb", Self::IpsecMb),
        ("auto", Self::Auto),
    ];

    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::WORDS)
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::AwsLc => Self::WORDS[0].0,
            Self::IpsecMb => Self::WORDS[1].0,
            Self::Auto => Self::WORDS[2].0,
        }
    }
}
