//! IKE between `strata` and `stratad`: authentication, keys, addresses, policy, recovery.

mod addresses;
mod back;
mod children;
mod clone;
mod disk;
mod kem;
mod links;
mod names;
mod pki;
mod policy;
mod ppk;
mod pubkey;
mod reauth;
mod recovery;
mod redirect;
mod refusal;
mod rekey;
mod renewal;
mod resource;
mod resume;
mod revocation;
mod round_trip;
mod soft;
mod users;
mod window;
