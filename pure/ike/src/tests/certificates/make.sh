#!/bin/sh
# Makes the certificates of these tests anew, with openssl: they are valid in 2030 only.
set -eu
# shellcheck disable=SC1091 # it is beside this folder
. ../issue.sh
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
clean same other ca middle fence excluded permitted deep-1 deep-2 deep-3 deep-4 deep-5 deep-6 deep-7 deep-8 \
    mobile-excluded mobile-permitted gateway-permitted mobile-deep
