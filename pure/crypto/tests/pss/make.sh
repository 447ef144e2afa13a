#!/bin/sh
# Makes these certificates anew, with openssl: all are signed by the RSA key of one CA with RSASSA-PSS, and only `good`
# with parameters that are accepted. They are valid in 2030 only.
set -eu
# shellcheck disable=SC1091 # it is in another crate
. ../../../ike/src/tests/issue.sh
# NAME ALGORITHM DIGEST SALT MASK
signed() {
    # shellcheck disable=SC2086 # the options of an algorithm are words
    openssl genpkey $2 -out "$1.key"
    openssl req -new -config issue.cnf -key "$1.key" -subj "/CN=$1" -out "$1.csr"
    echo "basicConstraints=critical,CA:$([ "$1" = ca ] && echo TRUE || echo FALSE)" >one.ext
    : >index.txt
    openssl ca -batch -notext -config issue.cnf -cert ca.pem -keyfile ca.key $([ "$1" = ca ] && echo -selfsign) \
        -in "$1.csr" -out "$1.pem" -extfile one.ext -startdate 20300101000000Z -enddate 20310101000000Z \
        -md "$3" -sigopt rsa_padding_mode:pss -sigopt "rsa_pss_saltlen:$4" -sigopt "rsa_mgf1_md:$5"
}
signed ca '-algorithm rsa -pkeyopt rsa_keygen_bits:2048' sha256 32 sha256
end='-algorithm ed25519'
signed good "$end" sha256 32 sha256
signed no-salt "$end" sha256 0 sha256
signed short-salt "$end" sha256 20 sha256
signed long-salt "$end" sha256 222 sha256
signed other-mask "$end" sha256 32 sha384
signed old-mask "$end" sha256 32 sha1
signed defaults "$end" sha1 20 sha1
clean ca good no-salt short-salt long-salt other-mask old-mask defaults
