package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// The private characters of Unicode, which stand for others while the YAML package writes a text.
const firstPrivate, lastPrivate = '\ue000', '\uf8ff'

// replaceAstral replaces the characters above U+FFFF, such as emoji, in a tree. The YAML package would
// write them as \U0001F4AC, and a text that has one as one long line. The replacer restores them.
func replaceAstral(node *yaml.Node) *strings.Replacer {
	used := make(map[rune]bool)
	eachScalar(node, func(n *yaml.Node) {
		for _, r := range n.Value {
			used[r] = true
		}
	})
	stands, back, next := make(map[rune]rune), []string{}, firstPrivate
	for r := range used {
		for used[next] {
			next++
		}
		if r > '\uffff' && next <= lastPrivate {
			stands[r] = next
			back = append(back, string(next), string(r))
			next++
		}
	}
	eachScalar(node, func(n *yaml.Node) {
		text := strings.Map(func(r rune) rune {
			if stand, ok := stands[r]; ok {
				return stand
			}
			return r
		}, n.Value)
		if text != n.Value {
			n.Value, n.Style = text, 0
		}
	})
	return strings.NewReplacer(back...)
}

func eachScalar(node *yaml.Node, do func(*yaml.Node)) {
	if node.Kind == yaml.ScalarNode {
		do(node)
	}
	for _, child := range node.Content {
		eachScalar(child, do)
	}
}
