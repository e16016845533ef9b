package internal_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module      = "github.com/parley-server/parley/"
	testingTree = "internal/testing/" // helpers of tests, which the product does not link
)

// ours lists which of our packages each package may import. Every package must be listed.
var ours = map[string]string{
	"client":              "internal/sse internal/text",
	"cmd/parley":          "internal/cli",
	"cmd/parley-bench":    "*",
	"db":                  "",
	"docs":                "",
	"internal":            "",
	"internal/actor":      "",
	"internal/agent":      "internal/event internal/model internal/text internal/text/render internal/tool internal/tracing",
	"internal/app":        "*",
	"internal/app/demo":   "",
	"internal/cli":        "*",
	"internal/crashpoint": "",
	"internal/devdb":      "",
	"internal/egress":     "internal/placeholder internal/redact internal/store/vault internal/text",
	"internal/event":      "internal/text",
	"internal/eventlog": "db internal/crashpoint internal/event internal/metrics internal/outage internal/pgerr " +
		"internal/pulse internal/replan",
	"internal/fair":     "",
	"internal/fault":    "",
	"internal/logging":  "internal/pgerr internal/tracing",
	"internal/loopback": "",
	"internal/lapse":    "internal/outage",
	"internal/manifest": "client internal/fault internal/store/agent internal/store/modelset " +
		"internal/store/permission internal/store/toolset internal/store/vault internal/text",
	"internal/metrics":         "",
	"internal/model":           "internal/event internal/strictjson",
	"internal/model/anthropic": "internal/event internal/model internal/model/provider internal/sse",
	"internal/model/builtin":   "docs internal/event internal/model internal/schema internal/search internal/text",
	"internal/model/openai":    "internal/event internal/model internal/model/provider internal/sse",
	"internal/model/provider":  "internal/event internal/model",
	"internal/origin":          "",
	"internal/outage":          "internal/pgerr",
	"internal/pdftext":         "",
	"internal/pgerr":           "",
	"internal/placeholder":     "",
	"internal/pulse":           "db",
	"internal/redact":          "",
	"internal/replan":          "internal/actor internal/pgerr",
	"internal/schema":          "internal/text",
	"internal/search":          "",
	"internal/server": "internal/actor internal/event internal/eventlog internal/fault internal/logging " +
		"internal/loopback internal/metrics internal/origin internal/outage internal/pgerr internal/server/request internal/session " +
		"internal/sse internal/store/account internal/store/agent internal/store/apikey internal/store/callback " +
		"internal/store/filestore internal/store/ratelimit internal/store/skill internal/store/vault internal/store/workspace " +
		"internal/strictjson internal/turn internal/tracing",
	"internal/server/a2a": "internal/fault internal/server internal/server/a2a/call internal/server/a2a/card " +
		"internal/server/a2a/message internal/server/a2a/rpc internal/server/a2a/task internal/server/a2a/turns internal/server/jsonrpc " +
		"internal/server/request internal/session internal/store/apikey internal/store/callback internal/store/filestore " +
		"internal/store/ratelimit internal/turn",
	"internal/server/a2a/call": "internal/eventlog internal/fault internal/server internal/server/a2a/message " +
		"internal/server/a2a/rpc internal/server/a2a/task internal/server/a2a/v03 internal/server/jsonrpc internal/server/request " +
		"internal/session internal/store/apikey internal/store/filestore",
	"internal/server/a2a/card": "internal/server/a2a/task internal/store/skill internal/store/workspace",
	"internal/server/a2a/message": "internal/fault internal/server/a2a/rpc internal/server/a2a/task internal/server/request " +
		"internal/session internal/store/callback internal/store/skill internal/turn",
	"internal/server/a2a/rpc": "internal/fault internal/server internal/server/jsonrpc internal/session",
	"internal/server/a2a/task": "internal/event internal/server internal/session internal/store/callback " +
		"internal/store/filestore internal/text/render",
	"internal/server/a2a/turns": "internal/event internal/eventlog internal/fault internal/server internal/server/a2a/call " +
		"internal/server/a2a/message internal/server/a2a/rpc internal/server/a2a/task internal/server/jsonrpc internal/server/request " +
		"internal/session internal/sse internal/store/apikey internal/store/ratelimit internal/turn",
	"internal/server/a2a/v03": "internal/server/a2a/message internal/server/a2a/task internal/store/callback",
	"internal/server/admin": "internal/actor internal/fault internal/pgerr internal/replan internal/server " +
		"internal/server/request internal/session internal/store/adminlog internal/store/agent internal/store/apikey " +
		"internal/store/budget internal/store/callback internal/store/permission internal/store/ratelimit internal/store/skill " +
		"internal/store/vault internal/store/wiki internal/store/workspace internal/tool internal/toolenv internal/event internal/model " +
		"internal/store/modelset internal/store/toolset internal/tool/httptool internal/tool/mcptool internal/tool/openapi " +
		"internal/toolenv/workdir internal/tool/mcpauth internal/turn",
	"internal/server/agui": "internal/event internal/fault internal/server internal/server/request internal/session " +
		"internal/store/apikey internal/store/ratelimit internal/strictjson internal/text/render internal/turn",
	"internal/server/aisdk": "internal/event internal/fault internal/server internal/server/request internal/session " +
		"internal/store/apikey internal/store/ratelimit internal/strictjson internal/text/render internal/turn",
	"internal/server/connect": "internal/fault internal/server internal/store/toolset internal/tool internal/tool/mcpauth internal/turn",
	"internal/server/jsonrpc": "internal/fault internal/server/request",
	"internal/server/mcp": "internal/fault internal/server internal/server/mcp/tools internal/server/mcp/transport " +
		"internal/server/mcp/turns internal/session internal/store/apikey internal/store/ratelimit internal/store/skill internal/store/wiki",
	"internal/server/mcp/tools": "internal/fault internal/server internal/server/jsonrpc internal/server/mcp/transport " +
		"internal/server/request internal/store/apikey internal/text/render",
	"internal/server/mcp/transport": "internal/event internal/fault internal/server internal/server/jsonrpc " +
		"internal/server/request internal/sse internal/store/ratelimit internal/strictjson",
	"internal/server/mcp/turns": "internal/event internal/eventlog internal/fault internal/server internal/server/jsonrpc " +
		"internal/server/mcp/tools internal/server/mcp/transport internal/server/request internal/session internal/store/apikey " +
		"internal/store/filestore internal/store/ratelimit internal/text/render internal/turn",
	"internal/server/openai": "internal/fault internal/server internal/server/openai/chat " +
		"internal/server/openai/completions internal/server/openai/responses internal/store/apikey internal/store/ratelimit internal/store/skill",
	"internal/server/openai/chat": "internal/event internal/eventlog internal/fault internal/server " +
		"internal/server/openai/words internal/server/request internal/session internal/store/apikey internal/store/filestore " +
		"internal/store/ratelimit internal/store/workspace internal/strictjson internal/turn",
	"internal/server/openai/completions": "internal/server internal/server/openai/chat internal/server/request",
	"internal/server/openai/responses":   "internal/fault internal/server internal/server/openai/chat internal/server/request",
	"internal/server/openai/words": "internal/event internal/eventlog internal/fault internal/server internal/server/request " +
		"internal/session internal/store/apikey internal/text/render internal/turn",
	"internal/server/request": "internal/event internal/fault internal/search internal/session internal/store/agent " +
		"internal/store/callback internal/store/vault internal/strictjson internal/text internal/turn",
	"internal/server/rest": "internal/event internal/eventlog internal/fault internal/outage internal/server " +
		"internal/server/request internal/server/rest/call internal/server/rest/document internal/server/rest/files " +
		"internal/server/rest/sessions internal/session internal/sse internal/store/apikey internal/store/callback internal/turn",
	"internal/server/rest/call": "internal/fault internal/server internal/server/request internal/session " +
		"internal/store/agent internal/turn",
	"internal/server/rest/document": "internal/server internal/server/request internal/store/apikey internal/store/ratelimit",
	"internal/server/rest/files": "internal/fault internal/server internal/server/request internal/server/rest/call " +
		"internal/store/apikey internal/store/filestore",
	"internal/server/rest/sessions": "internal/actor internal/event internal/fault internal/server internal/server/request " +
		"internal/server/rest/call internal/session internal/store/agent internal/store/apikey internal/turn",
	"internal/session": "db internal/crashpoint internal/event internal/eventlog internal/fault internal/origin " +
		"internal/pgerr internal/replan internal/text",
	"internal/sse":            "",
	"internal/sso":            "internal/fault internal/store/apikey",
	"internal/store/adminlog": "db internal/fault internal/replan",
	"internal/store/account":  "db internal/fault internal/lapse internal/pgerr internal/replan internal/store/apikey",
	"internal/store/agent":    "db internal/fault internal/replan internal/search internal/store/permission internal/text",
	"internal/store/apikey":   "db internal/fault internal/lapse internal/outage internal/pgerr internal/replan internal/search",
	"internal/store/budget":   "db internal/fault internal/replan",
	"internal/store/callback": "db internal/crashpoint internal/egress internal/fair internal/fault internal/replan " +
		"internal/store/vault internal/text internal/tracing",
	"internal/store/chain":        "db internal/outage internal/pulse internal/replan internal/store/vault",
	"internal/store/chain/anchor": "internal/loopback internal/store/callback internal/store/chain",
	"internal/store/filestore": "db internal/egress internal/event internal/fair internal/fault internal/outage " +
		"internal/pdftext internal/pgerr internal/pulse internal/replan internal/store/vault",
	"internal/store/modelset": "db internal/fault internal/replan internal/text",
	"internal/store/permission": "db internal/event internal/fault internal/placeholder internal/replan internal/search " +
		"internal/strictjson internal/text",
	"internal/store/ratelimit": "db internal/fault internal/outage internal/pulse internal/replan",
	"internal/store/skill":     "db internal/fault internal/replan internal/search internal/text",
	"internal/store/toolset":   "db internal/fault internal/pgerr internal/replan internal/schema internal/store/permission internal/text",
	"internal/store/vault":     "db internal/fault internal/pgerr internal/replan",
	"internal/store/wiki": "db internal/event internal/fault internal/metrics internal/model internal/outage " +
		"internal/pgerr internal/replan internal/search internal/text",
	"internal/store/workspace":  "db internal/fault internal/replan internal/store/agent internal/text",
	"internal/strictjson":       "",
	"internal/testing/apicheck": "internal/sse",
	"internal/testing/apitest": "internal/egress internal/eventlog internal/model internal/model/builtin internal/replan " +
		"internal/server internal/server/admin internal/server/request internal/server/rest internal/session internal/sse " +
		"internal/store/account internal/store/adminlog internal/store/agent internal/store/apikey internal/store/budget " +
		"internal/store/callback internal/store/filestore internal/store/permission internal/store/ratelimit internal/store/skill " +
		"internal/store/vault internal/store/wiki internal/store/workspace internal/testing/apicheck internal/testing/dbtest " +
		"internal/testing/wait internal/tool internal/tool/attach internal/tool/knowledge internal/toolenv internal/toolenv/workdir " +
		"internal/turn internal/store/modelset internal/store/modelset internal/store/toolset internal/tool/httptool internal/tool/mcptool",
	"internal/testing/browser":              "internal/testing/need internal/testing/slow",
	"internal/testing/dbtest":               "internal/devdb internal/testing/dbtest/faultproxy internal/testing/need migrations",
	"internal/testing/dbtest/bulk":          "",
	"internal/testing/dbtest/canary":        "internal/testing/dbtest",
	"internal/testing/dbtest/faultproxy":    "",
	"internal/testing/dbtest/with-postgres": "internal/testing/dbtest",
	"internal/testing/e2e":                  "internal/cli",
	"internal/testing/e2e/mutants":          "",
	"internal/testing/egresstest":           "internal/testing/wait",
	"internal/testing/golden":               "internal/event",
	"internal/testing/modeltest":            "internal/event internal/model internal/testing/wait",
	"internal/testing/need":                 "",
	"internal/testing/oauthtest":            "",
	"internal/testing/oidctest":             "",
	"internal/testing/sessiontest": "internal/event internal/eventlog internal/session internal/store/workspace " +
		"internal/testing/dbtest internal/testing/wait",
	"internal/testing/otlptest": "internal/testing/wait",
	"internal/testing/slow":     "",
	"internal/testing/wait":     "",
	"internal/text":             "",
	"internal/text/render":      "internal/event internal/text",
	"internal/tool":             "internal/event internal/strictjson internal/text/render",
	"internal/tool/attach":      "internal/event internal/fault internal/text/render internal/tool",
	"internal/tool/files":       "internal/text/render internal/tool",
	"internal/tool/knowledge":   "internal/event internal/fault internal/search internal/text internal/text/render internal/tool",
	"internal/tool/httptool": "internal/schema internal/store/toolset internal/strictjson internal/text internal/tool " +
		"internal/tool/remote internal/tool/result internal/tracing",
	"internal/tool/mcpauth": "internal/fault internal/store/toolset internal/store/vault internal/tool internal/tool/mcptool " +
		"internal/tool/remote",
	"internal/tool/mcptool": "internal/schema internal/store/toolset internal/store/vault internal/text internal/tool " +
		"internal/tool/remote internal/tool/result internal/tracing",
	"internal/tool/openapi": "internal/store/toolset internal/text",
	"internal/tool/remote":  "internal/store/toolset internal/text internal/tool",
	"internal/tool/result":  "internal/tool",
	"internal/tool/shell":   "internal/text/render internal/tool",
	"internal/tool/web":     "internal/text/render internal/tool",
	"internal/toolenv": "db internal/egress internal/fair internal/fault internal/metrics internal/placeholder " +
		"internal/redact internal/replan internal/store/filestore internal/store/vault internal/text internal/tool " +
		"internal/toolenv/remote internal/toolenv/sandbox internal/toolenv/scratch internal/toolenv/workdir",
	"internal/toolenv/remote":         "internal/fair internal/loopback internal/toolenv/sandbox internal/toolenv/workdir",
	"internal/toolenv/sandbox":        "internal/toolenv/sandbox/inside internal/toolenv/scratch",
	"internal/toolenv/sandbox/inside": "",
	"internal/toolenv/scratch":        "",
	"internal/toolenv/workdir":        "db internal/fault internal/pgerr internal/replan",
	"internal/tracing":                "internal/outage",
	"internal/turn": "db internal/agent internal/crashpoint internal/event internal/eventlog internal/fair " +
		"internal/fault internal/logging internal/metrics internal/model internal/origin internal/outage internal/pgerr internal/pulse " +
		"internal/replan internal/schema internal/session internal/store/agent internal/store/budget internal/store/callback " +
		"internal/store/filestore internal/store/permission internal/store/skill internal/store/toolset internal/store/vault " +
		"internal/store/workspace internal/tool internal/toolenv internal/tracing",
	"internal/web/docsite": "internal/search",
	"internal/toolfile":    "",
	"internal/web": "internal/toolfile docs internal/actor internal/event internal/eventlog internal/model " +
		"internal/fault internal/search internal/server internal/server/admin internal/server/request internal/server/rest " +
		"internal/session internal/sso internal/store/account internal/store/adminlog internal/store/agent internal/store/apikey " +
		"internal/store/budget internal/store/callback internal/store/filestore internal/store/modelset internal/store/permission " +
		"internal/store/ratelimit internal/store/skill internal/store/toolset internal/store/vault internal/store/wiki " +
		"internal/store/workspace internal/text internal/text/render internal/tool internal/toolenv internal/toolenv/workdir " +
		"internal/turn internal/web/docsite",
	"migrations": "internal/crashpoint internal/pgerr",
}

