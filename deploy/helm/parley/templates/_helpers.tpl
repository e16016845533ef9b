{{- define "parley.name" -}}
{{- if contains "parley" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-parley" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "parley.selector" -}}
app.kubernetes.io/name: parley
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The pods of the runner, which the Service of the servers must not select. */}}
{{- define "parley.runnerSelector" -}}
app.kubernetes.io/name: parley-runner
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "parley.labels" -}}
{{ include "parley.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "parley.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ if .Values.sandbox.enabled }}-tools{{ end }}
{{- end }}

{{/* The runner is of the same release as the servers: they speak the same protocol. */}}
{{- define "parley.runnerImage" -}}
{{ .Values.image.repository }}:{{ .Values.runner.tag | default (printf "%s-tools" (.Values.image.tag | default .Chart.AppVersion)) }}
{{- end }}

{{/* The environment of every container: plain settings, and the files of the secret ones. A number
     of a values file is a float64, which quote alone writes as 1e+06. */}}
{{- define "parley.env" -}}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ kindIs "float64" $value | ternary (toJson $value) $value | quote }}
{{- end }}
{{- range $name, $_ := .Values.secrets }}
- name: {{ $name }}_FILE
  value: /run/secrets/parley/{{ $name }}
{{- end }}
{{- end }}

{{/* The secret settings as files, which only the pod's group can read. */}}
{{- define "parley.secrets" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $name, $from := .Values.secrets }}
      - secret:
          name: {{ required (printf "secrets.%s.name" $name) $from.name }}
          items:
            - key: {{ required (printf "secrets.%s.key" $name) $from.key }}
              path: {{ $name }}
      {{- end }}
{{- end }}
