#!/usr/bin/python3
"""Scapy's IPsec as a peer of plain ESP, both ways.

    scapy_peer.py check FILE...     every vector: its packet opens to its datagram, and its datagram
                                    seals to its packet

Files are those of decode.py, with vectors that scapy supports: no GMAC, explicit IVs, and no extended
numbers with an HMAC, whose upper half scapy does not authenticate.
"""

import logging
import sys

# It warns of interfaces without addresses, which a namespace of its own has.
logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.ipsec import ESP, IPSecIntegrityError, SecurityAssociation
from scapy.packet import Raw, raw

from decode import read_vectors

AUTHENTICATION = {"sha256": "SHA2-256-128", "sha384": "SHA2-384-192", "sha512": "SHA2-512-256"}
CIPHER_KEYS = {"null": 0, "aes128": 16, "aes256": 32}


def algorithms(cipher, key):
    """The names that scapy has, and its keys."""
    if cipher.startswith("chacha20"):
        return {"crypt_algo": "CHACHA20-POLY1305", "crypt_key": key}
    if cipher.endswith("gcm16"):
        return {"crypt_algo": "AES-GCM", "crypt_key": key}
    name, digest = cipher.split("-")
    cut = CIPHER_KEYS[name]
    return {
        "crypt_algo": "AES-CBC" if cut else "NULL",
        "crypt_key": key[:cut] or None,
        "auth_algo": AUTHENTICATION[digest],
        "auth_key": key[cut:],
    }


def association(fields, seq):
    cipher = fields.get("cipher 0", "aes128gcm16")
    return SecurityAssociation(
        ESP,
        spi=int(fields["spi"], 0),
        seq_num=seq & 0xFFFFFFFF,
        tunnel_header=IP(src="192.0.2.1", dst="198.51.100.1"),
        esn_en=fields.get("esn") == "yes",
        esn=seq >> 32,
        **algorithms(cipher, bytes.fromhex(fields["key 0"])),
    )


def check(fields):
    seq = int(fields["seq"], 0)
    datagram, packet = (bytes.fromhex(fields[name]) for name in ("datagram", "packet"))
    ours = association(fields, seq)
    came = IP(raw(IP(src="192.0.2.1", dst="198.51.100.1", proto=50) / Raw(packet)))
    if raw(ours.decrypt(came)) != datagram:
        return "opens to another datagram"
    inner = IP(datagram) if datagram[0] >> 4 == 4 else IPv6(datagram)
    iv = packet[8 : 8 + ours.crypt_algo.iv_size]
    sealed = ours.encrypt(inner, iv=iv)
    if raw(sealed[ESP]) != packet:
        return "seals to another packet"
    return None


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "check":
        sys.exit(__doc__)
    checked = 0
    for path in sys.argv[2:]:
        for fields in read_vectors(path):
            fields = {name: value.strip() for name, value in fields.items()}
            try:
                wrong = check(fields)
            except IPSecIntegrityError as error:
                wrong = repr(error)
            if wrong:
                sys.exit(f"{path}: {fields['name']}: {wrong}")
            checked += 1
    print(f"{checked} vectors are right")


if __name__ == "__main__":
    main()
