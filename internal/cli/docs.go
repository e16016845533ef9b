package cli

import (
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/web/docsite"
)

// docsRoot is where a server shows the pages.
const docsRoot = "/docs"

// pageShown is a page in --json.
type pageShown struct {
	Topic   string `json:"topic"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Group   string `json:"group"`
}

// passageShown is a found passage in --json.
type passageShown struct {
	Topic   string `json:"topic"`
	Title   string `json:"title"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

func (c *command) docsCommand() *cobra.Command {
	var search string
	cmd := &cobra.Command{
		Use:   "docs [TOPIC]",
		Short: "print a page of the documentation",
		Example: `  parley docs                          list the pages
  parley docs approvals                print a page as Markdown
  parley docs --search "rotate a key"  find passages`,
		Long: `A topic is the path of a page, such as guides/files, or only its last part. A server shows the same
pages at /docs.`,
		Args: atLeastArguments(0, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			library, err := docsite.NewLibrary(docs.Files, docsRoot)
			switch {
			case err != nil:
				return err
			case search != "" && len(args) > 0:
				return usageError(cmd, "Specify a topic or --search, not both.", "--search reads all pages.")
			case search != "":
				return c.searchDocs(library, search)
			case len(args) == 0:
				return c.listDocs(library)
			}
			page, near := library.Lookup(args[0])
			if page == nil {
				return unknownTopic(args[0], near)
			}
			return c.printText(string(page.Markdown), object{"topic": page.Topic, "title": page.Title, "markdown": string(page.Markdown)})
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			library, err := docsite.NewLibrary(docs.Files, docsRoot)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			var topics []string
			for _, p := range library.All()[1:] {
				topics = append(topics, p.Topic+"\t"+p.Summary)
			}
			return topics, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVar(&search, "search", "", "find the passages that answer a question")
	return cmd
}

func unknownTopic(name string, near []*docsite.Page) error {
	p := &problem{Exit: exitUsage, Code: "USAGE", What: fmt.Sprintf("There is no page %q.", name), Why: "parley docs lists the pages.",
		Do: "Search with parley docs --search."}
	if len(near) > 0 {
		p.Do = "Did you mean parley docs " + near[0].Topic + "?"
	}
	return p
}

func (c *command) listDocs(library *docsite.Library) error {
	pages := library.All()[1:] // without the index, which is this list
	shown := make([]pageShown, len(pages))
	for i, p := range pages {
		shown[i] = pageShown{Topic: p.Topic, Title: p.Title, Summary: p.Summary, Group: p.Group}
	}
	return c.printList(shown, len(shown), "There are no pages.", []string{"TOPIC", "CONTENT"}, func(i int) []string {
		return []string{shown[i].Topic, shortText(shown[i].Summary, 90)}
	})
}

func (c *command) searchDocs(library *docsite.Library, query string) error {
	results := library.Find(query, 10)
	shown := make([]passageShown, len(results))
	for i, r := range results {
		at, _, _ := strings.Cut(strings.TrimPrefix(r.Path, docsRoot+"/"), "#")
		var text strings.Builder
		for _, piece := range r.Snippet {
			text.WriteString(piece.Text)
		}
		shown[i] = passageShown{Topic: at, Title: r.Title, Heading: r.Heading, Text: text.String()}
	}
	return c.printList(shown, len(shown), "No page contains these words.", []string{"TOPIC", "HEADING", "TEXT"}, func(i int) []string {
		p := shown[i]
		if p.Heading == "" {
			p.Heading = p.Title
		}
		return []string{path.Base(p.Topic), shortText(p.Heading, 40), shortText(p.Text, 90)}
	})
}
