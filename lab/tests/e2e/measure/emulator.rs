//! The emulated wire against theory, with real packets between two namespaces.

use anyhow::{Result, ensure};
use lab::bystander::Bystander;
use lab::emulator::{Emulator, Settings, Statistics};
use lab::host::Host;
use lab::process::until;
use lab::testbed::Testbed;
use lab::vigil::Vigil;
use lab::wire;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

/// Length of the IPv4 and UDP headers, in octets.
const HEADERS: usize = 28;

const PERFECT: sim::Settings = sim::Settings {
    rate: None,
    delay: Duration::ZERO,
    queue: 1000,
    bit_error_rate: 0.0,
};

/// Time limit for all attempts at one measurement.
const PATIENCE: Duration = Duration::from_secs(120);

/// Repeats a measurement until the result is right. The emulator's promises hold on a machine that
/// keeps time, and other work may delay this machine or its host. A wrong emulator fails every
/// attempt.
fn tried(mut measure: impl FnMut() -> Result<(bool, String)>) -> Result<()> {
    let _vigil = Vigil::start();
    let (start, mut wrong) = (Instant::now(), Vec::new());
    while start.elapsed() < PATIENCE {
        let (right, measured) = measure()?;
        if right {
            println!("{measured}");
            return Ok(());
        }
        wrong.push(measured);
    }
    anyhow::bail!("{} times in {PATIENCE:?}: {wrong:#?}", wrong.len())
}

/// Two hosts with an emulated wire between them and a UDP socket on each.
struct Pair {
    emulator: Option<Emulator>,
    sender: UdpSocket,
    receiver: UdpSocket,
    _bed: Testbed,
}

impl Pair {
    fn new(settings: sim::Settings, seed: u64) -> Result<Self> {
        let bed = Testbed::new("emulator")?;
        let (alice, bob) = (bed.host("alice")?, bed.host("bob")?);
        let emulator = wire::emulated(
            alice.end("wire0", &["10.0.0.1/24"]),
            bob.end("wire0", &["10.0.0.2/24"]),
            Settings::symmetric(settings),
            seed,
        )?;
        let sender = socket(&alice, "10.0.0.1:5000")?;
        sender.connect("10.0.0.2:5000")?;
        let receiver = socket(&bob, "10.0.0.2:5000")?;
        receiver.set_read_timeout(Some(Duration::from_secs(5)))?;
        Ok(Self {
            emulator: Some(emulator),
            sender,
            receiver,
            _bed: bed,
        })
    }

    fn statistics(&self) -> Statistics {
        let emulator = self.emulator.as_ref();
        emulator.expect("the wire is not cut yet").statistics()[0]
    }

    /// Sends IP packets of `octets`, in bursts that overflow no socket buffer.
    fn send(&self, count: u64, octets: usize) -> Result<()> {
        let before = self.statistics().offered;
        for sent in 1..=count {
            self.sender.send(&vec![0; octets - HEADERS])?;
            if sent % 50 == 0 || sent == count {
                self.wait_for_offered(before + sent)?;
            }
        }
        Ok(())
    }

    /// Sends and receives packets; returns the rate between the first and the last, in bits per
    /// second.
    fn rate_of(&self, count: u64, octets: usize) -> Result<f64> {
        let (first, last) = thread::scope(|scope| {
            let received = scope.spawn(|| self.receive(count));
            self.send(count, octets)?;
            received.join().expect("receiving does not panic")
        })?;
        let seconds = last.duration_since(first).as_secs_f64();
        Ok((count - 1) as f64 * octets as f64 * 8.0 / seconds)
    }

    fn wait_for_offered(&self, count: u64) -> Result<()> {
        until(
            "packets to reach the emulator",
            Duration::from_secs(5),
            || Ok((self.statistics().offered >= count).then_some(())),
        )
    }

