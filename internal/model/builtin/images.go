package builtin

import (
	"fmt"
	"strings"
)

// describeImages mentions the images in a message, which the guide cannot see, before the rest of
// the reply.
func (c conversation) describeImages(r reply) reply {
	if len(c.images) == 0 || len(r.calls) > 0 {
		return r
	}
	var list []string
	for _, i := range c.images {
		list = append(list, fmt.Sprintf("%s, %d bytes", i.MIME, len(i.Data)))
	}
	text := "I see one image, " + list[0] + "."
	if len(list) > 1 {
		text = fmt.Sprintf("I see %d images: %s.", len(list), strings.Join(list, "; "))
	}
	if strings.TrimSpace(c.question) == "" {
		return sayText(text)
	}
	return r.withParts(append([]part{splitWords(text+"\n\n", wordsPerSecond)}, r.parts...)...)
}
