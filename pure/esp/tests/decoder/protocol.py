#!/usr/bin/python3
"""An independent implementation of keys, payloads and notify data, written from docs/protocol.md.

    protocol.py check FILE        every vector: its input yields its output, and a flipped bit in
                                  either is noticed
    protocol.py complete FILE     prints the vectors with the outputs they should have

FILE is docs/protocol-vectors.json, which section 17.1 of that page describes. Each function of
`KINDS` has the input as its parameters, and returns the output.
"""

import copy
import hashlib
import hmac
import ipaddress
import json
import struct
import sys

from decode import Wrong, grant_key, need, prf_plus

WAYS = ("initiator to responder", "responder to initiator")


class Reader:
    def __init__(self, octets):
        self.octets = octets

    def take(self, count):
        need(count <= len(self.octets), "octets that end too early")
        taken, self.octets = self.octets[:count], self.octets[count:]
        return taken

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def finish(self):
        need(not self.octets, "octets behind the end")


# --- Suites (section 5.4) ------------------------------------------------------------------------

HMACS = [
    ("sha256", 12, 32),
    ("sha384", 13, 48),
    ("sha512", 14, 64),
    ("sha256_256", 41100, 32),
    ("sha384_384", 41101, 48),
    ("sha512_512", 41102, 64),
]


def all_suites():
    """The name of each suite, its encoding and the length of its key material."""
    yield "chacha20poly1305", struct.pack(">HH", 28, 256), 36
    for bits in (128, 256):
        key = bits // 8
        yield f"aes{bits}gcm16", struct.pack(">HH", 20, bits), key + 4
        yield f"aes{bits}gmac", struct.pack(">HH", 41100, bits), key + 4
        for name, number, mac_key in HMACS:
            ctr, cbc = (struct.pack(">HHH", cipher, bits, number) for cipher in (41101, 12))
            yield f"aes{bits}ctr-{name}", ctr, key + mac_key + 4
            yield f"aes{bits}-{name}", cbc, key + mac_key


SUITES = {name: (encoding, length) for name, encoding, length in all_suites()}


def suite_of(name):
    return SUITES[name][0]


def read_suite(reader):
    """The length of its key material."""
    for encoding, length in SUITES.values():
        if reader.octets.startswith(encoding):
            reader.take(len(encoding))
            return length
    raise Wrong("an unknown suite")


# --- Identities (RFC 7296 section 3.5, sections 6.2 and 9.6) -------------------------------------

IPV4, FQDN, MAIL, IPV6 = 1, 2, 3, 5


def identity(text):
    """ID type and data of an identity as a vector spells it."""
    try:
        address = ipaddress.ip_address(text)
        return (IPV4 if address.version == 4 else IPV6), address.packed
    except ValueError:
        return (MAIL if "@" in text else FQDN), text.encode("ascii")


def canonical(kind, data):
    """Domains are in lower case."""
    local, at, domain = data.rpartition(b"@") if kind == MAIL else (b"", b"", data)
    return kind, (local + at + domain.lower() if kind in (FQDN, MAIL) else data)


def order(kind, data):
    """The place of an identity among the licences of an agreement."""
    rank = {IPV4: 0, IPV6: 0, FQDN: 1, MAIL: 2}.get(kind, 3)
    data = canonical(kind, data)[1]
    return (rank, tuple(data.rsplit(b"@", 1))) if rank in (1, 2) else (rank, (bytes([kind]), data))


def entry(kind, data):
    return struct.pack(">BH", kind, len(data)) + data


def canonical_entry(octets):
    reader = Reader(octets)
    kind, length = reader.number(1), reader.number(2)
    data = reader.take(length)
    reader.finish()
    return entry(*canonical(kind, data))


# --- ZONE_MAP (section 6.2) ----------------------------------------------------------------------

SELECTORS = {"ip": 1, "transport": 2, "headers": 3, "octets": 4, "rtp": 5, "payload": 255}
RIGHTS = {"read": 1, "write": 2, "inject": 3}


def span(text):
    return struct.pack(">HH", *map(int, text.split("-")))


def map_of(text):
    kind, *runs = text.split()
    if kind == "changeable":
        return b"\1"
    words = [struct.pack(">BH", *map(int, run.split(":"))) for run in runs]
    return bytes([2, len(words)]) + b"".join(words)


def zone(serial, text):
    selector, *ranges, suite = text.split()
    octets = bytes([serial, SELECTORS[selector]])
    return octets + b"".join(map(span, ranges)) + suite_of(suite)


def licence(kind, data, serial, right):
    fields = 1 if right == RIGHTS["write"] else 0
    return struct.pack(">BBBBH", serial, right, kind, fields, len(data)) + data


def sorted_licences(texts):
    parts = [text.split() for text in texts]
    parts = [(*identity(node), int(serial), RIGHTS[right]) for node, serial, right in parts]
    return sorted(parts, key=lambda part: (order(*part[:2]), part[2:]))


