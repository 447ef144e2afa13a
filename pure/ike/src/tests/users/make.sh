#!/bin/sh
# Makes the certificates of users anew, with openssl: they are valid in 2030 only.
set -eu
# shellcheck disable=SC1091 # it is beside this folder
. ../issue.sh
issue ca 'Staff CA' ca 'basicConstraints=critical,CA:TRUE'
for user in alice@staff bob@staff carol@sales; do
    issue "${user%@*}" "${user%@*}" ca "subjectAltName=email:$user.example.net"
done
clean ca
