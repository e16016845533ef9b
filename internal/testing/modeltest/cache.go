package modeltest

import "encoding/json"

// Breakpoints returns the size of a request of the Messages API as a cache sees it, and each
// beginning that ends at a breakpoint, with its size. The order is that of the provider: tools,
// system, messages.
func Breakpoints(body []byte) (whole int, marked map[string]int) {
	var r struct {
		Tools, System []map[string]any
		Messages      []struct {
			Role    string
			Content []map[string]any
		}
	}
	_ = json.Unmarshal(body, &r) // an invalid body has no breakpoints
	marked = map[string]int{}
	text := ""
	add := func(role string, blocks []map[string]any) {
		for _, b := range blocks {
			_, mark := b["cache_control"]
			delete(b, "cache_control")
			data, _ := json.Marshal(b) // it was JSON
			text += role + string(data)
			if mark {
				marked[text] = len(text)
			}
		}
	}
	add("tools", r.Tools)
	add("system", r.System)
	for _, m := range r.Messages {
		add(m.Role, m.Content)
	}
	return len(text), marked
}
