//! A panic of any thread ends the process as `kill -9` does, and the service manager starts it
//! again. So no thread goes on without another one, and the program needs no code to unwind.

use os::crash;
use std::panic;

/// Makes each panic end the process. If it stands for a damaged file, the error has the fix: its
/// marks of what was used cannot be trusted, so tunnels do not go on without them.
pub fn end_the_process() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |fault| {
        usual(fault);
        if let Some(damaged) = store::damaged() {
            tracing::error!("{damaged}");
        }
        crash::die();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::{env, thread};

    /// Tells this test that it is the process that ends.
    const ENDS: &str = "STRATA_PANICS";

    #[test]
    fn a_panic_of_any_thread_ends_the_process() {
        if env::var_os(ENDS).is_some() {
            end_the_process();
            let _ = thread::spawn(|| panic!("on purpose")).join();
            return;
        }
        let mut again = Command::new(env::current_exe().unwrap());
        let name = "panics::tests::a_panic_of_any_thread_ends_the_process";
        again.args(["--exact", name, "--nocapture"]).env(ENDS, "");
        let ended = again.output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(9), "{told}");
        assert!(told.contains("on purpose"), "{told}");
    }
}
