# mkesdk: write file
f=$1 mode=$2 owner=$3 token=$4 must=$5
d=${f%/*}/ b=${f##*/}
die() {
	s=$1
	shift
	echo "$*" >&2
	exit "$s"
}
[ -d "$d" ] || die 49 "$d: no such directory"
[ -d "$f" ] && die 45 "$f: is a directory"
umask 077
# The name tells whose it is: one whose process is gone was left behind.
t=$d.$b.mkesdk.$$-$token
trap 'rm -f "$t"' EXIT
trap 'exit 1' HUP INT PIPE TERM
for old in "$d.$b.mkesdk."*; do
	p=${old##*.mkesdk.}
	p=${p%%-*}
	case $p in
	'' | *[!0-9]*) continue ;;
	esac
	kill -0 "$p" 2>/dev/null || rm -f "$old"
done
set -C
: >"$t" || exit 1
set +C
cat >>"$t" || exit 1
# The end of the input may be the end of the connection. Only what is followed by the token is whole.
end=$(tail -c 96 "$t") || exit 1
sum=${end#"$token"}
[ "${#end}" = 96 ] && [ "${#sum}" = 64 ] || die 46 "the content ended early"
size=$(($(wc -c <"$t") - 96))
dd if=/dev/null of="$t" bs=1 seek="$size" count=0 2>/dev/null || exit 1
if [ -n "$owner" ]; then
	chown "$owner" "$t" || exit 1
fi
chmod "$mode" "$t" || exit 1
case $sum in
-*) ;;
*)
	if command -v openssl >/dev/null 2>&1 && is=$(openssl dgst -sha256 <"$t" 2>/dev/null); then
		is=${is##*[ =]}
	elif command -v sha256sum >/dev/null 2>&1; then
		is=$(sha256sum <"$t") || exit 1
		is=${is%% *}
	elif command -v shasum >/dev/null 2>&1; then
		is=$(shasum -a 256 <"$t") || exit 1
		is=${is%% *}
	elif [ "$must" = 1 ]; then
		die 48 "neither openssl nor sha256sum nor shasum is installed"
	else
		is=$sum
	fi
	[ "$is" = "$sum" ] || die 47 "SHA-256 is $is, want $sum"
	;;
esac
sync "$t" 2>/dev/null || sync
mv -f "$t" "$f" || exit 1
trap - EXIT
sync "$d" 2>/dev/null || :