// doors lists the packages that may import each external dependency with a single entry point.
var doors = map[string]string{
	"github.com/jackc/pgx/v5": "db migrations internal/pgerr internal/pulse internal/replan internal/store/account " +
		"internal/store/agent internal/store/workspace internal/store/apikey internal/store/ratelimit internal/store/skill " +
		"internal/store/wiki internal/store/vault internal/eventlog internal/session internal/turn internal/app internal/testing/dbtest " +
		"internal/testing/dbtest/bulk internal/testing/apitest internal/testing/sessiontest cmd/parley-bench internal/store/budget " +
		"internal/store/callback internal/store/chain internal/store/permission internal/store/toolset internal/store/modelset " +
		"internal/store/filestore internal/store/adminlog internal/toolenv/workdir internal/toolenv",
	"github.com/riverqueue/river":         "migrations internal/turn internal/app",
	"github.com/pressly/goose/v3":         "migrations",
	"github.com/prometheus/client_golang": "internal/metrics",
	"go.opentelemetry.io/otel":            "internal/tracing",
	"go.opentelemetry.io/proto/otlp":      "internal/tracing internal/testing/otlptest",
	"google.golang.org/protobuf":          "internal/tracing internal/testing/otlptest",
	"github.com/gorilla/mux":              "internal/server",
	"github.com/yuin/goldmark":            "internal/web/docsite",
	"github.com/modelcontextprotocol/go-sdk": "internal/server/mcp/tools internal/server/mcp/transport internal/server/mcp/turns " +
		"internal/tool/mcptool internal/tool/mcpauth internal/app/demo cmd/parley-bench",
	"github.com/getkin/kin-openapi":            "internal/tool/openapi internal/testing/apicheck",
	"github.com/go-json-experiment/json":       "internal/strictjson",
	"mvdan.cc/sh/v3":                           "internal/store/permission",
	"github.com/qri-io/jsonschema":             "internal/schema",
	"github.com/santhosh-tekuri/jsonschema/v6": "internal/testing/apicheck",
	"github.com/openai/openai-go/v3":           "",
	"github.com/anthropics/anthropic-sdk-go":   "",
	"github.com/ory/dockertest/v3":             "",
	"github.com/ulikunitz/xz":                  "internal/devdb",
	"github.com/hashicorp/yamux":               "internal/toolenv/remote",
	"golang.org/x/crypto":                      "internal/store/account",
	"golang.org/x/oauth2":                      "internal/sso internal/tool/mcpauth",
	"github.com/coreos/go-oidc/v3":             "internal/sso",
	"github.com/go-jose/go-jose/v4":            "internal/testing/oidctest",
	"golang.org/x/net":                         "internal/egress internal/testing/egresstest",
	"os/exec": "internal/cli internal/pdftext internal/toolenv/sandbox internal/devdb cmd/parley-bench " +
		"internal/testing/browser internal/testing/dbtest internal/testing/dbtest/with-postgres internal/testing/e2e/mutants",
	"github.com/ledongthuc/pdf": "internal/pdftext",
	"github.com/go-rod/rod":     "internal/testing/browser",
}