    /// Receives packets that must arrive; returns the arrival times of the first and the last.
    fn receive(&self, count: u64) -> Result<(Instant, Instant)> {
        let mut buffer = [0; 2048];
        self.receiver.recv(&mut buffer)?;
        let first = Instant::now();
        for _ in 1..count {
            self.receiver.recv(&mut buffer)?;
        }
        Ok((first, Instant::now()))
    }
}

fn socket(host: &Host, address: &str) -> Result<UdpSocket> {
    host.inside(|| Ok(UdpSocket::bind(address)?))
}

fn two_mbps() -> sim::Settings {
    sim::Settings {
        rate: NonZeroU64::new(2_000_000),
        delay: Duration::from_millis(1),
        ..PERFECT
    }
}

#[lab::test(alone)]
fn packets_arrive_at_the_rate_of_the_link() -> Result<()> {
    let pair = Pair::new(two_mbps(), 1)?;
    for octets in [1500, 500] {
        tried(|| {
            let rate = pair.rate_of(400_000 / octets as u64, octets)?;
            let off = (rate / 2e6 - 1.0).abs();
            Ok((off < 0.01, format!("{octets} octets: {rate:.0} b/s")))
        })?;
    }
    Ok(())
}

#[lab::test(alone)]
fn packets_arrive_after_the_delay_and_no_earlier() -> Result<()> {
    let settings = sim::Settings {
        delay: Duration::from_millis(50),
        ..two_mbps()
    };
    let pair = Pair::new(settings, 1)?;
    // 1250 octets take 5 ms at 2 Mb/s.
    let expected = Duration::from_millis(55);
    tried(|| {
        let mut delays = Vec::new();
        for _ in 0..21 {
            let sent = Instant::now();
            pair.send(1, 1250)?;
            let (arrived, _) = pair.receive(1)?;
            delays.push(arrived - sent);
        }
        delays.sort();
        ensure!(delays[0] >= expected, "too early: {:?}", delays[0]);
        let median = delays[delays.len() / 2];
        let on_time = median < expected + Duration::from_millis(2);
        Ok((on_time, format!("{median:?}")))
    })
}

#[lab::test(alone)]
fn losses_follow_the_bit_error_rate_and_the_length() -> Result<()> {
    const COUNT: u64 = 5000;
    let settings = sim::Settings {
        bit_error_rate: 1e-5,
        ..PERFECT
    };
    let pair = Pair::new(settings, 7)?;
    pair.receiver.set_nonblocking(true)?;
    for octets in [100, 1500] {
        let before = pair.statistics();
        let mut received = 0;
        for _ in 0..COUNT / 50 {
            pair.send(50, octets)?;
            let wanted = pair.statistics().delivered - before.delivered;
            received = receive_up_to(&pair.receiver, received, wanted)?;
        }
        let after = pair.statistics();
        let lost = after.lost_bit_error - before.lost_bit_error;
        ensure!(received + lost == COUNT, "{received} + {lost} of {COUNT}");
        let p = 1.0 - (1.0 - 1e-5_f64).powi(8 * octets as i32);
        let (mean, sigma) = (COUNT as f64 * p, (COUNT as f64 * p * (1.0 - p)).sqrt());
        let off = (lost as f64 - mean).abs() / sigma;
        ensure!(
            off < 4.0,
            "{octets} octets: {lost} lost, not {mean:.0} ± {sigma:.0}"
        );
    }
    Ok(())
}

/// Reads until `received` has grown to `wanted`, and once more to check that no packets are left.
fn receive_up_to(socket: &UdpSocket, mut received: u64, wanted: u64) -> Result<u64> {
    let mut buffer = [0; 2048];
    until(
        "what the emulator delivered",
        Duration::from_secs(5),
        || {
            while socket.recv(&mut buffer).is_ok() {
                received += 1;
            }
            Ok((received >= wanted).then_some(received))
        },
    )
}

