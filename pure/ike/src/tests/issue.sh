# shellcheck shell=sh
# Certificates by openssl, valid in 2030 only; read by the scripts that make them anew.
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
organizationalUnitName=optional
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
# What openssl leaves behind, and the keys of these NAMES.
clean() {
    rm -f -- *.csr *.ext index.txt* number.txt* issue.cnf [0-9A-F]*.pem
    for one; do rm -f -- "$one.key"; done
}
