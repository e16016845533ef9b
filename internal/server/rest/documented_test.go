package rest

import (
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/schema"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/files"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool/httptool"
	toolapi "github.com/parley-server/parley/internal/tool/openapi"
	"github.com/parley-server/parley/internal/turn"
)

// enforced are the limits that are the same for every workspace, with the enforced values.
var enforced = map[string]int{
	"enqueued_messages": session.MaxLinedUp, "header_bytes": HeaderBytes, "header_bytes_refused": HeaderBytes + 4<<10, // as in net/http
	"header_seconds": ceilSeconds(HeaderTime), "body_bytes": request.MaxBody, "body_depth": request.MaxDepth,
	"body_seconds": ceilSeconds(request.BodyTime),
	"body_members": request.MaxMembers, "body_values": request.MaxValues,
	"request_id_characters": server.MaxRequestID, "idempotency_key_characters": request.MaxIdempotencyKey,
	"violations": request.MaxViolations, "page_items": request.MaxPage,
	"command_characters": request.MaxCommand, "caller_id_bytes": request.MaxCallerID, "skill_name_characters": request.MaxName,
	"skill_input_bytes":     request.MaxInput,
	"response_schema_bytes": request.MaxSchema, "response_schema_depth": schema.MaxDepth, "secret_input_names": request.MaxSecrets,
	"secret_name_characters": request.MaxName, "secret_value_bytes": vault.MaxValue, "secret_value_least_bytes": vault.MinValue,
	"max_response_seconds": request.MaxResponseSeconds, "max_turns": request.MaxTurns,
	"max_cost_usd": request.MaxCost, "tool_result_output_characters": event.OutputLimit, "deny_reason_characters": request.MaxReason,
	"allowlist_pattern_bytes": permission.MaxPattern, "attachments": request.MaxAttachments, "attached_text_bytes": filestore.ReadText,
	"attached_image_bytes": filestore.ReadImage, "attached_images_bytes": filestore.ReadImages, "file_bytes": filestore.MaxSize,
	"file_name_bytes": filestore.MaxName, "file_upload_seconds": ceilSeconds(filestore.UploadTime),
	"file_fetch_seconds": ceilSeconds(filestore.FetchTime), "file_fetch_redirects": filestore.FetchRedirects,
	"tools": request.MaxTools, "tool_name_characters": request.MaxToolName, "tool_description_characters": request.MaxToolDescription,
	"tool_definitions_bytes": request.MaxToolDefinitions, "tool_output_bytes": request.MaxToolOutput,
	"tool_servers": toolset.MaxServers, "own_tools": toolset.MaxTools, "own_tool_description_characters": toolset.MaxDescription,
	"own_tool_schema_bytes": toolset.MaxSchema,
	"own_tool_seconds":      ceilSeconds(toolset.MaxTimeout), "own_tool_answer_bytes": httptool.MaxAnswer,
	"openapi_document_bytes": toolapi.MaxDocument,
	"workspace_fetches":      filestore.MaxFetching, "turn_files": filestore.MaxProduced, "download_items": filestore.MaxDownloads,
	"callback_url_bytes": egress.MaxURL, "callback_metadata_pairs": callback.MaxMetadata,
	"callback_metadata_key_characters": callback.MaxMetadataKey, "callback_metadata_value_characters": callback.MaxMetadataValue,
	"callback_attempts": callback.Attempts, "callback_attempt_seconds": ceilSeconds(callback.AnswerTime),
	"idempotency_key_hours":   24, // in queries/turn.sql, once.sql and file.sql
	"workspace_running_turns": 64, // in migrations/00019_fair.sql, like the next; TestDocumentedRunningTurns checks the database
	"workspace_storage_bytes": 10 << 30,
}

// twice are limits that are checked in two places, so that one response can report every mistake of
// a request.
var twice = map[string][2]int{
	"skill input": {request.MaxInput, skill.MaxInput}, "response_schema": {request.MaxSchema, schema.MaxSize},
	"attachments": {request.MaxAttachments, filestore.MaxAttached}, "url": {request.MaxURL, egress.MaxURL}, "pattern": {request.MaxPattern,
		permission.MaxPattern},
}

