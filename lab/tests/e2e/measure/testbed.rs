//! The testbed itself: hosts are isolated, wires join them, and nothing is left behind.

use anyhow::{Result, ensure};
use lab::process::{DEADLINE, stop_children, until};
use lab::testbed::Testbed;
use lab::wire;
use nix::sys::signal::Signal;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

#[lab::test]
fn hosts_joined_by_a_wire_and_a_route_reach_each_other() -> Result<()> {
    let bed = Testbed::new("joined")?;
    let [left, router, right] = [bed.host("left")?, bed.host("router")?, bed.host("right")?];
    wire::veth(
        left.end("eth0", &["10.0.1.2/24", "fd00:1::2/64"]),
        router.end("eth0", &["10.0.1.1/24", "fd00:1::1/64"]),
    )?;
    wire::veth(
        router.end("eth1", &["10.0.2.1/24", "fd00:2::1/64"]),
        right.end("eth0", &["10.0.2.2/24", "fd00:2::2/64"]),
    )?;
    router.sysctl("net.ipv4.ip_forward", "1")?;
    router.sysctl("net.ipv6.conf.all.forwarding", "1")?;
    left.route("default", "10.0.1.1")?;
    right.route("10.0.1.0/24", "10.0.2.1")?;
    left.route("default", "fd00:1::1")?;
    right.route("fd00:1::/64", "fd00:2::1")?;
    for address in ["10.0.2.2:80", "[fd00:2::2]:80"] {
        let listener = right.inside(|| Ok(TcpListener::bind(address)?))?;
        // IPv6 on the wire takes a moment to be ready.
        left.wait_for_port(address, Duration::from_secs(10))?;
        drop(listener);
    }
    Ok(())
}

#[lab::test]
fn hosts_without_a_wire_do_not() -> Result<()> {
    let bed = Testbed::new("apart")?;
    let (left, right) = (bed.host("left")?, bed.host("right")?);
    let _listener = right.inside(|| Ok(TcpListener::bind("127.0.0.1:80")?))?;
    right.inside(|| Ok(TcpStream::connect("127.0.0.1:80")?))?;
    ensure!(
        left.inside(|| Ok(TcpStream::connect("127.0.0.1:80")?))
            .is_err()
    );
    Ok(())
}

#[lab::test]
fn a_parameter_of_one_host_is_not_anothers() -> Result<()> {
    let bed = Testbed::new("sysctl")?;
    let (left, right) = (bed.host("left")?, bed.host("right")?);
    let read = "cat /proc/sys/net/ipv4/tcp_sack";
    let before = right.run(read)?;
    left.sysctl("net.ipv4.tcp_sack", "0")?;
    ensure!(left.run(read)? == "0\n");
    ensure!(right.run(read)? == before && before == "1\n");
    Ok(())
}

#[lab::test]
fn keys_are_readable_by_their_owner_only() -> Result<()> {
    let bed = Testbed::new("keys")?;
    let path = bed.host("host")?.secret("key", "secret")?;
    let mode = |path: &Path| Ok::<_, std::io::Error>(path.metadata()?.permissions().mode() & 0o777);
    ensure!(mode(&path)? == 0o600);
    ensure!(mode(bed.directory())? == 0o700);
    Ok(())
}

#[lab::test]
fn commands_that_fail_show_what_they_said() -> Result<()> {
    let bed = Testbed::new("fail")?;
    let host = bed.host("host")?;
    let error = host
        .run("ls /nonexistent")
        .map_or_else(|e| e.to_string(), |_| String::new());
    ensure!(error.contains("No such file"), "{error}");
    ensure!(host.run("echo fine")? == "fine\n");
    Ok(())
}

#[lab::test]
fn processes_die_with_the_thread_that_started_them() -> Result<()> {
    let bed = Testbed::new("orphan")?;
    let host = bed.host("host")?;
    let start = || -> Result<u32> {
        let process = host.spawn("sleep 600")?;
        let pid = process.pid();
        // Never dropped: this simulates a thread that ends before it could drop the process.
        std::mem::forget(process);
        Ok(pid)
    };
    let pid = std::thread::scope(|scope| scope.spawn(start).join()).expect("no panic")?;
    until("the orphan's end", Duration::from_secs(10), || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Either a zombie or gone.
        Ok((stat.is_empty() || stat.contains(") Z ")).then_some(()))
    })
}

/// A stopped process creates no files, and continues where it was when resumed.
#[lab::test]
fn processes_that_were_stopped_make_no_file() -> Result<()> {
    let bed = Testbed::new("stopped")?;
    let host = bed.host("host")?;
    let file = bed.directory().join("file");
    let mut maker = host.command("sh");
    maker
        .args(["-c", "while :; do : > \"$1\"; done", "sh"])
        .arg(&file);
    let mut maker = host.start("maker", maker)?;
    let made = || until("the file", DEADLINE, || Ok(file.exists().then_some(())));
    made()?;
    fs::remove_file(&file)?;
    made()?;
    stop_children(DEADLINE)?;
    fs::remove_file(&file)?;
    // Takes longer than one round of the stopped process.
    host.run("ls /")?;
    ensure!(!file.exists(), "it was made anew");
    maker.signal(Signal::SIGCONT)?;
    made()
}

#[lab::test]
fn the_temporary_directory_goes_with_the_testbed() -> Result<()> {
    let bed = Testbed::new("gone")?;
    let directory = bed.directory().to_owned();
    let host = bed.host("host")?;
    host.file("file", "content")?;
    ensure!(directory.join("host/file").exists());
    drop((host, bed));
    ensure!(!directory.exists());
    Ok(())
}
