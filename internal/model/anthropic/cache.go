package anthropic

import (
	"slices"

	"github.com/anthropics/anthropic-sdk-go"
)

// addBreakpoints lets the provider keep the request in its cache up to four places, the most that it
// accepts: the tools, the system text, and the last two messages of the user. The second last one was
// the end of the previous request, whose entry is found however many blocks have followed it.
func addBreakpoints(p *anthropic.MessageNewParams) {
	if n := len(p.Tools); n > 0 {
		mark(p.Tools[n-1].GetCacheControl())
	}
	if n := len(p.System); n > 0 {
		mark(&p.System[n-1].CacheControl)
	}
	left := 2
	for _, msg := range slices.Backward(p.Messages) {
		if msg.Role == anthropic.MessageParamRoleUser && left > 0 {
			mark(msg.Content[len(msg.Content)-1].GetCacheControl())
			left--
		}
	}
}

func mark(c *anthropic.CacheControlEphemeralParam) {
	if c != nil {
		*c = anthropic.NewCacheControlEphemeralParam()
	}
}
