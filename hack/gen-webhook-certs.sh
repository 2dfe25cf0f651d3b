#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gen-webhook-certs.sh [namespace] - a certificate for the webhook, with openssl and kubectl.
#
# Makes an authority and a certificate for the service gpu-scheduler-webhook of the namespace
# (default gpu-scheduler), puts them into the Secret gpu-scheduler-webhook-cert and, if there
# are webhook configurations named gpu-scheduler-webhook already, tells them to trust the new
# authority.  An authority that the Secret had stays trusted until it ends or
# `gpu-scheduler certs`, which does all this and renews in time, takes over.
#
#	hack/gen-webhook-certs.sh default
#	curl ... | bash -s -- default
#
# DAYS (365): how long they are valid.
set -euo pipefail

SERVICE=gpu-scheduler-webhook
SECRET=gpu-scheduler-webhook-cert
CONFIGURATION=gpu-scheduler-webhook
DAYS=${DAYS:-365}

# The key of the authority is thrown away with the folder: nobody can sign with it later.
make_certificates() {
	local folder=$1 namespace=$2
	cat >"$folder/openssl.cnf" <<CNF
[req]
distinguished_name = name
prompt = no
[name]
CN = $SERVICE CA $(date +%s)
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

# Every webhook of the configuration, if there is one.
set_bundle() {
	local kind=$1 folder=$2 bundle patch='' names name index=0
	bundle=$(base64 <"$folder/ca.crt" | tr -d '\n')
	names=$(kubectl get "$kind" "$CONFIGURATION" --ignore-not-found \
		-o 'jsonpath={range .webhooks[*]}{.name}{"\n"}{end}' </dev/null)
	for name in $names; do
		patch+=',{"op":"test","path":"/webhooks/'$index'/name","value":"'$name'"}'
		patch+=',{"op":"add","path":"/webhooks/'$index'/clientConfig/caBundle"'
		patch+=',"value":"'$bundle'"}'
		index=$((index + 1))
	done
	[ -z "$patch" ] ||
		kubectl patch "$kind" "$CONFIGURATION" --type=json -p "[${patch#,}]" </dev/null
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

main() {
	local namespace=${1:-gpu-scheduler} tool
	for tool in openssl kubectl base64; do
		command -v "$tool" >/dev/null || { echo "$tool is missing" >&2 && exit 1; }
	done
	umask 077
	folder=$(mktemp -d)
	: >"$folder/openssl.log"
	trap 'leave $?' EXIT
	kubectl get namespace "$namespace" >/dev/null 2>&1 </dev/null ||
		kubectl create namespace "$namespace" </dev/null
	make_certificates "$folder" "$namespace" 2>"$folder/openssl.log"
	make_bundle "$folder" "$namespace"
	# Who trusts the new authority first never meets a stranger.
	set_bundle mutatingwebhookconfiguration "$folder"
	set_bundle validatingwebhookconfiguration "$folder"
	store "$folder" "$namespace"
}

# Read whole before anything runs, for a script from a pipe must not lose its end to a program
# that reads from there, too.
main "$@"
