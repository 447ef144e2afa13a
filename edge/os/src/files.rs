//! How many files, and so sockets, a process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The usual limit, for a system that does not say.
const USUAL: u64 = 1024;

/// Asks for as many as the system lets this process have at all, and gives how many it has.
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
