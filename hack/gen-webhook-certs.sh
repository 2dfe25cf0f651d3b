#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gen-webhook-certs.sh [namespace] - a certificate for the webhook, with openssl and kubectl.
#
# `gpu-scheduler certs` does the same, and renews in time.
set -euo pipefail

SERVICE=gpu-scheduler-webhook
SECRET=gpu-scheduler-webhook-cert
CONFIGURATION=gpu-scheduler-webhook
DAYS=${DAYS:-365}

usage() {
	cat <<'TEXT'
Usage: gen-webhook-certs.sh [NAMESPACE]
       ... | bash -s -- [NAMESPACE]

Makes an authority and a certificate for the service gpu-scheduler-webhook of the
namespace (default gpu-scheduler) and puts them into the Secret
gpu-scheduler-webhook-cert there.  Webhook configurations named gpu-scheduler-webhook
that call this service are told to trust the authority; where they are applied later,
run it again.  An authority that the Secret had stays trusted beside the new one.

Environment:
  DAYS        how long they are valid (default 365)
  KUBECONFIG  how kubectl reaches the cluster
TEXT
}

complain() {
	echo "gen-webhook-certs.sh: $1" >&2
	exit "${2:-2}"
}

# The key of the authority is thrown away with the folder: nobody can sign with it later.  By
# its name `gpu-scheduler certs` knows that it may renew what it finds.
make_certificates() {
	local folder=$1 namespace=$2
	cat >"$folder/openssl.cnf" <<CNF
[req]
distinguished_name = name
prompt = no
[name]
CN = gpu-scheduler webhook CA $(date +%s)
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:$SERVICE.$namespace.svc, DNS:$SERVICE.$namespace.svc.cluster.local
CNF
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$folder/ca.key"
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$folder/tls.key"
	openssl req -x509 -new -sha256 -config "$folder/openssl.cnf" -extensions authority \
		-key "$folder/ca.key" -days "$DAYS" -out "$folder/new-ca.crt"
	openssl req -new -sha256 -config "$folder/openssl.cnf" -key "$folder/tls.key" \
		-subj "/CN=$SERVICE" -out "$folder/tls.csr"
	openssl x509 -req -sha256 -in "$folder/tls.csr" -days "$DAYS" \
		-CA "$folder/new-ca.crt" -CAkey "$folder/ca.key" \
		-set_serial "0x$(openssl rand -hex 16 | sed 's/^./1/')" \
		-extfile "$folder/openssl.cnf" -extensions server -out "$folder/tls.crt"
}

# As `gpu-scheduler certs`: who keeps the Secret would write it again, and both would be trusted
# in turns.
check_keeper() {
	local keeper
	keeper=$(kubectl -n "$1" get secret "$SECRET" --ignore-not-found \
		-o 'jsonpath={.metadata.annotations.cert-manager\.io/certificate-name}' </dev/null)
	[ -z "$keeper" ] || complain "Secret $1/$SECRET is kept by cert-manager" 1
}

# ca.crt: the new authority, then the first one of the Secret if it is still valid.
make_bundle() {
	local folder=$1 namespace=$2
	cp "$folder/new-ca.crt" "$folder/ca.crt"
	kubectl -n "$namespace" get secret "$SECRET" --ignore-not-found \
		-o 'jsonpath={.data.ca\.crt}' </dev/null | base64 -d >"$folder/stored.crt"
	if openssl x509 -in "$folder/stored.crt" -checkend 0 -noout >/dev/null 2>&1; then
		openssl x509 -in "$folder/stored.crt" >>"$folder/ca.crt"
	fi
}

# Every webhook of the configuration, if there is one, that calls our service.  One that calls
# somebody else must go on trusting that one.
set_bundle() {
	local kind=$1 folder=$2 namespace=$3 bundle patch='' hooks name service index=-1
	bundle=$(base64 <"$folder/ca.crt" | tr -d '\n')
	hooks=$(kubectl get "$kind" "$CONFIGURATION" --ignore-not-found -o 'jsonpath='\
'{range .webhooks[*]}{.name}{" "}{.clientConfig.service.namespace}{"/"}'\
'{.clientConfig.service.name}{"\n"}{end}' </dev/null)
	while read -r name service; do
		index=$((index + 1))
		[ "$service" = "$namespace/$SERVICE" ] || continue
		patch+=',{"op":"test","path":"/webhooks/'$index'/name","value":"'$name'"}'
		patch+=',{"op":"add","path":"/webhooks/'$index'/clientConfig/caBundle"'
		patch+=',"value":"'$bundle'"}'
	done <<<"$hooks"
	[ -n "$patch" ] || return 0
	kubectl patch "$kind" "$CONFIGURATION" --type=json -p "[${patch#,}]" </dev/null
	told=$((told + 1))
}

# By server-side apply: the other one would write the key into an annotation, too.
store() {
	local folder=$1 namespace=$2
	kubectl -n "$namespace" create secret generic "$SECRET" --type=kubernetes.io/tls \
		--from-file=ca.crt="$folder/ca.crt" --from-file=tls.crt="$folder/tls.crt" \
		--from-file=tls.key="$folder/tls.key" --dry-run=client -o json </dev/null |
		kubectl apply --server-side --force-conflicts --field-manager=gpu-scheduler -f -
}

# openssl talks while all is well, so it is heard only when it is not.
leave() {
	[ "$1" = 0 ] || cat "$folder/openssl.log" >&2
	rm -rf "$folder"
}

# Nothing has been changed when it is the words that are wrong.
check_words() {
	case ${1:-} in
	-h | --help) usage && exit 0 ;;
	-*) complain "unknown option $1, see --help" ;;
	esac
	[ $# -le 1 ] || complain "there is one namespace at most, see --help"
	[[ ${1-gpu-scheduler} =~ ^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$ ]] ||
		complain "'$1' is no name of a namespace"
	[[ $DAYS =~ ^[1-9][0-9]{0,3}$ ]] || complain "DAYS is 1 to 9999, not '$DAYS'"
}

main() {
	check_words "$@"
	local namespace=${1:-gpu-scheduler} tool told=0
	for tool in openssl kubectl base64; do
		command -v "$tool" >/dev/null || complain "$tool is missing" 1
	done
	umask 077
	folder=$(mktemp -d)
	: >"$folder/openssl.log"
	trap 'leave $?' EXIT
	kubectl get namespace "$namespace" >/dev/null 2>&1 </dev/null ||
		kubectl create namespace "$namespace" </dev/null
	check_keeper "$namespace"
	make_certificates "$folder" "$namespace" 2>"$folder/openssl.log"
	make_bundle "$folder" "$namespace"
	# Who trusts the new authority first never meets a stranger.
	set_bundle mutatingwebhookconfiguration "$folder" "$namespace"
	set_bundle validatingwebhookconfiguration "$folder" "$namespace"
	store "$folder" "$namespace"
	[ "$told" != 0 ] || cat <<TEXT
No webhook configuration $CONFIGURATION calls the service $SERVICE of the
namespace $namespace yet.  Installed there, the chart takes the Secret as it is.  Without
the chart, start the webhook, then kubectl apply -f deploy/webhook/configuration.yaml
(with that namespace in it) and run this again.
TEXT
}

# Read whole before anything runs, for a script from a pipe must not lose its end to a program
# that reads from there, too.
main "$@"
