#!/bin/sh
set -e

case "$1" in
remove | purge | 0)
	if [ -e /etc/apparmor.d/socle ]; then
		if [ -d /sys/kernel/security/apparmor ]; then
			apparmor_parser --remove /etc/apparmor.d/socle || true
		fi
		rm -f /etc/apparmor.d/socle
	fi
	;;
esac

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart socle.service
fi
