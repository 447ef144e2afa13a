#!/bin/sh
# Makes the requests of the tests anew. Their private keys are not needed.
set -eu
cd "${0%/*}"

request() { # NAME KEY [OPTION...]
    name=$1
    key=$2
    shift 2
    # shellcheck disable=SC2086 # the key has options
    openssl req -new -newkey $key -nodes -keyout /dev/null -subj "/CN=alice@example.net" \
        -addext "subjectAltName=email:alice@example.net,DNS:alice.example.net,IP:192.0.2.7,URI:https://example.net/" \
        -addext extendedKeyUsage=serverAuth "$@" -out "$name.csr"
}

request p256 "ec -pkeyopt ec_paramgen_curve:P-256"
request p384 "ec -pkeyopt ec_paramgen_curve:P-384" -sha384
request p521 "ec -pkeyopt ec_paramgen_curve:P-521"
request ed25519 ed25519
request rsa rsa:2048
request short rsa:1024
request pss rsa:2048 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
