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

const module = "github.com/parley-server/parley/"

// ours says which of our packages each package may import. A package that is not
// here does not exist.
var ours = map[string]string{
	"cmd/parley":                    "internal/cli",
	"internal":                      "",
	"db":                            "",
	"migrations":                    "internal/pgerr",
	"docs":                          "",
	"internal/pgerr":                "",
	"internal/replan":               "internal/pgerr",
	"internal/pulse":                "db",
	"internal/redact":               "",
	"internal/placeholder":          "",
	"internal/egress":               "internal/placeholder internal/redact internal/vault internal/text",
	"internal/egress/egresstest":    "",
	"internal/event":                "",
	"internal/fair":                 "",
	"internal/fault":                "",
	"internal/outage":               "",
	"internal/search":               "",
	"internal/strictjson":           "",
	"internal/text":                 "",
	"internal/schema":               "internal/text",
	"internal/sse":                  "",
	"internal/model":                "internal/event internal/strictjson",
	"internal/model/provider":       "internal/event internal/model",
	"internal/model/anthropic":      "internal/event internal/model internal/model/provider",
	"internal/model/openai":         "internal/event internal/model internal/model/provider internal/sse",
	"internal/model/guide":          "internal/event internal/model internal/schema internal/search docs internal/text",
	"internal/model/modeltest":      "internal/event internal/model",
	"internal/sandbox":              "internal/sandbox/inside",
	"internal/sandbox/inside":       "",
	"internal/tool":                 "internal/event internal/quote internal/strictjson",
	"internal/tool/knowledge":       "internal/event internal/fault internal/quote internal/search internal/text internal/tool",
	"internal/tool/attach":          "internal/event internal/fault internal/quote internal/tool",
	"internal/workspace":            "db internal/fault internal/replan",
	"internal/apikey":               "db internal/fault internal/replan internal/pgerr internal/outage",
	"internal/vault":                "db internal/fault internal/replan internal/pgerr",
	"internal/skill":                "db internal/fault internal/replan internal/search internal/text",
	"internal/workdir":              "db internal/fault internal/replan internal/pgerr",
	"internal/filestore":            "db internal/egress internal/event internal/fair internal/fault internal/replan internal/pgerr internal/vault internal/outage internal/pulse",
	"internal/limit":                "db internal/fault internal/replan internal/outage internal/pulse",
	"internal/wiki":                 "db internal/event internal/fault internal/replan internal/pgerr internal/search",
	"internal/permission":           "db internal/fault internal/replan internal/search internal/strictjson internal/text internal/placeholder",
	"internal/tool/shell":           "internal/quote internal/tool",
	"internal/tool/web":             "internal/quote internal/tool",
	"internal/tool/files":           "internal/quote internal/tool",
	"internal/runner":               "db internal/egress internal/fair internal/fault internal/replan internal/filestore internal/redact internal/sandbox internal/tool internal/vault internal/workdir internal/placeholder",
	"internal/session":              "db internal/event internal/fault internal/replan internal/pgerr internal/text internal/outage internal/pulse",
	"internal/agent":                "internal/event internal/model internal/quote internal/tool internal/text",
	"internal/turn":                 "db internal/agent internal/callback internal/event internal/fair internal/fault internal/replan internal/pgerr internal/filestore internal/model internal/permission internal/runner internal/schema internal/session internal/skill internal/tool internal/vault internal/workspace internal/outage internal/pulse",
	"internal/wire":                 "internal/callback internal/event internal/fault internal/search internal/turn internal/vault internal/text",
	"internal/quote":                "internal/event internal/text",
	"internal/door":                 "internal/apikey internal/event internal/fault internal/pgerr internal/limit internal/session internal/wire internal/workspace internal/outage",
	"internal/httpapi":              "internal/apikey internal/callback internal/door internal/event internal/fault internal/pgerr internal/filestore internal/limit internal/search internal/session internal/sse internal/turn internal/wire internal/workspace internal/outage",
	"internal/mcpserver":            "internal/apikey internal/door internal/event internal/fault internal/pgerr internal/filestore internal/limit internal/quote internal/session internal/skill internal/sse internal/strictjson internal/turn internal/wiki internal/wire internal/workspace",
	"internal/a2a":                  "internal/apikey internal/callback internal/door internal/event internal/fault internal/filestore internal/limit internal/quote internal/session internal/skill internal/sse internal/turn internal/wire internal/workspace",
	"internal/dialect":              "internal/apikey internal/door internal/event internal/fault internal/filestore internal/limit internal/session internal/skill internal/sse internal/strictjson internal/turn internal/wire internal/workspace",
	"internal/openaiapi":            "internal/apikey internal/dialect internal/door internal/event internal/fault internal/pgerr internal/filestore internal/limit internal/quote internal/session internal/skill internal/strictjson internal/turn internal/wire internal/workspace",
	"internal/uistream":             "internal/apikey internal/dialect internal/door internal/event internal/fault internal/limit internal/quote internal/session internal/strictjson internal/turn internal/wire",
	"internal/agui":                 "internal/apikey internal/dialect internal/door internal/event internal/fault internal/limit internal/quote internal/session internal/strictjson internal/turn internal/wire",
	"internal/callback":             "db internal/egress internal/fair internal/fault internal/replan internal/vault",
	"internal/client":               "internal/event internal/sse internal/text",
	"internal/cli":                  "*",
	"internal/apicheck":             "internal/sse",
	"internal/app":                  "*",
	"internal/app/demo":             "",
	"internal/bench":                "*",
	"internal/devdb":                "",
	"internal/dbtest":               "internal/dbtest/faultproxy internal/devdb migrations",
	"internal/dbtest/faultproxy":    "",
	"internal/dbtest/bulk":          "",
	"internal/dbtest/canary":        "internal/dbtest",
	"internal/dbtest/container":     "",
	"internal/e2e":                  "internal/cli",
	"internal/transcript":           "internal/event",
	"internal/servicetest":          "internal/apicheck internal/apikey internal/callback internal/dbtest internal/door internal/egress internal/filestore internal/httpapi internal/limit internal/model internal/model/guide internal/permission internal/runner internal/session internal/skill internal/tool internal/tool/attach internal/turn internal/vault internal/wiki internal/workdir internal/workspace",
	"internal/dbtest/with-postgres": "internal/dbtest",
}

