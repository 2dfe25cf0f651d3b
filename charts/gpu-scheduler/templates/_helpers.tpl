{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /*
A file of deploy/, which is the one source of these objects, with the names of this release:
  include "gpu-scheduler.deploy" (list $ "rbac/scheduler.yaml")
What is replaced stands there as it stands here; tests/kube/e2e/chart_test.py finds what is left.
*/ -}}
{{- define "gpu-scheduler.deploy" -}}
{{- $root := index . 0 -}}
{{- $namespace := $root.Release.Namespace -}}
{{- $text := $root.Files.Get (printf "deploy/%s" (index . 1)) -}}
{{- if not $text -}}
{{- fail (printf "the chart has no deploy/%s: its link deploy leads nowhere" (index . 1)) -}}
{{- end -}}
{{- $text = regexReplaceAll `(\bnamespaces?: \[?)gpu-scheduler-locks\b` $text
      (printf "${1}%s" $root.Values.lockNamespace) -}}
{{- $text = regexReplaceAll `(\bnamespaces?: \[?)gpu-scheduler([],\s])` $text
      (printf "${1}%s${2}" $namespace) -}}
{{- $text = replace "request.namespace != 'gpu-scheduler'"
      (printf "request.namespace != '%s'" $namespace) $text -}}
{{- $text = replace "system:serviceaccount:gpu-scheduler:"
      (printf "system:serviceaccount:%s:" $namespace) $text -}}
{{- $text = replace "gpu-scheduler-webhook.gpu-scheduler.svc"
      (printf "gpu-scheduler-webhook.%s.svc" $namespace) $text -}}
{{- $text = replace "['gpu-scheduler', 'topology-aware-scheduler']"
      (printf "['%s']" (join "', '" $root.Values.schedulerNames)) $text -}}
{{- if eq $root.Values.webhook.injection "env" -}}
{{- $text = replace "['CUDA_VISIBLE_DEVICES']" "['CUDA_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES']"
      $text -}}
{{- end -}}
{{- $excluded := prepend $root.Values.excludedNamespaces "kube-system" -}}
{{- $text = replace "values: [kube-system]" (printf "values: %s" (toJson $excluded)) $text -}}
{{- $text -}}
{{- end -}}

{{- /* The same, with an annotation for each object: (list $ FILE KEY VALUE). */ -}}
{{- define "gpu-scheduler.deploy-annotated" -}}
{{- include "gpu-scheduler.deploy" . | replace "\nmetadata:\n"
      (printf "\nmetadata:\n  annotations: {%s: %s}\n" (index . 2) (index . 3)) -}}
{{- end -}}

{{- /*
What the API server is to trust, in base64, or nothing.  In every mode it is what the Secret
says, if there is one, whoever made it: so neither an install nor an upgrade nor another mode
leaves the webhook untrusted, and what has been renewed since stays.  The Secret itself is no
object of the chart: Helm takes none that it has not made, and copies what is in its own into
every revision.
*/ -}}
{{- define "gpu-scheduler.ca-bundle" -}}
{{- $name := "gpu-scheduler-webhook-cert" -}}
{{- $namespace := .Release.Namespace -}}
{{- $secret := lookup "v1" "Secret" $namespace $name -}}
{{- $bundle := dig "data" "ca.crt" "" $secret -}}
{{- if .Values.webhook.certs.caBundle -}}
{{- $bundle = b64enc .Values.webhook.certs.caBundle -}}
{{- end -}}
{{- /* `helm template` sees no cluster, and there is nothing to be said about it. */ -}}
{{- $seen := lookup "v1" "Namespace" "" "kube-system" -}}
{{- if and (eq .Values.webhook.certs.mode "secret") (not $bundle) $seen -}}
{{- if not $secret -}}
{{- printf "there is no Secret %s/%s: make it by hack/gen-webhook-certs.sh %s, or set %s"
      $namespace $name $namespace "webhook.certs.mode to certs or cert-manager" | fail -}}
{{- else -}}
{{- printf "Secret %s/%s has no ca.crt: set webhook.certs.caBundle to what has signed it"
      $namespace $name | fail -}}
{{- end -}}
{{- end -}}
{{- $bundle -}}
{{- end -}}

{{- /* By these the parts are found; the argument is the part. */ -}}
{{- define "gpu-scheduler.labels" -}}
app.kubernetes.io/name: gpu-scheduler
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{- define "gpu-scheduler.image" -}}
{{- if not .Values.image.repository -}}
{{- fail "set image.repository to an image with gpu-scheduler in its PATH, none is published" -}}
{{- end -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* Of all our pods: (list $ ACCOUNT VALUES). */ -}}
{{- define "gpu-scheduler.pod" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
serviceAccountName: {{ index . 1 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
nodeSelector: {{ toJson $values.nodeSelector }}
tolerations: {{ toJson $values.tolerations }}
{{- with $values.affinity }}
affinity: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "gpu-scheduler.container" -}}
image: {{ include "gpu-scheduler.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}
