//! A scenario: the actions of an insider, and the expected results. Each file in `scenarios/` has
//! one, named after the misbehaviour.
//!
//! ```toml
//! story = "why somebody would do it, and which rule says what must come of it"
//! scene = "responder"                             # a name of scene.rs: what the host is, and how far
//!
//! [[step]]
//! says = "asks INFORMATIONAL {D(ESP 0badc0de)}"   # the notation of notation.rs
//! hears = ["answers INFORMATIONAL {}"]            # all that the host says to that; nothing if left out
//! drops = { message_id = 1 }                      # all that it drops; nothing if left out
//!
//! [end]
//! sa = "up"                                       # how the IKE SA stands then
//! tunnels = 1                                     # children that carry packets
//! told = ["violated the protocol"]                # parts of what the operator was told, one by one
//! moved = true                                    # whether children's packets go elsewhere
//! ```
//!
//! Every file also expects that the bystander, an honest peer of the same host, is unaffected:
//! `bystander.rs`.
//!
//! A step has one of `says`, `sends` (a datagram, in octets), `does`, `waits` (seconds) and `host`
//! (a command of its operator). The other fields of [`Step`] describe deviations from an honest
//! peer's encoding.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The content of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Explanation for readers: the motive, and the rule that defines the results.
    pub story: String,
    /// Scene: the host's role and progress.
    pub scene: String,
    /// Steps in order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// Expected final state.
    pub end: End,
}

/// One step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Message that the insider sends.
    pub says: Option<String>,
    /// Octets that the insider sends.
    pub sends: Option<String>,
    /// Reuse of earlier datagrams.
    pub does: Option<Deed>,
    /// Seconds of silence.
    pub waits: Option<u64>,
    /// Command for the host.
    pub host: Option<Order>,
    /// Number of repetitions; each message is a new one.
    pub times: Option<u32>,
    /// Offset added to the correct message ID.
    pub id: i64,
    /// Flags of the header to invert.
    pub flags: u8,
    /// True to use SPIs of another SA.
    pub stray: bool,
    /// True to give every initial message another SPI, as if from another initiator.
    pub anew: bool,
    /// True to seal the message. By default the exchange decides.
    pub sealed: Option<bool>,
    /// Stated length of the padding in the last octet.
    pub padding: u8,
    /// Fragments to send, each as `number/total`.
    pub pieces: Vec<String>,
    /// Offsets of octets in which one bit is flipped; negative ones count from the end.
    pub flips: Vec<isize>,
    /// Number of octets cut off the datagram.
    pub cut: usize,
    /// True to send from another address, which is a victim's.
    pub elsewhere: bool,
    /// All messages of the host.
    pub hears: Vec<String>,
    /// All drops of the host, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// Reuse of earlier datagrams.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Send the insider's last datagrams again.
    Repeats,
    /// Send the host's last message back.
    Reflects,
}

/// Command of the host's operator.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Rekey the child SA.
    RekeyChild,
    /// Rekey the IKE SA.
    RekeyIke,
    /// Close the IKE SA.
    Close,
    /// Move to another local address.
    Move,
}

/// The final state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// State of the IKE SA.
    pub sa: Standing,
    /// Number of child SAs that carry packets.
    #[serde(default)]
    pub tunnels: usize,
    /// Parts of the messages to the operator, one each.
    #[serde(default)]
    pub told: Vec<String>,
    /// True if the packets of child SAs go to the victim.
    #[serde(default)]
    pub moved: bool,
}

/// State of an IKE SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Not established: neither end or only one end is authenticated.
    Making,
    /// Established.
    Up,
    /// Waiting for the answer to the host's Delete.
    Closing,
    /// Gone.
    Gone,
}

/// The action of a step.
pub enum Act<'a> {
    /// See [`Step::says`].
    Says(&'a str),
    /// See [`Step::sends`].
    Sends(&'a str),
    /// See [`Step::does`].
    Does(Deed),
    /// See [`Step::waits`].
    Waits(u64),
    /// See [`Step::host`].
    Host(Order),
}

impl Step {
    /// Returns the only action of the step.
    pub fn act(&self) -> Result<Act<'_>, String> {
        match (&self.says, &self.sends, self.does, self.waits, self.host) {
            (Some(text), None, None, None, None) => Ok(Act::Says(text)),
            (None, Some(octets), None, None, None) => Ok(Act::Sends(octets)),
            (None, None, Some(deed), None, None) => Ok(Act::Does(deed)),
            (None, None, None, Some(seconds), None) => Ok(Act::Waits(seconds)),
            (None, None, None, None, Some(order)) => Ok(Act::Host(order)),
            _ => Err("it has not one of `says`, `sends`, `does`, `waits`, `host`".to_owned()),
        }
    }
}

impl Scenario {
    /// Returns the scenario once for each expectation, with this expectation made wrong, and its
    /// name.
    pub fn distorted(&self) -> Vec<(String, Self)> {
        let mut all = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            for (what, wrong) in step.distorted() {
                let mut scenario = self.clone();
                scenario.steps[index] = wrong;
                all.push((format!("{what} in step {}", index + 1), scenario));
            }
        }
        for (what, end) in self.end.distorted() {
            let scenario = self.clone();
            all.push((what.to_owned(), Self { end, ..scenario }));
        }
        all
    }
}

impl Step {
    fn distorted(&self) -> Vec<(&'static str, Self)> {
        let [
            mut more_heard,
            mut less_heard,
            mut more_dropped,
            mut less_dropped,
        ] = [self.clone(), self.clone(), self.clone(), self.clone()];
        more_heard.hears.push("answers 63 {}".to_owned());
        less_heard.hears.pop();
        let drops = &mut more_dropped.drops;
        *drops.entry("bad_icv".to_owned()).or_default() += 1;
        less_dropped.drops.pop_last();
        let mut all = vec![
            ("an answer more", more_heard),
            ("a drop more", more_dropped),
        ];
        if !self.hears.is_empty() {
            all.push(("an answer less", less_heard));
        }
        if !self.drops.is_empty() {
            all.push(("a drop less", less_dropped));
        }
        all
    }
}

impl End {
    fn distorted(&self) -> [(&'static str, Self); 4] {
        let [mut stands, mut carries, mut told, mut moved] =
            [self.clone(), self.clone(), self.clone(), self.clone()];
        stands.sa = match self.sa {
            Standing::Up => Standing::Gone,
            Standing::Making | Standing::Closing | Standing::Gone => Standing::Up,
        };
        carries.tunnels += 1;
        told.told.push("that all is well".to_owned());
        moved.moved = !moved.moved;
        [
            ("how the SA stands", stands),
            ("the number of tunnels", carries),
            ("what the operator is told", told),
            ("whether it moved", moved),
        ]
    }
}
