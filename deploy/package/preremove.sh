#!/bin/sh
# $1 is remove or 0 when the package goes, upgrade or 1 when a newer one follows.
set -e

case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl --no-reload disable --now socle.service
	fi
	;;
esac