def read_map(reader, payload):
    """Whether the map is fixed."""
    kind = reader.number(1)
    need(kind in (1, 2), "an unknown kind of map")
    if kind == 1:
        return False
    runs = [(reader.number(1), reader.number(2)) for _ in range(reader.number(1))]
    need(1 <= len(runs) <= 7 and runs[0][0] == 1 and runs[-1][0] != payload, "runs of a fixed map")
    need(all(1 <= serial <= payload and size for serial, size in runs), "a run of a fixed map")
    need(all(a[0] != b[0] for a, b in zip(runs, runs[1:])), "adjacent runs of one zone")
    return True


def read_selector(reader):
    number = reader.number(1)
    need(number in SELECTORS.values(), "an unknown selector")
    if number in (SELECTORS["octets"], SELECTORS["rtp"]):
        need(reader.number(2) <= reader.number(2), "an empty range")
    return number


def read_licence(reader, selectors, fixed):
    """The place of a licence in the order of an agreement."""
    serial, right, kind, fields = reader.take(4)
    need(right in RIGHTS.values() and fields == (right == RIGHTS["write"]), "a right")
    need(1 <= serial <= len(selectors), "a licence of no zone")
    may_change = serial == 1 and selectors[0] == SELECTORS["headers"] and not fixed
    need(right == RIGHTS["read"] or may_change, "a right that the zone does not have")
    return order(kind, reader.take(reader.number(2))), serial, right


def read_zone_map(octets):
    """The lengths of the zones' key material, and whether the map is fixed."""
    reader = Reader(octets)
    version, zones, licences, window = struct.unpack(">BBBI", reader.take(7))
    need(version == 1 and 2 <= zones <= 8 and licences <= 32, "numbers of ZONE_MAP")
    need(4096 <= window <= 65536, "a replay window")
    fixed, selectors, lengths = read_map(reader, zones), [], []
    for serial in range(1, zones + 1):
        need(reader.number(1) == serial, "serials")
        selectors.append(read_selector(reader))
        need((selectors[-1] == SELECTORS["payload"]) == (serial == zones), "the payload zone")
        lengths.append(read_suite(reader))
    places = [read_licence(reader, selectors, fixed) for _ in range(licences)]
    need(all(a < b for a, b in zip(places, places[1:])), "licences out of order")
    reader.finish()
    return lengths, fixed


# --- Kinds ---------------------------------------------------------------------------------------


def vendor_id(text):
    return hashlib.sha256(text.encode("ascii")).digest()[:16]


def zone_map(window, map, zones, licences):
    octets = struct.pack(">BBBI", 1, len(zones), len(licences), window) + map_of(map)
    octets += b"".join(zone(serial, text) for serial, text in enumerate(zones, 1))
    octets += b"".join(licence(*parts) for parts in sorted_licences(licences))
    read_zone_map(octets)
    return octets


def level_grant(packets, seconds, renewals, **conditions):
    writers = {
        "protocol": lambda protocol: bytes([protocol]),
        "ports": span,
        "dscp": lambda dscp: bytes([dscp]),
        "marker": lambda marker: bytes([marker]),
        "pictures": lambda types: bytes([sum(1 << " IPBD".index(letter) for letter in types)]),
    }
    named = sum(1 << bit for bit, name in enumerate(writers) if name in conditions)
    octets = bytes([1, named])
    for name, writer in writers.items():
        octets += writer(conditions[name]) if name in conditions else b""
    return octets + struct.pack(">IIH", packets, seconds, renewals)


def composite_keymat(SK_d, shared, Ni, Nr, zone_map, spi_i, spi_r, slot=False, **companions):
    lengths, fixed = read_zone_map(zone_map)
    need(fixed == ("opaque_spi_i" in companions), "a fixed map has an opaque companion SA")
    parts = [(f"zone {n}, {way}", size) for way in WAYS for n, size in enumerate(lengths, 1)]
    parts += [(f"{root}, {way}", 32) for way in WAYS for root in ("root_w", "root_inj")]
    bound = b"Strata zone map 1" + zone_map + spi_i + spi_r
    if fixed:
        bound += companions["opaque_spi_i"] + companions["opaque_spi_r"]
        parts += [(f"opaque companion, {way}", lengths[-1]) for way in WAYS]
    if "level_grant" in companions:
        spis = companions["integrity_spi_i"] + companions["integrity_spi_r"]
        bound += companions["level_grant"] + spis
        parts += [(f"integrity companion, {way}", 36) for way in WAYS]
    if slot:
        parts.append(("root_tok", 32))
    digest = hashlib.sha256(bound).digest()
    keymat = Reader(prf_plus(SK_d, shared + Ni + Nr + digest, sum(size for _, size in parts)))
    keys = {name: keymat.take(size) for name, size in parts}
    return {"bound": bound, "H": digest, "keymat": keys}


def token_key(root_tok, holder):
    return prf_plus(root_tok, canonical_entry(holder), 36)


def token(key, lower_spi, higher_spi, nonce, expiry, zones, holder, asker):
    need(lower_spi <= higher_spi and zones == sorted(set(zones)), "a malformed token")
    front = lower_spi + higher_spi + nonce + struct.pack(">IB", expiry, len(zones)) + bytes(zones)
    covered = b"Strata token 1" + front + canonical_entry(holder) + canonical_entry(asker)
    mac = hmac.digest(key, covered, hashlib.sha256)[:16]
    return {"front": front, "covered": covered, "mac": mac, "token": front + mac + holder}


