package wiki_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
)

// docsQueries are questions and the pages of docs/ that answer them. They were written before the
// first search, and the search was not tuned with them.
var docsQueries = map[string]string{
	"continue a stream after the connection dropped": "reference/streaming guides/reload guides/clients/eventsource " +
		"guides/clients/javascript start/quickstart",
	"How do I make sure a message is not sent twice?":       "reference/api reference/streaming",
	"verify the signature of a webhook in Python":           "guides/callbacks",
	"which hosts can the agent contact":                     "guides/egress",
	"rotate the master key":                                 "guides/secrets",
	"delete all data of a user":                             "guides/retention",
	"run the server on Kubernetes":                          "start/production",
	"put nginx in front":                                    "start/production reference/streaming",
	"connect a Prometheus server":                           "guides/observability reference/metrics",
	"sign in with Okta":                                     "guides/sign-in",
	"limit spending per month":                              "guides/administration reference/limits guides/models",
	"roll back to an earlier prompt":                        "guides/agents",
	"how much memory may a command use":                     "guides/sandbox",
	"allow a shell command without asking":                  "guides/permissions",
	"upload a PDF":                                          "guides/files",
	"use a self-hosted LLM":                                 "guides/models guides/guide-model",
	"let the page execute a function in the browser":        "guides/tools guides/clients/ai-sdk guides/clients/ag-ui guides/browser",
	"exit status of the command line":                       "reference/cli",
	"what happens when PostgreSQL fails over":               "operations internals/design",
	"restore a backup":                                      "operations internals/design",
	"prove that nobody changed the log":                     "guides/integrity audit",
	"who approved a tool call":                              "audit guides/approvals",
	"HTTP status 429":                                       "reference/limits reference/api",
	"JSON output that follows a schema":                     "reference/schemas guides/clients/openai reference/api",
	"import tools from a Swagger file":                      "guides/http-tools",
	"add an MCP server that needs OAuth":                    "guides/tool-servers",
	"call the agent from LangChain":                         "guides/clients/openai guides/clients/README",
	"difference between a session and a turn":               "internals/glossary",
	"how long are old conversations kept":                   "guides/retention reference/configuration",
	"deploy configuration from a git repository":            "guides/configuration-file reference/configuration-file guides/knowledge",
	"why does my stream arrive all at once":                 "reference/streaming start/production",
	"kill a worker in the middle of an answer":              "start/quickstart internals/design internals/chaos internals/map",
	"upgrade without downtime":                              "operations",
	"stop an answer":                                        "reference/api guides/clients/ai-sdk guides/clients/ag-ui",
	"which environment variable sets the address to listen": "reference/configuration",
}

// TestSearchAnswersUnseenQuestions compares the search with the index in memory over the pages of
// docs/, with questions that nothing was tuned with.
func TestSearchAnswersUnseenQuestions(t *testing.T) {
	t.Parallel()
	slow.Test(t, "indexes all pages of docs/")
	var paths, contents []string
	root := filepath.Join("..", "..", "..", "docs")
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") || path == "internals/conformance.md" { // a list of tests
			return err
		}
		content, err := os.ReadFile(filepath.Join(root, path))
		paths, contents = append(paths, path), append(contents, string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	now, before := judge(t, paths, contents, docsQueries)
	if now[0]+2 < before[0] || now[1]+2 < before[1] {
		t.Errorf("%v queries are answered first and in the first five, and by the index in memory %v", now, before)
	}
}
