//! A scenario: what an insider does, and what must come of it. One file each in `scenarios/`, named
//! after the misbehaviour.
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
//! told = ["it broke the protocol"]                # parts of what the operator was told, one by one
//! moved = true                                    # whether children's packets go elsewhere
//! ```
//!
//! A step has one of `says`, `sends` (a datagram, in octets), `does`, `waits` (seconds) and `host` (what
//! its owner wants of it). How a message is put together otherwise than by an honest peer is told by the
//! rest of [`Step`].

use serde::Deserialize;
use std::collections::BTreeMap;

/// A file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// For people: `why`, and by which rule.
    pub story: String,
    /// Who the host is, and how far.
    pub scene: String,
    /// What happens, in turn.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// What has come of it in the end.
    pub end: End,
}

/// One thing that happens.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// The insider says a message.
    pub says: Option<String>,
    /// It sends these octets.
    pub sends: Option<String>,
    /// It does something with what was sent before.
    pub does: Option<Deed>,
    /// Nobody says anything for so many seconds.
    pub waits: Option<u64>,
    /// The host is told to do something.
    pub host: Option<Order>,
    /// How often; each message is a new one.
    pub times: Option<u32>,
    /// Added to the message ID that it should have.
    pub id: i64,
    /// Flags of the header that are turned round.
    pub flags: u8,
    /// The SPIs are somebody else's.
    pub stray: bool,
    /// Every first message has another SPI, as if it were of somebody else.
    pub anew: bool,
    /// Whether it is sealed. If left out: as its exchange is.
    pub sealed: Option<bool>,
    /// What the last octet says is the length of the padding.
    pub padding: u8,
    /// It is sent in these fragments, `number/total` each.
    pub pieces: Vec<String>,
    /// Octets of the datagram in which a bit is flipped; from the end if negative.
    pub flips: Vec<isize>,
    /// So many octets of the datagram are cut off.
    pub cut: usize,
    /// It comes from another address, which is a victim's.
    pub elsewhere: bool,
    /// All that the host says.
    pub hears: Vec<String>,
    /// All that it drops, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// What can be done with what was sent before.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// The insider sends its last datagrams again.
    Repeats,
    /// It sends back what the host said last.
    Reflects,
}

/// What the host's owner wants.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// New keys for the child.
    RekeyChild,
    /// New keys for the IKE SA.
    RekeyIke,
    /// The end of the IKE SA.
    Close,
    /// Another address of its own.
    Move,
}

/// What there is in the end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// How the IKE SA stands.
    pub sa: Standing,
    /// Children that carry packets.
    #[serde(default)]
    pub tunnels: usize,
    /// What the operator was told; of each text a part.
    #[serde(default)]
    pub told: Vec<String>,
    /// Whether children's packets go to the victim.
    #[serde(default)]
    pub moved: bool,
}

/// How an IKE SA stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Nobody has proved anything, or only one of the two.
    Making,
    /// It is up.
    Up,
    /// The host waits for the answer to its Delete.
    Closing,
    /// There is none.
    Gone,
}

/// What a step is about.
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
    /// The one thing that it is about.
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
    /// The same scenario with each of its expectations made wrong in turn, and which it is.
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
