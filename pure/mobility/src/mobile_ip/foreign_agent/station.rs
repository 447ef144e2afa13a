//! Where visitors are on the link.
//!
//! The station of a request is kept with the request and gets the answer to it. It becomes the visitor's when the home
//! agent accepts that very request: nothing else that comes in a visitor's name moves it.

/// The link-layer address of somebody on the link, as whoever reads the link saw it. Nothing is read from it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station(pub [u8; 6]);
