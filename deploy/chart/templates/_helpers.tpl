{{- define "socle.name" -}}
{{- if contains "socle" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ .Release.Name | trunc 44 | trimSuffix "-" }}-socle{{ end }}
{{- end }}

{{- define "socle.selector" -}}
app.kubernetes.io/name: socle
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "socle.labels" -}}
{{ include "socle.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}
