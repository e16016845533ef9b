package builtin

import "strings"

// stopper finds the texts at which the caller wants a reply to end.
type stopper struct {
	texts []string
	held  string // may be the beginning of one of the texts
	found bool
}

// cutText returns the part of the next text of a reply that can be sent now.
func (s *stopper) cutText(text string) string {
	text, s.held = s.held+text, ""
	end := len(text)
	for _, stop := range s.texts {
		if i := strings.Index(text[:end], stop); i >= 0 {
			end, s.found = i, true
		}
	}
	if s.found {
		return text[:end]
	}
	for _, stop := range s.texts {
		end = min(end, len(text)-sharedBytes(text, stop))
	}
	s.held = text[end:]
	return text[:end]
}

// sharedBytes returns the length of the longest end of a text with which stop begins.
func sharedBytes(text, stop string) int {
	for n := min(len(text), len(stop)-1); n > 0; n-- {
		if strings.HasSuffix(text, stop[:n]) {
			return n
		}
	}
	return 0
}
