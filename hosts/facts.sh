# mkesdk: facts
# Prints what this host is and what of k0s is on it. Reads only.
#
# Arguments: the marker that frames the output, the data directory and the kubelet
# root to look at where no service names its own, the seconds that a command may
# take, and, for tests, the root of the file system to look at.
#
# Output, between "MARKER begin" and "MARKER end": values, one a line, as
# "MARKER = name value" (an empty value: not known), and blocks of lines, opened by
# "MARKER + name" and closed by "MARKER - name yes|no|unknown". Tokens and keys stay
# here: of a kubeconfig only the certificate of the CA is printed.
M=$1 DATA=${2:-/var/lib/k0s} KUBELET=$3 SECS=${4:-10} R=$5
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
unset OMP_NUM_THREADS OMP_THREAD_LIMIT
exec </dev/null 2>/dev/null

val() { printf '%s = %s %s\n' "$M" "$1" "$2"; }
block() { B=$1; printf '%s + %s\n' "$M" "$B"; }
close() { printf '\n%s - %s %s\n' "$M" "$B" "$1"; }
there() { [ -e "$1" ] || [ -L "$1" ]; }
yesno() { if "$@"; then echo yes; else echo no; fi; }
have() { command -v "$1" >/dev/null; }
# first FILE: its first line. The shell's own read takes single bytes, of which
# files below /proc/sys give only the first.
first() { LINE=; [ ! -r "$1" ] || LINE=$(head -n 1 "$1"); }
# bounded COMMAND…: it must not hang, whatever it is.
bounded() { timeout -k 2 "$SECS" "$@"; }
# whole NAME FILE: the file as a block.
whole() {
  block "$1"
  if there "$2"; then if cat "$2"; then close yes; else close unknown; fi; else close no; fi
}
# output NAME COMMAND…: what it prints as a block.
output() {
  block "$1"; shift
  if "$@"; then close yes; else close unknown; fi
}
# list NAME DIRECTORY IGNORED: some of its entries as a block, but for those ignored.
list() {
  block "$1"
  if [ -d "$2" ]; then
    if FOUND=$(ls -A "$2"); then
      FOUND=$(printf '%s\n' "$FOUND" | grep -vxE "${3:-}" | head -n 10 | tr -c ' -~\n' '?')
      if [ -n "$FOUND" ]; then printf '%s\n' "$FOUND"; close yes; else close no; fi
    else close unknown; fi
  elif there "$2"; then close unknown
  else close no; fi
}

printf '\n%s begin\n' "$M"
val time "$(date +%s.%N)"
val uid "$(id -u)"
val machine "$(uname -m)"
val kernel "$(uname -r)"
first "$R/proc/sys/kernel/hostname"; val hostname "$LINE"
first "$R/proc/sys/kernel/random/boot_id"; val boot-id "$LINE"
first "$R/etc/machine-id"
[ -n "$LINE" ] || first "$R/var/lib/dbus/machine-id"
val machine-id "$LINE"
if there "$R/etc/os-release"; then whole os-release "$R/etc/os-release"; else whole os-release "$R/usr/lib/os-release"; fi

# The init system and, in one question, all services that matter.
if [ -d "$R/run/systemd/system" ]; then INIT=systemd
elif [ -d "$R/run/openrc" ]; then INIT=openrc
else first "$R/proc/1/comm"; INIT=$LINE; fi
val init "$INIT"
block services
case $INIT in
systemd)
  if bounded systemctl show --property=Id,LoadState,ActiveState,SubState \
    k0scontroller.service k0sworker.service firewalld.service nm-cloud-setup.service nm-cloud-setup.timer
  then close yes; else close unknown; fi ;;
openrc)
  for s in k0scontroller k0sworker firewalld; do
    if there "$R/etc/init.d/$s"; then bounded rc-service "$s" status >/dev/null; echo "$s $?"; fi
  done
  close yes ;;
*) close no ;;
esac

