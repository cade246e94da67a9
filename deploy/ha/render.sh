#!/bin/sh
# Prints a file of this folder with the values of cluster.env filled in: render.sh cluster.env patroni.yml
set -eu

values=$1
file=$2

set -- -E
while IFS= read -r line; do
	case $line in
	'' | '#'*) continue ;;
	esac
	name=${line%%=*}
	value=$(printf %s "${line#*=}" | sed 's/[\\&|]/\\&/g')
	if [ -z "$value" ]; then
		echo "render: $name has no value in $values" >&2
		exit 1
	fi
	set -- "$@" -e "s|\\$\\{$name\\}|$value|g"
done <"$values"

sed "$@" "$file"
