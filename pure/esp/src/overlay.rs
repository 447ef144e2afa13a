//! Overlays (DESIGN section 3): created by a licensed writer, applied by the endpoint.
//!
//! Every grant to write has its own key for each direction:
//!
//! ```text
//! key and salt = prf+(root_w of the direction, grant)
//! nonce        = salt | Grant | Ctr
//! other data   = AAD0 | 255 | ICV of the designated zone | OL
//! ```
//!
//! Both endpoints have the roots, so each can open overlays under the other's grants, and no list
//! of grants is needed: without the key of a grant no overlay can be sealed under its number. A
//! counter is never reused under one key, because a node that has lost its counter gets a new grant
//! with another number. The packet's own number prevents replays: an overlay fits one packet only.
//!
//! A packet is dropped if its overlay does not open or exceeds the writer's rights. Removing an
//! overlay leaves the packet that the other endpoint sealed.

use crate::aad::Aad;
use crate::drop::DropReason;
use crate::key::{Key, Unusable, grant_key};
use crate::packet::Packet;
use crate::scratch::Scratch;
use crypto::Secret;
use model::{NODE_SUITE, ZoneId};
use wire::esp::Header;
use wire::zoned::{Layout, Overlay, mark, writes};
use wire::{ip, tcp};

/// The state with which an endpoint opens overlays.
pub(crate) struct Writers {
    root: Secret,
    /// The key of the last valid overlay.
    key: Option<(u16, Key)>,
    /// True if overlays are applied. False once the licence has been revoked but the old keys are
    /// still in use.
    pub heeded: bool,
}

impl Writers {
    pub fn new(root: &Secret) -> Self {
        Self {
            root: root.clone(),
            key: None,
            heeded: true,
        }
    }

    /// Authenticates and decrypts the overlay of a packet whose bodies are authentic.
    pub fn open(
        &mut self,
        overlay: &mut Overlay,
        packet: &[u8],
        (header, layout): (Header, &Layout),
        scratch: &mut Scratch,
    ) -> Result<(), DropReason> {
        let aad = covered(&mut scratch.aad, (header, layout), packet, overlay);
        let grant = overlay.grant();
        let new = match &self.key {
            Some((of, _)) if *of == grant => None,
            _ => Some(self.derive(grant).ok_or(DropReason::BadIcvOverlay)?),
        };
        let known = self.key.as_ref().map(|(_, key)| key);
        let key = new.as_ref().or(known).ok_or(DropReason::BadIcvOverlay)?;
        let number = overlay.number();
        let (text, icv) = overlay.parts();
        let opened = key.open(number, aad, text, icv);
        opened.map_err(|_| DropReason::BadIcvOverlay)?;
        if let Some(key) = new {
            self.key = Some((grant, key));
        }
        Ok(())
    }

    fn derive(&self, grant: u16) -> Option<Key> {
        Key::new(NODE_SUITE, &grant_key(&self.root, grant)).ok()
    }
}

/// Removes the overlay from a packet that has one, and returns it.
pub(crate) fn detach(packet: &mut Packet) -> Result<Option<Overlay>, DropReason> {
    let found = Overlay::read(packet.octets()).map_err(|_| DropReason::OverlayMalformed)?;
    Ok(found.map(|(end, overlay)| {
        packet.cut(0, end);
        mark(packet.octets_mut(), false);
        overlay
    }))
}

/// Applies an authentic overlay to a decrypted packet. All writes are checked first: the right is
/// to lower the TCP window, and the checksum is recomputed later.
pub(crate) fn apply(packet: &mut [u8], layout: &Layout, text: &[u8]) -> Result<(), DropReason> {
    let zone = layout.body(ZoneId::DESIGNATED);
    let zone = zone.ok_or(DropReason::OverlayOutsideMask)?.plain();
    let window = window_at(packet, layout);
    let mut lowered = None;
    for write in writes(text) {
        let write = write.map_err(|_| DropReason::OverlayMalformed)?;
        let inside = window.filter(|at| *at == write.offset);
        let value = write.octets.try_into().ok().map(u16::from_be_bytes);
        lowered = inside.zip(value);
        if lowered.is_none() {
            return Err(DropReason::OverlayOutsideMask);
        }
    }
    let (at, value) = lowered.ok_or(DropReason::OverlayMalformed)?;
    let place = &mut packet[zone][at..at + 2];
    if place[..] < value.to_be_bytes()[..] {
        return Err(DropReason::OverlayRaised);
    }
    place.copy_from_slice(&value.to_be_bytes());
    Ok(())
}