// doors says who may import what comes from outside and has one door.
var doors = map[string]string{
	"github.com/jackc/pgx/v5":                  "db migrations internal/pgerr internal/pulse internal/replan internal/workspace internal/apikey internal/limit internal/skill internal/wiki internal/vault internal/session internal/turn internal/app internal/dbtest internal/dbtest/bulk internal/dbtest/container internal/servicetest internal/bench internal/callback internal/permission internal/filestore internal/workdir internal/runner",
	"github.com/riverqueue/river":              "migrations internal/turn internal/app",
	"github.com/pressly/goose/v3":              "migrations",
	"github.com/gorilla/mux":                   "internal/httpapi internal/app",
	"github.com/modelcontextprotocol/go-sdk":   "internal/mcpserver",
	"github.com/go-json-experiment/json":       "internal/strictjson",
	"mvdan.cc/sh/v3":                           "internal/permission",
	"github.com/qri-io/jsonschema":             "internal/schema",
	"github.com/santhosh-tekuri/jsonschema/v6": "",
	"github.com/openai/openai-go/v3":           "",
	"github.com/anthropics/anthropic-sdk-go":   "internal/model/anthropic",
	"github.com/ory/dockertest/v3":             "internal/dbtest/container",
	"github.com/ulikunitz/xz":                  "internal/devdb",
	"os/exec":                                  "internal/sandbox internal/devdb internal/bench internal/dbtest internal/dbtest/with-postgres",
}

// TestImportsFollowThePicture holds the code against the picture in docs/design.md.
func TestImportsFollowThePicture(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name, mine := strings.CutPrefix(p.ImportPath, module)
		if !mine {
			continue
		}
		allowed, known := ours[name]
		if !known {
			t.Errorf("%s is not in the picture: add it to the list, with what it may import, or do without it", name)
			continue
		}
		for _, imp := range p.Imports {
			if other, ok := strings.CutPrefix(imp, module); ok && allowed != "*" && !slices.Contains(strings.Fields(allowed), other) {
				t.Errorf("%s must not import %s", name, other)
			}
			for door, keepers := range doors {
				if (imp == door || strings.HasPrefix(imp, door+"/")) && !slices.Contains(strings.Fields(keepers), name) {
					t.Errorf("%s must not import %s: its doors are %s", name, imp, keepers)
				}
			}
		}
	}
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
