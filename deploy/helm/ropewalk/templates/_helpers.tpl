{{- define "ropewalk.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "ropewalk.labels" -}}
{{ include "ropewalk.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "ropewalk.selector" -}}
app.kubernetes.io/name: ropewalk
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ropewalk.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "ropewalk.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{/* The configuration, with the settings for several servers and for metrics added. */}}
{{- define "ropewalk.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if gt (int .Values.replicas) 1 }}
{{- $config = mergeOverwrite (dict "mcp" (dict "replica" "${env:REPLICA}")) $config }}
{{- end }}
{{- if .Values.metrics.enabled }}
{{- $config = mergeOverwrite (dict "http" (dict "metrics" (printf "0.0.0.0:%d" (int .Values.metrics.port)))) $config }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* The security context of every container: no privileges. */}}
{{- define "ropewalk.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