# command SERVICE FILE: its command line, drop-ins counted, as a block.
command_line() {
  block "command-$1"
  case $INIT in
  systemd) CMD=$(
    for f in "$2" "$R/etc/systemd/system/$1.service.d"/*.conf "$R/run/systemd/system/$1.service.d"/*.conf; do
      [ ! -f "$f" ] || { cat "$f"; echo; }
    done | awk '
      { while (sub(/\\$/, "") && (getline more) > 0) $0 = $0 more }
      /^[ \t]*ExecStart[ \t]*=/ { sub(/^[^=]*=[ \t]*/, ""); if ($0 != "") last = $0 }
      END { print last }') ;;
  *) CMD=$(awk '
      /^[ \t]*command=/ { sub(/^[^=]*=/, ""); prog = $0 }
      /^[ \t]*command_args=/ { sub(/^[^=]*=/, ""); gsub(/^"|"[ \t]*$/, ""); args = $0 }
      END { print prog " " args }' "$2") ;;
  esac
  # A token was an argument once.
  CMD=$(printf '%s\n' "$CMD" | sed 's/H4sI[A-Za-z0-9+\/=]*/(token)/g')
  printf '%s\n' "$CMD"
  if [ -n "$CMD" ]; then close yes; else close unknown; fi
}
COMMAND=
for s in k0scontroller k0sworker; do
  FILE=
  case $INIT in
  systemd) for d in /etc /run /usr/local/lib /usr/lib /lib; do
      if [ -z "$FILE" ] && there "$R$d/systemd/system/$s.service"; then FILE=$d/systemd/system/$s.service; fi
    done ;;
  *) if there "$R/etc/init.d/$s"; then FILE=/etc/init.d/$s; fi ;;
  esac
  val "file-$s" "$FILE"
  if [ -n "$FILE" ]; then command_line "$s" "$R$FILE"; COMMAND=${COMMAND:-$CMD}; fi
done