// TestDocumentedLimits checks that x-limits lists every enforced limit with its value.
func TestDocumentedLimits(t *testing.T) {
	t.Parallel()
	var doc struct {
		Limits map[string]int `yaml:"x-limits"`
	}
	if err := yaml.Unmarshal(openapi, &doc); err != nil {
		t.Fatal(err)
	}
	for name, want := range enforced {
		if got, ok := doc.Limits[name]; !ok || got != want {
			t.Errorf("%s is documented as %d, and is %d", name, got, want)
		}
		delete(doc.Limits, name)
	}
	for name := range documentLimits(server.Config{Sessions: &session.Store{}, Turns: &turn.Service{}, Files: &filestore.Store{}}) {
		if _, ok := doc.Limits[name]; !ok {
			t.Errorf("%s is configured, but not documented", name)
		}
		delete(doc.Limits, name)
	}
	for name := range doc.Limits {
		t.Errorf("%s is documented, but not enforced", name)
	}
	for name, both := range twice {
		if both[0] != both[1] {
			t.Errorf("%s: %d in one place, %d in the other", name, both[0], both[1])
		}
	}
}

// TestDocumentedBounds compares the bounds in the schemas of requests with those of the parsers.
func TestDocumentedBounds(t *testing.T) {
	t.Parallel()
	var doc any
	if err := yaml.Unmarshal(openapi, &doc); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"MessageRequest properties command maxLength":                                                   request.MaxCommand,
		"MessageRequest properties skill maxLength":                                                     request.MaxName,
		"MessageRequest properties secret_input maxItems":                                               request.MaxSecrets,
		"MessageRequest properties secret_input items maxLength":                                        request.MaxName,
		"MessageRequest properties attachments maxItems":                                                request.MaxAttachments,
		"MessageRequest properties caller_id maxLength":                                                 request.MaxCallerID,
		"MessageRequest properties callback oneOf 0 maxLength":                                          request.MaxURL,
		"MessageRequest properties callback oneOf 1 properties url maxLength":                           request.MaxURL,
		"MessageRequest properties callback oneOf 1 properties metadata maxProperties":                  callback.MaxMetadata,
		"MessageRequest properties callback oneOf 1 properties metadata propertyNames maxLength":        callback.MaxMetadataKey,
		"MessageRequest properties callback oneOf 1 properties metadata additionalProperties maxLength": callback.MaxMetadataValue,
		"MessageRequest properties limits properties max_response_seconds maximum":                      request.MaxResponseSeconds,
		"MessageRequest properties limits properties max_turns maximum":                                 request.MaxTurns,
		"MessageRequest properties limits properties max_cost_usd maximum":                              request.MaxCost,
		"MessageRequest properties tools maxItems":                                                      request.MaxTools,
		"CallerTool properties description maxLength":                                                   request.MaxToolDescription,
		"ToolResults properties results maxItems":                                                       request.MaxTools,
		"ToolResults properties results items properties error maxLength":                               request.MaxToolOutput,
		"LaterResult properties error maxLength":                                                        request.MaxToolOutput,
		"DecisionRequest oneOf 0 properties allowlist_pattern maxLength":                                request.MaxPattern,
		"DecisionRequest oneOf 1 properties reason maxLength":                                           request.MaxReason,
		"FileRequest properties filename maxLength":                                                     files.MaxGivenName,
		"FileRequest properties mime maxLength":                                                         files.MaxMIME,
		"FileRequest properties size maximum":                                                           filestore.MaxSize,
		"FileRequest properties origin_url maxLength":                                                   request.MaxURL,
		"DownloadRequest oneOf 1 properties filename maxLength":                                         files.MaxGivenName,
	} {
		name, rest, _ := strings.Cut(path, " ")
		got := lookup(doc, append([]string{"components", "schemas", name}, strings.Fields(rest)...))
		if got != want {
			t.Errorf("%s is documented as %v, and is %d", path, got, want)
		}
	}
	var table struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct{ Maximum int }
			}
		}
	}
	_ = yaml.Unmarshal(openapi, &table) // parameters of a whole path are a list, which is skipped
	pages := 0
	for path, methods := range table.Paths {
		for _, p := range methods["get"].Parameters {
			if p.Name != "limit" || strings.HasSuffix(path, "/egress/requests") { // it has no second page
				continue
			}
			if pages++; p.Schema.Maximum != request.MaxPage {
				t.Errorf("%s: pages of %d, documented as %d", path, request.MaxPage, p.Schema.Maximum)
			}
		}
	}
	if pages < 5 {
		t.Errorf("only %d lists have a limit", pages)
	}
}

// lookup returns the value at a path of a document.
func lookup(doc any, path []string) any {
	for _, step := range path {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(d) {
				return nil
			}
			doc = d[i]
		default:
			return nil
		}
	}
	return doc
}
