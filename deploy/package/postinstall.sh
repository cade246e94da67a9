#!/bin/sh
# Does not start the service of a new installation: the first user who signs up from this machine
# becomes its administrator.
set -e

systemd-sysusers socle.conf

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart socle.service
fi

if [ ! -e /var/lib/socle/secret.key ]; then
	echo "Socle is installed. Edit /etc/socle/socle.env, then: systemctl enable --now socle"
fi
