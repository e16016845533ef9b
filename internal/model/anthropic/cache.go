package anthropic

import "slices"

// addBreakpoints lets the provider keep the request in its cache up to four places, the most that it
// accepts: the tools, the system text, and the last two messages of the user. The second last one was
// the end of the previous request, whose entry is found however many blocks have followed it.
func addBreakpoints(p *params) {
	mark := &cacheControl{"ephemeral"}
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].CacheControl = mark
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = mark
	}
	left := 2
	for _, msg := range slices.Backward(p.Messages) {
		if msg.Role == roleUser && left > 0 {
			msg.Content[len(msg.Content)-1].CacheControl = mark
			left--
		}
	}
}