// TestTheProductLinksNoTestHelpers checks the packages that the binary parley links.
func TestTheProductLinksNoTestHelpers(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "../cmd/parley").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if name, mine := strings.CutPrefix(path, module); mine && (strings.HasPrefix(name, testingTree) ||
			strings.HasPrefix(name, "cmd/parley-bench")) {
			t.Errorf("cmd/parley links %s", name)
		}
	}
}

// TestImportsFollowThePicture compares the code with the picture in docs/internals/design.md.
func TestImportsFollowThePicture(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name, mine := strings.CutPrefix(p.ImportPath, module)
		if !mine {
			continue
		}
		allowed, known := ours[name]
		if !known {
			t.Errorf("%s is not in the picture: add it to the list with its allowed imports, or remove it", name)
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+testingTree) && !strings.HasPrefix(p.ImportPath, module+testingTree) {
				t.Errorf("%s must not import %s: only tests do", name, imp)
			}
			if protocolOf(name) != "" && protocolOf(imp) != "" && protocolOf(name) != protocolOf(imp) {
				t.Errorf("%s must not import %s: protocols share code through internal/server", name, imp)
			}
			if other, ok := strings.CutPrefix(imp, module); ok && allowed != "*" && !slices.Contains(strings.Fields(allowed), other) {
				t.Errorf("%s must not import %s", name, other)
			}
			for door, keepers := range doors {
				if (imp == door || strings.HasPrefix(imp, door+"/")) && !slices.Contains(strings.Fields(keepers), name) {
					t.Errorf("%s must not import %s: it may be imported by %s", name, imp, keepers)
				}
			}
		}
	}
}

// protocolOf returns the protocol that a package implements, alone or with its other folders, or
// "".
func protocolOf(path string) string {
	path, in := strings.CutPrefix(strings.TrimPrefix(path, module), "internal/server/")
	path, _, _ = strings.Cut(path, "/")
	if !in || path == "request" || path == "jsonrpc" {
		return ""
	}
	return path
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "../...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}
