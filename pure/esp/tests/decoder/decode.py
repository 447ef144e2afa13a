#!/usr/bin/python3
"""An independent reading of packets: zoned ESP (sections 4 and 5 of docs/protocol.md) and plain ESP
(RFC 4303, 4106, 7634, 4868).

    decode.py check FILE...     every vector: its packet opens to its datagram, and its datagram
                                seals to its packet
    decode.py complete FILE     prints the vectors with the packets they should have

Section 17.2 of docs/protocol.md describes the vectors.

Written from that page and sharing nothing with the code under test. It is meant to be read: every
rule is where the format needs it, with its section.
"""

import hashlib
import hmac
import re
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR, ECB


class Wrong(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Wrong(what)


# --- The Internet checksum -----------------------------------------------------------------------


def ones_complement(octets):
    if len(octets) % 2:
        octets += b"\0"
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def checksum_place(datagram):
    """Where a TCP or UDP checksum is, and its value (section 5.3)."""
    if datagram[0] >> 4 == 4:
        start, protocol = (datagram[0] & 15) * 4, datagram[9]
        addresses = datagram[12:20]
    else:
        start, protocol = 40, datagram[6]
        addresses = datagram[8:40]
    need(protocol in (6, 17), "a transport without a checksum of this kind")
    at = start + (16 if protocol == 6 else 6)
    segment = datagram[start:at] + b"\0\0" + datagram[at + 2 :]
    pseudo = addresses + struct.pack(">II", len(segment), protocol)
    value = ones_complement(pseudo + segment)
    if protocol == 17 and value == 0:
        value = 0xFFFF
    return at, value


def header_length(datagram):
    return (datagram[0] & 15) * 4 if datagram[0] >> 4 == 4 else 40


def header_for(pair, protocol, payload):
    """The IP header that a receiver creates in transport and BEET mode (section 5.2)."""
    source, destination = pair
    if len(source) == 16:
        fixed = struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64)
        return fixed + source + destination
    fixed = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(payload), 0, 0x4000, 64, protocol)
    value = ones_complement(fixed + source + destination)
    return fixed + struct.pack(">H", value) + source + destination


def without_padding(datagram):
    """The datagram without TFC padding, by the length in its IP header (section 5.10)."""
    place, fixed = (2, 0) if datagram[0] >> 4 == 4 else (4, 40)
    length = fixed + struct.unpack(">H", datagram[place : place + 2])[0]
    need(length <= len(datagram), "a datagram cut short")
    return datagram[:length]


# --- Zone maps (section 4) -----------------------------------------------------------------------


def read_map(octets, payload):
    """The runs without the last one, the flag C, and the length of the map (section 4.4)."""
    need(len(octets) >= 4, "no map")
    flags = octets[0]
    need(flags & 0xB0 == 0, "reserved bits, or W of an overlay that is still there")
    count = flags & 15
    need(1 <= count <= 8, "number of runs")
    length = 4 if count == 1 else 4 * (count - 1)
    need(len(octets) >= length, "map cut short")
    words = [struct.unpack(">BBH", octets[i : i + 4]) for i in range(0, length, 4)]
    need(all(word[0] == 0 for word in words[1:]), "reserved octet")
    if count == 1:
        need(flags == 1 and words[0][1:] == (payload, 0), "opaque map")
        return [], False, length
    runs = [(zone, size) for _, zone, size in words]
    need(all(1 <= zone <= payload for zone, _ in runs), "zone")
    need(all(size >= 1 for _, size in runs), "empty run")
    need(runs[0][0] == 1, "first run")
    need(all(a[0] != b[0] for a, b in zip(runs, runs[1:])), "neighbours")
    need(runs[-1][0] != payload, "last word")
    return runs, bool(flags & 0x40), length


def write_map(runs, checksum_left_out, payload):
    if not runs:
        return struct.pack(">BBH", 1, payload, 0)
    words = [bytearray(struct.pack(">BBH", 0, zone, size)) for zone, size in runs]
    words[0][0] = (0x40 if checksum_left_out else 0) | (len(runs) + 1)
    return b"".join(words)


# --- Suites (sections 5.4 and 5.5) ---------------------------------------------------------------


