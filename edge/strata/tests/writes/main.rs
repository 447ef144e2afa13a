//! Tests of the verbs that write configurations: `strata init`, `strata enrol` and `strata import`.
//! `strata check` judges what they write, openssl and tar read it.

mod enrol;
mod folder;
mod import;
mod init;
