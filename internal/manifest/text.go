package manifest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Text is a text in the file, or the name of a file that has it. A document whose path ends in / is
// a folder of files.
type Text struct {
	Value     string
	File      string
	Directory string
}

// MarshalYAML implements yaml.Marshaler.
func (t Text) MarshalYAML() (any, error) {
	if t.File != "" {
		return map[string]string{"file": t.File}, nil
	}
	return t.Value, nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *Text) UnmarshalYAML(node *yaml.Node) error {
	switch node.Kind {
	case yaml.ScalarNode:
		if node.Tag == "!!null" {
			return nil
		}
		if node.Tag != "!!str" {
			return fmt.Errorf("line %d: %q is not a text. Put it in quotes", node.Line, node.Value)
		}
		t.Value = node.Value
		return nil
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			switch name, value := node.Content[i].Value, node.Content[i+1].Value; {
			case name == "file" && value != "":
				t.File = value
			case name == "directory" && value != "":
				t.Directory = value
			default:
				return fmt.Errorf("line %d: unknown member %s. Use file or directory with a path", node.Line, name)
			}
		}
		return nil
	}
	return fmt.Errorf("line %d: this is neither a text nor a file", node.Line)
}

// resolve reads the files that the texts name.
func (f *File) resolve(read func(string) ([]byte, error), list func(string) ([]string, error)) error {
	load := func(what string, t *Text) error {
		if t.Directory != "" {
			return faultf("%s is one text. Use file in place of directory.", what)
		}
		if t.File == "" {
			return nil
		}
		content, err := read(t.File)
		if err != nil {
			return faultf("%s is in %s, which cannot be read: %v.", what, t.File, err)
		}
		if !utf8.Valid(content) {
			return faultf("%s is in %s, which is not text in UTF-8.", what, t.File)
		}
		*t = Text{Value: string(content)}
		return nil
	}
	for name, a := range f.Agents {
		if err := load("The text of the agent "+name, &a.Instructions); err != nil {
			return err
		}
		f.Agents[name] = a
	}
	for name, t := range f.Skills {
		if err := load("The skill "+name, &t); err != nil {
			return err
		}
		f.Skills[name] = t
	}
	if err := f.expandFolders(list); err != nil {
		return err
	}
	for name, t := range f.Documents {
		if err := load("The document "+name, &t); err != nil {
			return err
		}
		f.Documents[name] = t
	}
	return nil
}

// expandFolders replaces each folder of documents by its files. An entry of its own wins.
func (f *File) expandFolders(list func(string) ([]string, error)) error {
	for _, name := range slices.Sorted(maps.Keys(f.Documents)) {
		t := f.Documents[name]
		if isFolder := strings.HasSuffix(name, "/"); isFolder != (t.Directory != "") {
			return faultf("The document %s is a folder in one place only: a path that ends in / has a directory.", name)
		}
		if t.Directory == "" {
			continue
		}
		delete(f.Documents, name)
		files, err := list(t.Directory)
		if err != nil {
			return faultf("The documents below %s are in %s, which cannot be read: %v.", name, t.Directory, err)
		}
		for _, file := range files {
			if _, own := f.Documents[name+file]; !own {
				f.Documents[name+file] = Text{File: path.Join(t.Directory, file)}
			}
		}
	}
	return nil
}