class Aead:
    """AES-GCM or ChaCha20-Poly1305: the text encrypted, then 16 octets of ICV."""

    iv_length, icv_length = 0, 16

    def __init__(self, octets, cipher):
        self.salt = octets[-4:]
        self.cipher = cipher(octets[:-4])

    def encrypt(self, iv, text, aad):
        return self.cipher.encrypt(self.salt + iv, text, aad)

    def decrypt(self, iv, body, aad):
        return self.cipher.decrypt(self.salt + iv, body, aad)

    def text_length(self, plain):
        return plain

    def seal(self, seq, text, aad):
        return self.encrypt(iv_of(seq), text, aad)

    def open(self, seq, body, aad, plain=None):
        return self.decrypt(iv_of(seq), body, aad)


class Gmac(Aead):
    """The text as it is, then the ICV over the other data and the text."""

    def seal(self, seq, text, aad):
        return text + self.encrypt(iv_of(seq), b"", aad + text)

    def open(self, seq, body, aad, plain=None):
        text, icv = body[:-16], body[-16:]
        self.decrypt(iv_of(seq), icv, aad + text)
        return text


class Hmac:
    """AES-CTR or AES-CBC, then an HMAC over the other data, the IV if there is one, and the text."""

    def __init__(self, octets, key_length, bits, whole):
        self.hash = {256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}[bits]
        self.key, rest = octets[:key_length], octets[key_length:]
        self.mac_key, self.salt = rest[: bits // 8], rest[bits // 8 :]
        self.icv_length = bits // 8 if whole else bits // 16

    def icv(self, covered):
        return hmac.digest(self.mac_key, covered, self.hash)[: self.icv_length]

    def authentic(self, body, aad):
        covered, icv = body[: -self.icv_length], body[-self.icv_length :]
        if not hmac.compare_digest(self.icv(aad + covered), icv):
            raise InvalidTag
        return covered

    def apply(self, mode, text, backwards=False):
        cipher = Cipher(AES(self.key), mode)
        context = cipher.decryptor() if backwards else cipher.encryptor()
        return context.update(text) + context.finalize()


class Ctr(Hmac):
    """Counter blocks of RFC 3686: salt, sequence number, a count that starts at one."""

    iv_length = 0

    def text_length(self, plain):
        return plain

    def mode(self, seq):
        return CTR(self.salt + iv_of(seq) + b"\0\0\0\1")

    def seal(self, seq, text, aad):
        text = self.apply(self.mode(seq), text)
        return text + self.icv(aad + text)

    def open(self, seq, body, aad, plain=None):
        return self.apply(self.mode(seq), self.authentic(body, aad))


class Cbc(Hmac):
    """An IV that is the sequence number encrypted; padding 1 2 3 and its length fill the last block."""

    iv_length = 16

    def text_length(self, plain):
        return (plain + 1 + 15) // 16 * 16

    def seal(self, seq, text, aad):
        iv = self.apply(ECB(), struct.pack(">QQ", 0, seq))
        pad = self.text_length(len(text)) - len(text) - 1
        text += bytes(range(1, pad + 1)) + bytes([pad])
        text = iv + self.apply(CBC(iv), text)
        return text + self.icv(aad + text)

    def open(self, seq, body, aad, plain=None):
        covered = self.authentic(body, aad)
        text = self.apply(CBC(covered[:16]), covered[16:], backwards=True)
        pad = text[-1]
        need(pad < 16 and pad < len(text), "pad length")
        need(text[-1 - pad : -1] == bytes(range(1, pad + 1)), "padding")
        text = text[: -1 - pad]
        need(plain is None or len(text) == plain, "length of a padded zone")
        return text


class Null(Hmac):
    """The text as it is, then an HMAC (plain packets only)."""

    iv_length = 0

    def __init__(self, octets, bits):
        super().__init__(octets, 0, bits, False)


def key_of(octets, suite):
    if suite.startswith("null-sha"):
        bits = int(suite.removeprefix("null-sha"))
        need(len(octets) == bits // 8, "length of a key")
        return Null(octets, bits)
    if suite == "chacha20poly1305":
        return Aead(octets, ChaCha20Poly1305)
    bits, mode, hash_bits, whole = re.fullmatch(
        r"aes(128|256)(gcm16|gmac|ctr|)(?:-sha(\d+)(_\d+)?)?", suite
    ).groups()
    if mode in ("gcm16", "gmac"):
        need(len(octets) == int(bits) // 8 + 4, "length of a key")
        return (Aead if mode == "gcm16" else Gmac)(octets, AESGCM)
    kind = Ctr if mode == "ctr" else Cbc
    key = kind(octets, int(bits) // 8, int(hash_bits), whole is not None)
    need(len(key.salt) == (4 if kind is Ctr else 0), "length of a key")
    return key


def iv_of(seq):
    return struct.pack(">II", 0, seq)


def aad0(spi, seq, words, length):
    """AAD0 of section 5.6, of which the AAD of overlays and of injected packets are variants."""
    return struct.pack(">III", spi, 0, seq) + words + struct.pack(">I", length)


# --- Keys (section 7.3) --------------------------------------------------------------------------


def prf_plus(key, seed, length):
    """RFC 7296 section 2.13, over HMAC-SHA-256 (section 1)."""
    octets, block = b"", b""
    while len(octets) < length:
        number = len(octets) // 32 + 1
        block = hmac.digest(key, block + seed + bytes([number]), hashlib.sha256)
        octets += block
    return octets[:length]


def grant_key(root, grant):
    """Key and salt of AES-256-GCM (section 7.3)."""
    return prf_plus(root, struct.pack(">H", grant), 36)


# --- Overlays (section 5.11) ---------------------------------------------------------------------


def key_of_grant(root, grant):
    return Aead(grant_key(root, grant), AESGCM)


def split_overlay(packet):
    """The packet as it was sealed, and the overlay behind it, if it has one."""
    if not packet[8] & 0x80:
        return packet, b""
    (length,) = struct.unpack(">H", packet[-2:])
    need(29 <= length <= 90 and length < len(packet) - 8, "length of an overlay")
    sealed = packet[:8] + bytes([packet[8] & 0x7F]) + packet[9:-length]
    return sealed, packet[-length:]


def overlay_aad(common, icv, length):
    return common + b"\xff" + icv + struct.pack(">H", length)


def window_place(text, next_header):
    if next_header == 6:
        return 14
    need(next_header in (4, 41), "a window in another protocol")
    need((text[9] if text[0] >> 4 == 4 else text[6]) == 6, "a window in another protocol")
    return header_length(text) + 14


def apply_writes(text, writes):
    """The designated zone's text with the window that the overlay gives it, and nothing else."""
    at, free = 0, 0
    while at < len(writes):
        offset, count = writes[at], writes[at + 1]
        octets = writes[at + 2 : at + 2 + count]
        need(count and len(octets) == count and offset >= free, "writes")
        need((offset, count) == (window_place(text, text[-1]), 2), "outside the mask")
        need(octets <= text[offset : offset + 2], "a window that is raised")
        text = text[:offset] + octets + text[offset + 2 :]
        at, free = at + 2 + count, offset + count + 1
    return text


def add_overlay(packet, keys, runs, root, grant, counter, window):
    """What a licensed node does, which opens zone 1 only."""
    spi, seq = struct.unpack(">II", packet[:8])
    words = packet[8 : 8 + 4 * len(runs)]
    common = aad0(spi, seq, words, len(packet))
    header, body, _ = open_body(1, packet[8 + len(words) :], runs, keys, seq, common)
    writes = struct.pack(">BBH", window_place(header, header[-1]), 2, window)
    aad = overlay_aad(common, body[-keys[1].icv_length :], 26 + len(writes))
    number = struct.pack(">HHI", grant, counter >> 32, counter & 0xFFFFFFFF)
    sealed = key_of_grant(root, grant).encrypt(number, writes, aad)
    marked = packet[:8] + bytes([packet[8] | 0x80]) + packet[9:]
    return marked + number + sealed + struct.pack(">H", 26 + len(writes))


# --- Receiving (section 5.9) ---------------------------------------------------------------------


def open_body(zone, octets, runs, keys, seq, common, others=b""):
    """The text of a zone whose body is at the front of the octets, that body, and what follows."""
    key, payload, lowest = keys[zone], max(keys), 1 if runs else max(keys)
    plain = sum(size for z, size in runs if z == zone) + (zone == lowest)
    length = key.iv_length + key.text_length(plain) + key.icv_length
    need(len(octets) >= length, "bodies that do not fit")
    if zone == payload:
        length, plain = len(octets), None
    aad = common + bytes([zone]) + others
    return key.open(seq, octets[:length], aad, plain), octets[:length], octets[length:]


def open_bodies(octets, runs, keys, seq, common):
    """The texts of all present zones, and the ICV of the lowest one (sections 5.4 and 5.6)."""
    texts, others, icv = {}, b"", b""
    for zone in sorted({zone for zone, _ in runs} | {max(keys)}):
        covered = others if zone == max(keys) else b""
        texts[zone], body, octets = open_body(zone, octets, runs, keys, seq, common, covered)
        icv = icv or body[-keys[zone].icv_length :]
        others += body
    return texts, icv


def reassemble(texts, runs, payload, next_header, pair):
    """The datagram from the texts of its zones (section 5.2)."""
    datagram = b""
    for zone, size in runs:
        datagram += texts[zone][:size]
        texts[zone] = texts[zone][size:]
    datagram += texts.pop(payload)
    need(not any(texts.values()), "octets in no run")
    if pair:
        datagram = header_for(pair, next_header, datagram) + datagram
    return without_padding(datagram)


def restore_checksum(datagram):
    """With C = 1, the receiver computes the checksum (section 5.3)."""
    place, value = checksum_place(datagram)
    need(place + 2 <= len(datagram), "no place for a checksum")
    return datagram[:place] + struct.pack(">H", value) + datagram[place + 2 :]


def open_zoned(packet, keys, fixed=None, root=b"", pair=None):
    overlay, payload = b"", max(keys)
    if fixed is None:
        packet, overlay = split_overlay(packet)
        runs, checksum_left_out, length = read_map(packet[8:], payload)
        words, bodies = packet[8 : 8 + length], packet[8 + length :]
    else:
        # Section 4.5: the words are not in the packet, and are authenticated all the same.
        words, bodies = write_map(fixed, bool(fixed), payload), packet[8:]
        runs, checksum_left_out, _ = read_map(words, payload)
    spi, seq = struct.unpack(">II", packet[:8])
    common = aad0(spi, seq, words, len(packet))
    texts, icv = open_bodies(bodies, runs, keys, seq, common)
    if overlay:
        need(checksum_left_out, "an overlay of a packet with its checksum")
        (grant,) = struct.unpack(">H", overlay[:2])
        aad = overlay_aad(common, icv, len(overlay))
        writes = key_of_grant(root, grant).decrypt(overlay[:8], overlay[8:-2], aad)
        texts[1] = apply_writes(texts[1], writes)
    lowest = min(texts)
    texts[lowest], next_header = texts[lowest][:-1], texts[lowest][-1]
    datagram = reassemble(texts, runs, payload, next_header, pair)
    return restore_checksum(datagram) if checksum_left_out else datagram, next_header


# --- Sending (section 5.8) -----------------------------------------------------------------------


def next_header_of(datagram, pair):
    if pair:
        return datagram[9] if datagram[0] >> 4 == 4 else datagram[6]
    return 4 if datagram[0] >> 4 == 4 else 41


def seal_zoned(datagram, spi, seq, keys, runs, pad, fixed=False, pair=None):
    payload = max(keys)
    next_header = next_header_of(datagram, pair)
    checksum_left_out = False
    if runs:
        place, value = checksum_place(datagram)
        checksum_left_out = datagram[place : place + 2] == struct.pack(">H", value)
        if checksum_left_out:
            datagram = datagram[:place] + b"\0\0" + datagram[place + 2 :]
    texts, rest = {payload: b""}, datagram[header_length(datagram) :] if pair else datagram
    for zone, size in runs:
        texts[zone] = texts.get(zone, b"") + rest[:size]
        rest = rest[size:]
    texts[payload] += rest + bytes(pad)
    texts[min(texts)] += bytes([next_header])
    need(checksum_left_out or not (fixed and runs), "a fixed map takes no datagram without a checksum")
    zone_map = write_map(runs, checksum_left_out, payload)
    on_the_wire = b"" if fixed else zone_map
    length = 8 + len(on_the_wire)
    for zone, text in texts.items():
        key = keys[zone]
        length += key.iv_length + key.text_length(len(text)) + key.icv_length
    bodies, common = b"", aad0(spi, seq, zone_map, length)
    for zone in sorted(texts):
        aad = common + bytes([zone]) + (bodies if zone == payload else b"")
        bodies += keys[zone].seal(seq, texts[zone], aad)
    return struct.pack(">II", spi, seq) + on_the_wire + bodies


# --- Injected packets (section 5.12) -------------------------------------------------------------


def inject(datagram, spi, counter, root, grant, pair):
    """What a licensed node seals: the headers of a datagram without payload."""
    place, _ = checksum_place(datagram)
    text = datagram[:place] + b"\0\0" + datagram[place + 2 :]
    text = text[header_length(datagram) :] if pair else text
    text += bytes([next_header_of(datagram, pair)])
    words = struct.pack(">HH", 0, grant)
    aad = aad0(spi, counter, words, 12 + len(text) + 16)
    sealed = key_of_grant(root, grant).encrypt(iv_of(counter), text, aad)
    return struct.pack(">II", spi, counter) + words + sealed


def open_injected(packet, root, pair):
    spi, counter, zeros, grant = struct.unpack(">IIHH", packet[:12])
    need(zeros == 0, "a map")
    aad = aad0(spi, counter, packet[8:12], len(packet))
    text = key_of_grant(root, grant).decrypt(iv_of(counter), packet[12:], aad)
    datagram, next_header = text[:-1], text[-1]
    if pair:
        datagram = header_for(pair, next_header, datagram) + datagram
    place, _ = checksum_place(datagram)
    need(place + 4 <= len(datagram) and datagram[place - 3] == 0x10, "no bare acknowledgement")
    need((datagram[place - 4] >> 4) * 4 == len(datagram) - (place - 16), "octets behind the headers")
    return restore_checksum(datagram), next_header


# --- Plain packets -------------------------------------------------------------------------------


def covered(spi, seq, key, esn):
    """What the ICV covers before the text, and behind it: there is the upper half of an extended number for an
    HMAC, for an AEAD it is between SPI and lower half (RFC 4106 section 5)."""
    if esn and isinstance(key, Aead):
        return struct.pack(">IQ", spi, seq), b""
    header = struct.pack(">II", spi, seq & 0xFFFFFFFF)
    return header, struct.pack(">I", seq >> 32) if esn else b""


def open_plain(packet, seq, key, implicit, esn):
    spi, lower = struct.unpack(">II", packet[:8])
    need(lower == seq & 0xFFFFFFFF, "number")
    aad, behind = covered(spi, seq, key, esn)
    if isinstance(key, Cbc):
        body, icv = packet[8 : -key.icv_length], packet[-key.icv_length :]
        if not hmac.compare_digest(key.icv(aad + body + behind), icv):
            raise InvalidTag
        text = key.apply(CBC(body[:16]), body[16:], backwards=True)
    elif isinstance(key, Null):
        text, icv = packet[8 : -key.icv_length], packet[-key.icv_length :]
        if not hmac.compare_digest(key.icv(aad + text + behind), icv):
            raise InvalidTag
    elif isinstance(key, Gmac):
        # The ICV covers the IV as well.
        key.decrypt(packet[8:16], packet[-16:], aad + packet[8:-16])
        text = packet[16:-16]
    else:
        iv = struct.pack(">Q", seq) if implicit else packet[8:16]
        text = key.decrypt(iv, packet[8 if implicit else 16 :], aad)
    pad, next_header = text[-2], text[-1]
    need(len(text) % alignment(key) == 0, "alignment")
    need(text[len(text) - 2 - pad : -2] == bytes(range(1, pad + 1)), "padding")
    return without_padding(text[: len(text) - 2 - pad]), next_header


def seal_plain(datagram, spi, seq, key, implicit, pad, esn):
    next_header = 4 if datagram[0] >> 4 == 4 else 41
    datagram += bytes(pad)
    pad = -(len(datagram) + 2) % alignment(key)
    text = datagram + bytes(range(1, pad + 1)) + bytes([pad, next_header])
    aad, behind = covered(spi, seq, key, esn)
    header = struct.pack(">II", spi, seq & 0xFFFFFFFF)
    if isinstance(key, Cbc):
        iv = key.apply(ECB(), struct.pack(">QQ", 0, seq))
        body = iv + key.apply(CBC(iv), text)
        return header + body + key.icv(aad + body + behind)
    if isinstance(key, Null):
        return header + text + key.icv(aad + text + behind)
    iv = struct.pack(">Q", seq)
    if isinstance(key, Gmac):
        return header + iv + text + key.encrypt(iv, b"", aad + iv + text)
    body = key.encrypt(iv, text, aad)
    return header + (b"" if implicit else iv) + body


def alignment(key):
    return 16 if isinstance(key, Cbc) else 4


# --- Vectors -------------------------------------------------------------------------------------


def read_vectors(path):
    with open(path, encoding="ascii") as file:
        blocks = file.read().split("\n\n")
    for block in blocks:
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            yield dict(line.split(":", 1) for line in lines)


class Vector:
    def __init__(self, fields):
        fields = {name: value.strip() for name, value in fields.items()}
        self.name, self.kind = fields["name"], fields["kind"]
        self.spi, self.seq = int(fields["spi"], 0), int(fields["seq"], 0)
        self.esn = fields.get("esn") == "yes"
        zones = [name.split()[1] for name in fields if name.startswith("key ")]
        self.keys = {
            int(zone): key_of(
                bytes.fromhex(fields[f"key {zone}"]), fields.get(f"cipher {zone}", "aes128gcm16")
            )
            for zone in zones
        }
        runs = fields.get("runs", "").split()
        self.runs = [tuple(int(n) for n in run.split(":")) for run in runs]
        self.pad = int(fields.get("pad", "0"))
        self.pair = [bytes.fromhex(end) for end in fields.get("pair", "").split()]
        self.root = bytes.fromhex(fields.get("root", ""))
        self.overlay = [int(fields.get(name, "0")) for name in ("grant", "ctr", "window")]
        self.datagram = bytes.fromhex(fields["datagram"])
        self.written = bytes.fromhex(fields.get("written", fields["datagram"]))
        self.packet = bytes.fromhex(fields.get("packet", ""))

    def seal(self):
        if self.kind in ("zoned", "fixed"):
            fixed = self.kind == "fixed"
            packet = seal_zoned(
                self.datagram, self.spi, self.seq, self.keys, self.runs, self.pad, fixed, self.pair
            )
            if not self.root:
                return packet
            return add_overlay(packet, self.keys, self.runs, self.root, *self.overlay)
        if self.kind == "injected":
            grant = self.overlay[0]
            return inject(self.datagram, self.spi, self.seq, self.root, grant, self.pair)
        implicit = self.kind == "implicit"
        return seal_plain(
            self.datagram, self.spi, self.seq, self.keys[0], implicit, self.pad, self.esn
        )

    def open(self):
        if self.kind == "zoned":
            return open_zoned(self.packet, self.keys, None, self.root, self.pair)
        if self.kind == "fixed":
            return open_zoned(self.packet, self.keys, self.runs, b"", self.pair)
        if self.kind == "injected":
            return open_injected(self.packet, self.root, self.pair)
        return open_plain(self.packet, self.seq, self.keys[0], self.kind == "implicit", self.esn)

    def check(self):
        datagram, next_header = self.open()
        need(datagram == self.written, f"{self.name}: opens to another datagram")
        need(next_header == next_header_of(datagram, self.pair), f"{self.name}: next header")
        need(self.seal() == self.packet, f"{self.name}: seals to another packet")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("check", "complete"):
        sys.exit(__doc__)
    checked = 0
    for path in sys.argv[2:]:
        for fields in read_vectors(path):
            vector = Vector(fields)
            if sys.argv[1] == "complete":
                fields["packet"] = " " + vector.seal().hex()
                print("\n".join(f"{name}:{value}" for name, value in fields.items()), end="\n\n")
                continue
            try:
                vector.check()
            except (Wrong, InvalidTag) as error:
                sys.exit(f"{path}: {vector.name}: {error!r}")
            checked += 1
    if sys.argv[1] == "check":
        print(f"{checked} vectors are right")


if __name__ == "__main__":
    main()
