#!/bin/sh
# Makes the files of the image: tree.sh PROGRAM DIRECTORY
set -eu
program=$1 tree=$2
user=65532

put() {
    mkdir -p "$tree$(dirname "$1")"
    cp -L "$1" "$tree$1"
}

mkdir -p "$tree/usr/bin" "$tree/etc/ssl/certs"
cp "$program" "$tree/usr/bin/trefoil"
# A static program needs no library, and ldd then fails or names none.
for library in $(ldd "$program" 2>/dev/null | grep -o '/[^ ]*'); do
    put "$library"
done
# Services on the network are known by names and by certificates.
put /etc/ssl/certs/ca-certificates.crt
echo 'hosts: files dns' > "$tree/etc/nsswitch.conf"
echo "trefoil:x:$user:$user::/var/lib/trefoil:/sbin/nologin" > "$tree/etc/passwd"
echo "trefoil:x:$user:" > "$tree/etc/group"
for directory in /var/lib/trefoil /var/cache/trefoil /tmp; do
    mkdir -p "$tree$directory"
    chown "$user:$user" "$tree$directory"
    chmod 700 "$tree$directory"
done
