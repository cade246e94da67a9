#!/bin/sh
# Older releases of AppArmor neither restrict user namespaces nor know the rule.
set -e

if [ -e /etc/apparmor.d/abi/4.0 ]; then
	install -m 644 /usr/share/socle/apparmor/socle /etc/apparmor.d/socle
	if [ -d /sys/kernel/security/apparmor ]; then
		apparmor_parser --replace /etc/apparmor.d/socle || echo "socle-functions: AppArmor does not take its profile" >&2
	fi
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart socle.service
fi
