//! What becomes of a second tunnel of one identity.

/// What becomes of a second tunnel of one identity, which comes from another address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unique {
    /// The newer tunnel replaces the older one.
    #[default]
    Replace,
    /// The newer tunnel is refused while the older one is up.
    Keep,
    /// Both stay.
    Never,
}

impl Unique {
    /// The values with their words in a configuration.
    pub const WORDS: [(&str, Self); 3] = [
        ("replace", Self::Replace),
        ("keep", Self::Keep),
        ("never", Self::Never),
    ];
}
