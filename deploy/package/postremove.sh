#!/bin/sh
# Keeps the data and the user that owns them.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi

case "$1" in
purge | 0)
	if [ -e /var/lib/socle ]; then
		echo "Socle's data are still in /var/lib/socle, and belong to the user socle."
	fi
	;;
esac
