#!/bin/sh
# One node of Ceph with its S3 gateway, for tests against a real server: sh tests/benchmarks/ceph.sh start|stop FOLDER [PORT]
# Needs radosgw, ceph-mon, ceph-osd, ceph-mgr and ceph-common, and root. Everything is in FOLDER, which is made anew.
set -e
at=$2 port=${3:-7480}
export CEPH_CONF="$at/ceph.conf"

if [ "$1" = stop ]; then
    for name in client.admin osd.0 mgr.x mon.a; do
        kill "$(cat "$at/$name.pid")"
    done
    exit
fi

rm -rf "$at"
mkdir -p "$at/mon" "$at/mgr" "$at/osd" "$at/log"
cluster=$(cat /proc/sys/kernel/random/uuid)
cat >"$CEPH_CONF" <<CONF
[global]
fsid = $cluster
mon host = 127.0.0.1:6789
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd crush chooseleaf type = 0
mon allow pool size one = true
run dir = $at
log file = $at/log/\$name.log
admin socket = $at/\$name.asok
pid file = $at/\$name.pid
keyring = $at/keyring
mon data = $at/mon
mgr data = $at/mgr
osd data = $at/osd
bluestore block size = 4294967296
osd memory target = 1073741824
[client.admin]
rgw frontends = beast endpoint=127.0.0.1:$port
CONF
ceph-authtool --create-keyring "$at/keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
ceph-authtool "$at/keyring" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' >/dev/null
monmaptool --create --addv a '[v2:127.0.0.1:3300,v1:127.0.0.1:6789]' --fsid "$cluster" "$at/monmap"
ceph-mon --mkfs -i a --monmap "$at/monmap" --keyring "$at/keyring"
ceph-mon -i a
ceph auth get-or-create mgr.x mon 'allow *' osd 'allow *' mds 'allow *' >>"$at/keyring"
ceph auth get-or-create osd.0 mon 'allow *' osd 'allow *' mgr 'allow *' >>"$at/keyring"
ceph-mgr -i x
ceph osd create
ceph-osd -i 0 --mkfs
ceph-osd -i 0
radosgw -n client.admin
radosgw-admin user create --uid=tests --display-name=Tests --access-key=nobody --secret-key=nothing --max-buckets=5000
