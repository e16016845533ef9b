package skill

import "strings"

// Template returns a SKILL.md to start from.
func Template(name string) string {
	title := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }), " ")
	if title != "" {
		title = strings.ToUpper(title[:1]) + title[1:]
	}
	return strings.NewReplacer("NAME", name, "TITLE", title).Replace(template)
}

const template = `---
name: NAME
description: One or two sentences on what this skill does and when it helps.
interface:
  # What callers give, checked before the agent starts. Types: string (format: date or
  # month), integer, number, boolean, enum, array and object.
  inputs:
    topic:
      type: string
      description: What it is about.
      required: true
    length:
      type: enum
      values: [short, long]
      default: short
---

# TITLE

Tell the agent what to do, step by step, and what a good result looks like. The
inputs follow this text; call them by their names.

1. Search the wiki for what it says about the topic.
2. Write one paragraph where the length is short, one page where it is long.
3. Say where you found each fact. If the wiki has nothing, say so.
`
