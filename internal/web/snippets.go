package web

import "strings"

// snippet is a program or a configuration that uses the workspace.
type snippet struct{ ID, Title, Hint, Text string }

// The snippets read the key from the environment. In a template BASE is the public address, API that
// of the workspace, and MODEL its name.
const (
	curlSnippet = `curl -N API/messages \
     -H "Authorization: Bearer $PARLEY_API_KEY" \
     -H "Content-Type: application/json" -d '{"command":"What can you do?"}'`
	cliSnippet = `export PARLEY_URL=BASE PARLEY_WORKSPACE=MODEL PARLEY_API_KEY="$PARLEY_API_KEY"
parley send "What can you do?"`
	jsSnippet = `const res = await fetch("API/messages", {
  method: "POST",
  headers: { Authorization: "Bearer " + process.env.PARLEY_API_KEY, "Content-Type": "application/json" },
  body: JSON.stringify({ command: "What can you do?", stream: false }),
});
const answer = await res.json();
console.log(answer.output ?? answer.error);`
	pythonSnippet = `import os
from openai import OpenAI

client = OpenAI(base_url="BASE/openai/v1", api_key=os.environ["PARLEY_API_KEY"])
stream = client.chat.completions.create(
    model="MODEL", stream=True,
    messages=[{"role": "user", "content": "What can you do?"}],
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="")`
	aiSnippet = `import { DefaultChatTransport, readUIMessageStream } from "ai";

const headers = { Authorization: "Bearer " + process.env.PARLEY_API_KEY };
const transport = new DefaultChatTransport({ api: "API/ui/chat", headers });
const stream = await transport.sendMessages({
  chatId: crypto.randomUUID(),
  trigger: "submit-message",
  messages: [{ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: "What can you do?" }] }],
});
let message;
for await (message of readUIMessageStream({ stream })) continue;
console.log(message.parts.filter((part) => part.type === "text").map((part) => part.text).join(""));`
	mcpSnippet = `{
  "mcpServers": {
    "parley": {
      "type": "http",
      "url": "BASE/mcp",
      "headers": {"Authorization": "Bearer ${PARLEY_API_KEY}"}
    }
  }
}`
	stdioSnippet = `{
  "mcpServers": {
    "parley": {
      "command": "parley",
      "args": ["mcp", "--url", "BASE"],
      "env": {"PARLEY_API_KEY": "${PARLEY_API_KEY}"}
    }
  }
}`
)

// Snippets are the programs of the page, with its real addresses. With a key, which is new, they
// contain it; otherwise they read it from the environment.
func (p *page) Snippets(key string) []snippet {
	list := []snippet{
		{"curl", "curl", "A stream of events.", curlSnippet},
		{"cli", "Command line", "", cliSnippet},
		{"python", "OpenAI SDK for Python", "Needs the package openai.", pythonSnippet},
		{"js", "JavaScript", "Node.js, on a server.", jsSnippet},
		{"ai", "AI SDK", "Node.js with the package ai, on a server.", aiSnippet},
		{"mcp", "MCP over HTTP", "Claude Code, in .mcp.json. The key needs the scope mcp or mcp:read.", mcpSnippet},
		{"stdio", "MCP over stdio", "For clients without MCP over HTTP.", stdioSnippet},
	}
	if key != "" {
		env := "PARLEY_URL=BASE\nPARLEY_WORKSPACE=MODEL\nPARLEY_API_KEY=" + key
		list = append([]snippet{{"env", ".env", "", env}}, list...)
	}
	names := []string{"API/", p.API() + "/", "BASE", p.Base(), "MODEL", p.Workspace.Slug}
	if key != "" {
		names = append(names, `"Bearer " + process.env.PARLEY_API_KEY`, `"Bearer `+key+`"`, `os.environ["PARLEY_API_KEY"]`, `"`+key+`"`,
			"${PARLEY_API_KEY}", key, `"$PARLEY_API_KEY"`, key, "$PARLEY_API_KEY", key)
	}
	fill := strings.NewReplacer(names...)
	for i := range list {
		list[i].Text = fill.Replace(list[i].Text)
	}
	return list
}
