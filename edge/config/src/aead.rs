//! `[node] aead`: the implementation of AES-GCM that protects packets.

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
    pub(crate) const WORDS: [(&str, Self); 3] = [
        ("aws-lc", Self::AwsLc),
        ("ipsec-mb", Self::IpsecMb),
        ("auto", Self::Auto),
    ];
}
