#!/bin/sh
# Makes the certificates of these tests anew, with openssl: one, the same renewed, one with a new key;
# and the public keys.
set -eu
san='subjectAltName=DNS:gw.example.net,DNS:gate.example.net'
self_signed() {
    openssl req -x509 -key "$1.key" -subj /CN=gw -addext "$san" -days 36500 -out "$2.pem"
}
for key in first second; do
    openssl genpkey -algorithm ed25519 -out "$key.key"
    openssl pkey -in "$key.key" -pubout -out "$key.pub"
    self_signed "$key" "$key"
done
self_signed first renewed