/// Returns the offset of the TCP window in the designated zone of a decrypted packet. The window
/// must be in the zone's first run, and the checksum must be omitted.
pub(crate) fn window_at(packet: &[u8], layout: &Layout) -> Option<usize> {
    let zone = layout.body(ZoneId::DESIGNATED)?;
    let (header, next_header) = (&packet[zone.plain()], packet[layout.next_header_at()]);
    let at = transport_at(header, next_header)? + tcp::WINDOW_OFFSET;
    let run = usize::from(layout.map().described().first()?.len);
    (layout.map().checksum_left_out() && at + 2 <= run).then_some(at)
}

/// Returns the offset of the TCP header: zero if it comes first, otherwise behind the IP header.
fn transport_at(octets: &[u8], next_header: u8) -> Option<usize> {
    if next_header == tcp::PROTOCOL {
        return Some(0);
    }
    let header = ip::Header::parse_front(octets).ok()?;
    let seen = header.protocol() == tcp::PROTOCOL && !header.is_fragment();
    seen.then(|| header.header_len())
}

/// The state with which a licensed node seals overlays, in one direction.
pub(crate) struct Writer {
    grant: u16,
    key: Key,
    /// The last counter used. Each is used once.
    counter: u64,
    room: Vec<u8>,
}

impl Writer {
    pub fn new(grant: u16, key: &Secret) -> Result<Self, Unusable> {
        Ok(Self {
            grant,
            key: Key::new(NODE_SUITE, key)?,
            counter: 0,
            room: Vec::new(),
        })
    }

    /// Returns the grant number.
    pub fn grant(&self) -> u16 {
        self.grant
    }

    /// Creates the overlay of a packet, which starts with the SPI, with plaintext `plain`. Returns
    /// `None` if the counters are used up.
    pub fn seal(&mut self, plain: &[u8], packet: &[u8], of: (Header, &Layout)) -> Option<Overlay> {
        let mut overlay = Overlay::new(self.grant, self.counter + 1, plain)?;
        self.counter += 1;
        let aad = covered(&mut self.room, of, packet, &overlay);
        let number = overlay.number();
        let (text, icv) = overlay.parts();
        *icv = self.key.seal(number, aad, text);
        Some(overlay)
    }
}

/// Returns the additional data that an overlay's ICV covers.
fn covered<'r>(
    room: &'r mut Vec<u8>,
    (header, layout): (Header, &Layout),
    packet: &[u8],
    overlay: &Overlay,
) -> &'r [u8] {
    let mut aad = Aad::new(room, header, layout);
    let first = layout.bodies().first().map_or(0..0, |body| body.icv());
    aad.add_body(&packet[first]);
    aad.add_body(&(overlay.wire_len() as u16).to_be_bytes());
    aad.of_overlay()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::zoned::Map;

    fn writer(counter: u64) -> Writer {
        let key = grant_key(&Secret::new(vec![7; 32]), 9);
        let mut writer = Writer::new(9, &key).unwrap();
        writer.counter = counter;
        writer
    }

    fn layout() -> Layout {
        let run = model::Run {
            zone: ZoneId(1),
            len: 40,
        };
        let map = Map::new(ZoneId(2), &[run], true).unwrap();
        Layout::of_datagram(map, &[model::ZoneSuite::Aes128Gcm16; 2], 60).unwrap()
    }

    fn seal(writer: &mut Writer) -> Option<u64> {
        let layout = layout();
        let header = Header {
            spi: model::Spi(256),
            seq: 1,
        };
        let packet = vec![0; layout.packet_len()];
        let overlay = writer.seal(&[34, 2, 0, 0], &packet, (header, &layout));
        overlay.map(|overlay| overlay.number())
    }

    #[test]
    fn every_counter_is_used_once_from_one_on_beside_the_grant() {
        let mut writer = writer(0);
        let numbers = [(); 3].map(|()| seal(&mut writer));
        assert_eq!(numbers, [1, 2, 3].map(|n| Some(9 << 48 | n)));
    }

    #[test]
    fn after_the_last_counter_nothing_is_written() {
        let mut writer = writer((1 << 48) - 2);
        assert_eq!(seal(&mut writer), Some((10 << 48) - 1));
        for _ in 0..3 {
            assert_eq!(seal(&mut writer), None);
        }
    }

    #[test]
    fn every_grant_and_every_root_gives_another_key() {
        let key = |root: u8, grant| grant_key(&Secret::new(vec![root; 32]), grant);
        assert_eq!(key(1, 1).len(), NODE_SUITE.keymat_len());
        assert!(key(1, 1) != key(1, 2) && key(1, 1) != key(2, 1));
    }
}
