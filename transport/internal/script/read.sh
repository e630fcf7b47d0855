# mkesdk: read file
if [ ! -e "$1" ]; then
	echo "$1: no such file" >&2
	exit 44
fi
exec 3<"$1" || exit 1
printf +
exec cat <&3