# What the command line says of paths. Each line begins with an x, so that none is
# lost to the splitting.
set -f; OLDIFS=$IFS; IFS='
'
set -- $(printf '%s\n' "$COMMAND" | awk '
  function plain(w) { gsub(/["\047]/, "", w); gsub(/\\x20/, " ", w); return w }
  { n = split($0, w, " ")
    prog = plain(w[1]); sub(/^[-@:+!]+/, "", prog)
    for (i = 2; i <= n; i++) {
      at = plain(w[i]); eq = index(at, "=")
      if (eq) v[substr(at, 1, eq - 1)] = substr(at, eq + 1); else if (i < n) v[at] = plain(w[i + 1])
    } }
  END { print "x" prog; print "x" v["--data-dir"]; print "x" v["--kubelet-root-dir"]; print "x" v["--token-file"]; print "x" v["--status-socket"] }')
IFS=$OLDIFS; set +f
BIN=${1#x} TOKEN=${4#x} SOCKET=${5#x}
if [ -n "${2#x}" ]; then DATA=${2#x}; fi
if [ -n "${3#x}" ]; then KUBELET=${3#x}; fi
case $DATA in /*) ;; *) DATA=/$DATA ;; esac
DATA=${DATA%/}
KUBELET=${KUBELET:-$DATA/kubelet}
case $KUBELET in /*) ;; *) KUBELET=/$KUBELET ;; esac
case $BIN in /*) ;; *) BIN=/usr/local/bin/k0s ;; esac
TOKEN=${TOKEN:-/etc/k0s/k0stoken}
val data-dir "$DATA"
val kubelet-root "$KUBELET"
val binary "$BIN"
val token-file "$TOKEN"

# k0s itself.
block k0s-version
if [ ! -f "$R$BIN" ]; then close no
elif ! have timeout; then close unknown
else
  OUT=$(bounded "$R$BIN" version); RC=$?
  printf '%s\n' "$OUT" | head -n 1
  case $RC in 0) close yes ;; 124 | 137) close unknown ;; *) close no ;; esac
fi
block k0s-status
if [ ! -f "$R$BIN" ]; then close no
elif ! have timeout; then close unknown
else
  set -- status -o json
  if [ -n "$SOCKET" ]; then set -- "$@" --status-socket "$SOCKET"; fi
  if OUT=$(bounded "$R$BIN" "$@"); then
    # The rest of it is the configuration of the cluster, secrets included.
    printf '%s\n' "$OUT" | awk -F'"' '($2 == "Version" || $2 == "Role") && !seen[$2]++ { print $2 " " $4 }'
    close yes
  else close no; fi
fi

# The CA, wherever one can be: its certificate and nothing else.
ca_data() { sed -n 's/^[[:space:]]*certificate-authority-data:[[:space:]]*//p' | head -n 1 | tr -cd 'A-Za-z0-9+/='; }
pem() { sed -n '/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p' "$1"; }
block ca-pki
if there "$R$DATA/pki/ca.crt"; then if pem "$R$DATA/pki/ca.crt"; then close yes; else close unknown; fi; else close no; fi
block ca-kubelet
CONF=$R$DATA/kubelet.conf
if [ -s "$CONF" ]; then
  CA=$(ca_data <"$CONF" | base64 -d)
  if [ -z "$CA" ]; then
    f=$(sed -n 's/^[[:space:]]*certificate-authority:[[:space:]]*//p' "$CONF" | head -n 1 | tr -d '"'\')
    case $f in /*) CA=$(pem "$R$f") ;; esac
  fi
  printf '%s\n' "$CA" | pem -; close yes
elif there "$CONF" && [ ! -f "$CONF" ]; then close unknown
else close no; fi
val kubelet-conf "$(yesno [ -s "$CONF" ])"
block ca-token
for f in "$TOKEN" /etc/k0s/k0stoken; do [ -f "$R$f" ] && break; done
if [ -s "$R$f" ]; then
  base64 -d <"$R$f" | gzip -dc | ca_data | base64 -d | pem -
  close yes
else close no; fi
val token-found "$(if there "$R$f"; then printf %s "$f"; fi)"

# What an earlier k0s has left.
list left-data "$R$DATA" 'images|lost\+found'
list left-etcd-ca "$R$DATA/pki/etcd"
val left-etcd-data "$(yesno there "$R$DATA/etcd/member")"
list left-kubelet "$R$KUBELET" 'lost\+found'
list left-run "$R/run/k0s"
list left-cni "$R/etc/cni/net.d"
block left-mounts
set --
for d in "$DATA" "$KUBELET" /run/k0s; do
  # Mounts are listed under their true name.
  t=$(readlink -f "$R$d"); t=${t:-$R$d}; set -- "$@" "${t#"$R"}"
done
if awk -v a="$1/" -v b="$2/" -v c="$3/" '
  { m = $5; gsub(/\\040/, " ", m); if (index(m, a) == 1 || index(m, b) == 1 || index(m, c) == 1) { if (n++ < 10) print m } }
' "$R/proc/self/mountinfo"; then close yes; else close unknown; fi

# The machine.
val cpus "$(nproc || grep -c '^processor' "$R/proc/cpuinfo")"
output meminfo awk '$1 == "MemTotal:" || $1 == "SwapTotal:" { print $1, $2, $3 }' "$R/proc/meminfo"
# disk NAME DIRECTORY: what it is on, or will be.
disk() {
  p=$2
  while [ -n "$p" ] && [ ! -e "$R$p" ]; do p=${p%/*}; done
  val "$1-on" "${p:-/}"
  val "$1-stat" "$(stat -f -c '%a %S %c %d %T' "$R${p:-/}")"
}
disk data "$DATA"
disk kubelet "$KUBELET"
disk temp /tmp
G=$R/sys/fs/cgroup
val cgroup "$(stat -f -c %t "$G")"
val cgroup-unified "$(stat -f -c %t "$G/unified")"
first "$G/cgroup.controllers"; val cgroup-controllers "$LINE"
# limits DIRECTORY PATH FILE…: the limits on the way from the path up to the root.
limits() {
  dir=$1 p=$2; shift 2
  while :; do
    for f; do
      if [ -r "$G/$dir$p/$f" ]; then first "$G/$dir$p/$f"; echo "$f $LINE"; fi
    done
    case $p in '' | / | */..*) break ;; esac
    p=${p%/*}
  done
}
block limits
if [ -r "$R/proc/self/cgroup" ]; then
  while IFS=: read -r n names p; do
    case $names in
    '') limits . "$p" memory.max cpu.max ;;
    memory) limits memory "$p" memory.limit_in_bytes ;;
    cpu | cpu,cpuacct | cpuacct,cpu) limits "$names" "$p" cpu.cfs_quota_us cpu.cfs_period_us ;;
    esac
  done <"$R/proc/self/cgroup"
  close yes
else close unknown; fi
if [ -r "$R/sys/fs/selinux/enforce" ]; then first "$R/sys/fs/selinux/enforce"; val selinux "enforce $LINE"; else val selinux disabled; fi
val selinux-policy "$(sed -n 's/^[[:space:]]*SELINUXTYPE[[:space:]]*=[[:space:]]*//p' "$R/etc/selinux/config" | head -n 1)"
first "$R/sys/module/apparmor/parameters/enabled"; val apparmor "${LINE:-N}"
val apparmor-parser "$(yesno have apparmor_parser)"
first "$R/proc/sys/fs/inotify/max_user_instances"; val inotify-instances "$LINE"
first "$R/proc/sys/fs/inotify/max_user_watches"; val inotify-watches "$LINE"

# The network. Without the ip command the kernel's own tables have to do.
if have ip; then
  output addresses ip -o addr show
  output routes ip -o route show default
  output routes6 ip -o -6 route show default
else
  block proc-route; cat "$R/proc/net/route" && close yes || close unknown
  block proc-local; awk '/\|--/ { a = $2 } /\/32 host LOCAL/ && !seen[a]++ { print a }' "$R/proc/net/fib_trie" && close yes || close unknown
  whole proc-inet6 "$R/proc/net/if_inet6"
fi
block listening
RC=yes
for f in tcp tcp6; do
  if there "$R/proc/net/$f"; then awk '$4 == "0A" && !seen[$2]++ { print $2 }' "$R/proc/net/$f" || RC=unknown; fi
done
there "$R/proc/net/tcp" || RC=unknown
close $RC

val time-end "$(date +%s.%N)"
printf '%s end\n' "$M"
