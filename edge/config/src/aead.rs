//! `[node] aead`: whose AES-GCM protects packets.

use crate::reader::Value;

/// Who implements it. All give the same octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aead {
    /// AWS-LC, which is built in.
    #[default]
    AwsLc,
    /// libipsec-mb, and nobody else.
    IpsecMb,
    /// libipsec-mb where it is installed, and AWS-LC elsewhere.
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
