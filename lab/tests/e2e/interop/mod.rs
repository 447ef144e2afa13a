//! Foreign implementations: strongSwan of two versions, Libreswan, openssl and tshark.

mod children;
mod clone;
mod guest;
mod import;
mod libreswan;
mod matrix;
mod mode;
mod ppk;
mod pubkey;
mod reauth;
mod strongswan;
mod suites;
mod tcp;
mod tfc;
mod tshark;
