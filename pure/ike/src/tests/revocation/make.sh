#!/bin/sh
# Makes certificates and revocation lists anew, with openssl: they are valid in 2030 only.
set -eu
# shellcheck disable=SC1091 # it is beside this folder
. ../issue.sh
cat >>issue.cnf <<'CNF'
[plain]
database=index.txt
default_md=default
[numbered]
database=index.txt
default_md=default
crlnumber=number.txt
crl_extensions=extensions
[extensions]
authorityKeyIdentifier=keyid
CNF
# NAME KIND ISSUER FIRST LAST REVOKED...
list() {
    name=$1 kind=$2 issuer=$3 first=$4 last=$5
    shift 5
    : >index.txt
    echo 01 >number.txt
    for one; do
        serial=$(openssl x509 -in "$one.pem" -noout -serial | cut -d= -f2)
        printf 'R\t310101000000Z\t300115120000Z\t%s\tunknown\t/CN=%s\n' "$serial" "$one" >>index.txt
    done
    openssl ca -gencrl -config issue.cnf -name "$kind" -cert "$issuer.pem" -keyfile "$issuer.key" \
        -crl_lastupdate "$first" -crl_nextupdate "$last" -out "$name.crl"
}
ca='basicConstraints=critical,CA:TRUE
subjectKeyIdentifier=hash'
issue ca 'List CA' ca "$ca"
issue forger 'List CA' forger "$ca"
issue middle 'List Middle' ca "$ca"
issue mobile mobile ca 'subjectAltName=DNS:mobile.example.net'
issue mobile-middle mobile middle 'subjectAltName=DNS:mobile.example.net'
issue gateway gateway ca 'subjectAltName=DNS:gateway.example.net'
begin=20300101000000Z spring=20300301000000Z end=20310101000000Z
list nothing numbered ca $begin $end
list mobile numbered ca $spring $end mobile
list middle numbered ca $spring $end middle
list gateway numbered ca $spring $end gateway
list ended numbered ca $begin $spring
list ended-mobile numbered ca $begin $spring mobile
list of-middle numbered middle $begin $end
list forged numbered forger $spring $end mobile
list first-version plain ca $begin $end mobile
rm -f forger.pem
clean forger ca middle