def grant(csa, line, grant, window, lifetime, spi_from_gateway, spi_to_gateway, map, suites):
    need(4096 <= window <= 65536 and lifetime > 0, "a malformed grant")
    payload = len(suites)
    octets = csa + line + struct.pack(">HBBII", grant, payload, payload, window, lifetime)
    octets += spi_from_gateway + spi_to_gateway + map_of(map)
    return octets + b"".join(suite_of(suite) for suite in suites)


def secret(direction, zone, suite, key):
    need(len(key) == SUITES[suite][1], "length of key material")
    return bytes([direction, zone]) + suite_of(suite) + key


def grant_reply(csa, grant, code):
    return csa + struct.pack(">HH", grant, code)


def nodes(nodes):
    return b"".join(entry(*identity(node)) for node in nodes)


def address(text):
    return ipaddress.IPv4Address(text).packed


def mobile_ip_note(previous, registration, spi, authenticator):
    length = 18 + len(authenticator)
    front = bytes([255, length, 1, 0])
    return front + address(previous) + registration + spi + authenticator


def mobile_ip_note_covered(home, previous, care_of, registration, spi):
    addresses = address(home) + address(previous) + address(care_of)
    return b"\xff\1" + addresses + registration + spi


def mobile_ip_enclosure(enclosed):
    return bytes([255, 2 + len(enclosed), 2, 0]) + enclosed


def mobile_ip_notice(sub_type, lifetime, home, identification):
    return struct.pack(">BBH", 255, sub_type, lifetime) + address(home) + identification


def mobile_ip_home_test(home, cookie):
    need(len(cookie) == 16, "a cookie of another length")
    return struct.pack(">BBH", 255, 3, 0) + address(home) + cookie


def path_mtu_probe(purpose, octets, number):
    """Section 5.16."""
    need(len(number) == 8, "a number of another length")
    need(purpose in (1, 2, 3), "another purpose")
    return b"STPM" + struct.pack(">BBH", purpose, 0, octets) + number


KINDS = {
    "vendor-id": vendor_id,
    "zone-map": zone_map,
    "level-grant": level_grant,
    "composite-keymat": composite_keymat,
    "grant-key": grant_key,
    "token-key": token_key,
    "token": token,
    "grant": grant,
    "secret": secret,
    "grant-reply": grant_reply,
    "nodes": nodes,
    "path-mtu-probe": path_mtu_probe,
    "mobile-ip-note": mobile_ip_note,
    "mobile-ip-note-covered": mobile_ip_note_covered,
    "mobile-ip-enclosure": mobile_ip_enclosure,
    "mobile-ip-notice": mobile_ip_notice,
    "mobile-ip-home-test": mobile_ip_home_test,
}

# Inputs that are text. All other strings are octets in hexadecimal.
TEXT = {"text", "map", "ports", "pictures", "suite", "home", "previous", "care_of"}


# --- Vectors -------------------------------------------------------------------------------------


def in_hexadecimal(output):
    if isinstance(output, dict):
        return {name: in_hexadecimal(value) for name, value in output.items()}
    return output.hex()


def output_of(vector):
    fields = {
        name: bytes.fromhex(value) if isinstance(value, str) and name not in TEXT else value
        for name, value in vector["input"].items()
    }
    return in_hexadecimal(KINDS[vector["kind"]](**fields))


def is_right(vector):
    try:
        return output_of(vector) == vector["output"]
    except Wrong:
        return False


def flipped(vector):
    """Copies of a vector, each with another value of which one bit is flipped."""

    def places(value, path):
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from places(inner, [*path, name])
        elif isinstance(value, str) and path[-1] not in TEXT:
            yield path

    for path in [*places(vector["input"], ["input"]), *places(vector["output"], ["output"])]:
        other = copy.deepcopy(vector)
        inner = other
        for name in path[:-1]:
            inner = inner[name]
        octets = bytearray.fromhex(inner[path[-1]])
        octets[-1] ^= 1
        inner[path[-1]] = octets.hex()
        yield "/".join(path), other


def check(vectors):
    for vector in vectors:
        name = f"{vector['kind']}, {vector['name']}"
        need(is_right(vector), f"{name}: another output")
        for place, other in flipped(vector):
            need(not is_right(other), f"{name}: a flipped bit in {place} is not noticed")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "complete"):
        sys.exit(__doc__)
    with open(sys.argv[2], encoding="ascii") as file:
        content = json.load(file)
    if sys.argv[1] == "complete":
        for vector in content["vectors"]:
            vector["output"] = output_of(vector)
        print(json.dumps(content, indent=1))
        return
    try:
        check(content["vectors"])
    except Wrong as error:
        sys.exit(f"{sys.argv[2]}: {error}")
    print(f"{len(content['vectors'])} vectors are right")


if __name__ == "__main__":
    main()