#[lab::test(alone)]
fn a_full_queue_drops_and_says_so() -> Result<()> {
    let settings = sim::Settings {
        queue: 20,
        ..two_mbps()
    };
    let pair = Pair::new(settings, 1)?;
    // All at once: one in service and 20 in the queue; at 6 ms each, a few more find room
    // meanwhile.
    pair.send(100, 1500)?;
    let statistics = pair.statistics();
    let kept = statistics.delivered;
    ensure!((21..=30).contains(&kept), "{statistics:?}");
    ensure!(statistics.lost_queue == 100 - kept, "{statistics:?}");
    pair.receive(kept)?;
    Ok(())
}

/// A machine that stalls delays every process, including a bystander thread. Packets may be 2 ms
/// later than the bystander. Tails have few samples, so each percentile is compared with the
/// bystander's next higher one.
#[lab::test(alone)]
fn lateness_at_2_mbps_stays_below_2_ms() -> Result<()> {
    tried(|| {
        let bystander = Bystander::start();
        let Statistics { lateness, .. } = statistics_of_3000_packets()?;
        let machine = bystander.lateness();
        let on_time = |packets: f64, machine: f64| packets < machine + 2000.0;
        let all = on_time(lateness.p50_us, machine.p50_us)
            && on_time(lateness.p99_us, machine.p999_us)
            && on_time(lateness.p999_us, machine.max_us);
        Ok((
            all,
            format!("{lateness:?}, the machine itself: {machine:?}"),
        ))
    })
}

/// Sends a packet of 250 octets per millisecond for 3 s, which is 2 Mb/s.
fn statistics_of_3000_packets() -> Result<Statistics> {
    let pair = Pair::new(two_mbps(), 1)?;
    for _ in 0..6 {
        pair.send(500, 250)?;
        pair.receive(500)?;
    }
    let statistics = pair.statistics();
    // The last packet may have been received before it was recorded.
    ensure!(statistics.lateness.count >= 2999, "{statistics:?}");
    Ok(statistics)
}

#[lab::test(alone)]
fn fifty_thousand_packets_a_second_pass() -> Result<()> {
    let mut best = 0.0_f64;
    for _ in 0..10 {
        let settings = sim::Settings {
            delay: Duration::from_millis(1),
            ..PERFECT
        };
        let pair = Pair::new(settings, 1)?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(500) {
            // The device's own queue drops packets that the emulator is too slow for; they are not
            // counted.
            pair.sender.send(&[0; 64])?;
        }
        let delivered = pair.statistics().delivered as f64;
        best = best.max(delivered / start.elapsed().as_secs_f64());
        if best >= 50_000.0 {
            println!("{best:.0} packets/s");
            return Ok(());
        }
    }
    anyhow::bail!("only {best:.0} packets/s")
}

#[lab::test(alone)]
fn a_changed_emulator_is_as_a_new_one() -> Result<()> {
    let deaf = sim::Settings {
        bit_error_rate: 1.0,
        ..PERFECT
    };
    let mut pair = Pair::new(deaf, 1)?;
    pair.send(20, 100)?;
    until("losses", Duration::from_secs(5), || {
        Ok((pair.statistics().lost_bit_error == 20).then_some(()))
    })?;
    if let Some(emulator) = &mut pair.emulator {
        emulator.change(Settings::symmetric(PERFECT), 1);
    }
    ensure!(pair.statistics().offered == 0, "{:?}", pair.statistics());
    pair.send(20, 100)?;
    pair.receive(20)?;
    ensure!(pair.statistics().lost_bit_error == 0);
    Ok(())
}

#[lab::test(alone)]
fn a_dropped_emulator_cuts_the_wire() -> Result<()> {
    let mut pair = Pair::new(PERFECT, 1)?;
    pair.send(1, 100)?;
    pair.receive(1)?;
    pair.emulator = None;
    // Its devices are gone, so there is no route any more.
    ensure!(pair.sender.send(&[0; 100]).is_err());
    Ok(())
}
