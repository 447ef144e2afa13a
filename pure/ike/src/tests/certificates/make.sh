#!/bin/sh
# Makes the certificates of these tests anew, with openssl: they are valid in 2030 only.
set -eu
cat >issue.cnf <<'CNF'
[ca]
default_ca=one
[one]
database=index.txt
new_certs_dir=.
rand_serial=yes
default_md=default
policy=any
unique_subject=no
[any]
commonName=supplied
[req]
distinguished_name=dn
[dn]
CNF
: >index.txt
# NAME SUBJECT ISSUER EXTENSION
issue() {
    openssl genpkey -algorithm ed25519 -out "$1.key"
    openssl req -new -config issue.cnf -key "$1.key" -subj "/CN=$2" -out "$1.csr"
    signer="-cert $3.pem -keyfile $3.key"
    [ "$1" != "$3" ] || signer="-selfsign -keyfile $1.key"
    echo "$4" >one.ext
    # shellcheck disable=SC2086 # the signer is two words or four
    openssl ca -batch -notext -config issue.cnf $signer -in "$1.csr" -out "$1.pem" -extfile one.ext \
        -startdate 20300101000000Z -enddate 20310101000000Z
}
ca='basicConstraints=critical,CA:TRUE'
issue ca 'Test CA' ca "$ca"
issue same 'Test CA' same "$ca"
issue other 'Other CA' other "$ca"
issue middle 'Middle CA' ca "$ca"
for by in ca same other middle; do
    issue "mobile-$by" mobile "$by" 'subjectAltName=DNS:mobile.example.net'
done
issue fence 'Fence CA' fence "$ca"
issue excluded 'Excluded CA' fence "$ca
nameConstraints=critical,excluded;DNS:mobile.example.net"
issue permitted 'Permitted CA' fence "$ca
nameConstraints=critical,permitted;DNS:gateway.example.net"
for by in excluded permitted; do
    issue "mobile-$by" mobile "$by" 'subjectAltName=DNS:mobile.example.net'
done
issue gateway-permitted gateway permitted 'subjectAltName=DNS:gateway.example.net'
above=fence
for depth in 1 2 3 4 5 6 7 8; do
    issue "deep-$depth" "Deep CA $depth" $above "$ca"
    above=deep-$depth
done
issue mobile-deep mobile deep-8 'subjectAltName=DNS:mobile.example.net'
issue gateway gateway ca 'subjectAltName=DNS:gateway.example.net'
issue thief thief ca 'subjectAltName=DNS:thief.example.net'
issue coder mobile ca "subjectAltName=DNS:mobile.example.net
extendedKeyUsage=codeSigning"
rm -f -- *.csr *.ext index.txt* issue.cnf [0-9A-F]*.pem same.key other.key ca.key middle.key \
    fence.key excluded.key permitted.key deep-*.key *-excluded.key *-permitted.key mobile-deep.key
