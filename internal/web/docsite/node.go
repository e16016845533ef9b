package docsite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// node is a value of a JSON document. It keeps the order of members. The methods of a nil node
// return nothing, and references within the document are followed.
type node struct {
	root    *node
	raw     json.RawMessage
	names   []string // of an object's members, in order
	members map[string]*node
	items   []*node
}

// parseNode parses a JSON document.
func parseNode(data []byte) (*node, error) {
	n, err := newNode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("parse the OpenAPI document: %w", err)
	}
	return n, nil
}

func newNode(root *node, raw json.RawMessage) (*node, error) {
	n := &node{root: root, raw: bytes.TrimSpace(raw)}
	if root == nil {
		n.root = n
	}
	if len(n.raw) == 0 || n.raw[0] != '{' && n.raw[0] != '[' {
		return n, nil
	}
	dec := json.NewDecoder(bytes.NewReader(n.raw))
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if open == json.Delim('{') {
		n.members = make(map[string]*node)
	}
	for dec.More() {
		name := ""
		if n.members != nil {
			token, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ = token.(string)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		child, err := newNode(n.root, value)
		if err != nil {
			return nil, err
		}
		if n.members != nil {
			n.names = append(n.names, name)
			n.members[name] = child
		} else {
			n.items = append(n.items, child)
		}
	}
	return n, nil
}

// follow returns the target of a reference, and other nodes unchanged.
func (n *node) follow() *node {
	for range 8 { // a chain of references is short
		if n == nil || n.members["$ref"] == nil {
			return n
		}
		target := n.root
		for name := range strings.SplitSeq(strings.TrimPrefix(n.members["$ref"].text(), "#/"), "/") {
			if target = target.members[name]; target == nil {
				return nil
			}
		}
		n = target
	}
	return nil
}

// get returns the value at a path of names, or nil.
func (n *node) get(path ...string) *node {
	n = n.follow()
	for _, name := range path {
		if n == nil {
			return nil
		}
		n = n.members[name].follow()
	}
	return n
}

// refName returns the last name of a reference, "" for other nodes.
func (n *node) refName() string {
	if n == nil || n.members["$ref"] == nil {
		return ""
	}
	ref := n.members["$ref"].text()
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// text returns a string as it is, and any other value as JSON.
func (n *node) text() string {
	if n == nil {
		return ""
	}
	var s string
	if json.Unmarshal(n.raw, &s) == nil && len(n.raw) > 0 && n.raw[0] == '"' {
		return s
	}
	return string(n.raw)
}

// str returns the string at a path, or "".
func (n *node) str(path ...string) string { return n.get(path...).text() }

// isTrue reports whether the value at a path is true.
func (n *node) isTrue(path ...string) bool { return n.str(path...) == "true" }

// list returns the texts of an array, or of one value.
func (n *node) list() (all []string) {
	if n == nil {
		return nil
	}
	if n.items == nil {
		return []string{n.text()}
	}
	for _, item := range n.items {
		all = append(all, item.text())
	}
	return all
}

// pretty returns the value as indented JSON.
func (n *node) pretty() string {
	if n == nil {
		return ""
	}
	var out bytes.Buffer
	if json.Indent(&out, n.raw, "", "  ") != nil {
		return string(n.raw)
	}
	return out.String()
}
