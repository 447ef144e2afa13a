#!/bin/sh
# Makes the certificates of one user with other units and CAs anew, with openssl: they are valid in
# 2030 only.
set -eu
# shellcheck disable=SC1091 # it is beside this folder
. ../issue.sh
for authority in ca other; do
    issue "$authority" "Unit CA $authority" "$authority" 'basicConstraints=critical,CA:TRUE'
done
name='subjectAltName=email:alice@staff.example.net'
issue staff alice/OU=Staff ca "$name"
issue guest alice/OU=Guests ca "$name"
issue both alice/OU=Staff/OU=Guests ca "$name"
issue none alice ca "$name"
issue elsewhere alice/OU=Staff other "$name"
clean ca other
