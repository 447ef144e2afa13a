//! The limit on open files, and so on sockets, of a process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The usual limit, for a system that does not report one.
const USUAL: u64 = 1024;

/// Raises the limit to the most that the system allows this process, and returns it.
pub fn raise_limit() -> u64 {
    let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return USUAL;
    };
    match setrlimit(Resource::RLIMIT_NOFILE, most, most) {
        Ok(()) => most,
        Err(_) => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_as_many_as_it_may() {
        let most = raise_limit();
        assert_eq!(raise_limit(), most);
        let (now, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!((now, hard), (most, most));
    }
}
