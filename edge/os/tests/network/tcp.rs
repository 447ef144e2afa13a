use os::{NetNs, tcp};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Returns the two ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let connected = NetNs::new().unwrap().enter(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    });
    connected.unwrap()
}

#[test]
fn what_was_acknowledged_is_counted() {
    let (mut near, mut far) = pair();
    near.write_all(&[7; 1000]).unwrap();
    far.read_exact(&mut [0; 1000]).unwrap();
    // The answer carries the acknowledgement.
    far.write_all(&[8]).unwrap();
    near.read_exact(&mut [0]).unwrap();
    let sending = tcp::sending(&near).unwrap();
    // One more for the SYN.
    assert!((1000..=1001).contains(&sending.acknowledged), "{sending:?}");
    assert!(sending.window >= 2, "{sending:?}");
    assert_eq!(sending.retransmitted, 0);
}

#[test]
fn a_congestion_control_is_taken_or_refused_with_its_name() {
    let (near, _far) = pair();
    tcp::set_congestion_control(&near, "reno").unwrap();
    let error = tcp::set_congestion_control(&near, "no-such").unwrap_err();
    assert!(error.to_string().contains("no-such"), "{error}");
    assert!(error.to_string().contains("modprobe"), "{error}");
}
