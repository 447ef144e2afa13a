#!/bin/sh
# Makes certificates and revocation lists anew, with openssl: they are valid in 2030 only.
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
[any]
commonName=supplied
[req]
distinguished_name=dn
[dn]
CNF
# NAME SUBJECT ISSUER EXTENSION
issue() {
    openssl genpkey -algorithm ed25519 -out "$1.key"
    openssl req -new -config issue.cnf -key "$1.key" -subj "/CN=$2" -out "$1.csr"
    signer="-cert $3.pem -keyfile $3.key"
    [ "$1" != "$3" ] || signer="-selfsign -keyfile $1.key"
    echo "$4" >one.ext
    : >index.txt
    # shellcheck disable=SC2086 # the signer is two words or four
    openssl ca -batch -notext -config issue.cnf $signer -in "$1.csr" -out "$1.pem" -extfile one.ext \
        -startdate 20300101000000Z -enddate 20310101000000Z
}
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
rm -f -- *.csr *.ext index.txt* number.txt* issue.cnf [0-9A-F]*.pem forger.pem forger.key ca.key \
    middle.key
