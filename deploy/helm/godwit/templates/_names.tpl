{{/* What everything is called: the release, with the chart's name where that is not in it. */}}
{{- define "godwit.name" -}}
{{- if contains "godwit" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-godwit" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "godwit.selector" -}}
app.kubernetes.io/name: godwit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "godwit.labels" -}}
{{ include "godwit.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "godwit.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "godwit.cluster" -}}
{{- if gt (int .Values.replicas) 1 }}yes{{ end }}
{{- end }}

{{/* What cannot be, and what to do about it. */}}
{{- define "godwit.check" -}}
{{- if not .Values.keys.secretName }}
{{- fail (printf "keys.secretName is missing. godwit init --dir keys --data /var/lib/godwit/data makes the keys, and kubectl create secret generic %s-keys --from-file=keys/root.key --from-file=keys/root-access-key.json the Secret" (include "godwit.name" .)) }}
{{- end }}
{{- if and (include "godwit.cluster" .) (not .Values.cluster.secretName) }}
{{- fail (printf "cluster.secretName is missing. godwit cluster init --dir cluster --node %s-0 makes the authority, and kubectl create secret generic %s-cluster --from-file=cluster the Secret" (include "godwit.name" .) (include "godwit.name" .)) }}
{{- end }}
{{- if and .Values.cluster.secretName (not (include "godwit.cluster" .)) }}
{{- fail "cluster.secretName is set, and replicas is 1" }}
{{- end }}
{{- if not (or .Values.tls.secretName .Values.allowPlainHTTP) }}
{{- fail "tls.secretName is missing; or set allowPlainHTTP, where a proxy in front or the network keeps requests secret" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.admin.enabled) }}
{{- fail "serviceMonitor.enabled takes admin.enabled: at the port for clients /metrics takes a signature" }}
{{- end }}
{{- end }}
