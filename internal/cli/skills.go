package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/skill"
)

func (c *command) skillsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "skills",
		Aliases: []string{"skill"},
		Short:   "manage and run skills",
		Example: `  parley skills create monthly_report          a folder to begin with
  parley skills push monthly_report
  parley skills run monthly_report --input month=2026-10`,
	}, c.skillsNew(), c.skillsLint(), c.skillsPush(), c.skillsPull(), c.skillsList(), c.skillsShow(),
		c.skillsPublish(), c.skillsArchive(), c.skillsRun())
}

func (c *command) skillsNew() *cobra.Command {
	var in string
	cmd := &cobra.Command{
		Use:     "create NAME",
		Aliases: []string{"new"},
		Short:   "create a folder with a SKILL.md",
		Example: `  parley skills create monthly_report
  parley skills create monthly_report --in skills`,
		Args: exactArguments("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			document := skill.Template(args[0])
			if _, problems := skill.Parse(document); len(problems) > 0 { // only the name can be invalid
				return &problem{Exit: exitUsage, Code: "USAGE", What: "Invalid name of a skill.", Why: problems[0].Message, Do: "Choose another one."}
			}
			file := filepath.Join(in, args[0], skill.File)
			if err := os.MkdirAll(filepath.Dir(c.resolvePath(file)), 0o755); err != nil {
				return unwritableError(err)
			}
			f, err := os.OpenFile(c.resolvePath(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return &problem{Exit: exitUsage, Code: "USAGE", What: "There is " + file + " already.",
					Why: "create does not overwrite a file.", Do: "Edit it, or choose another name."}
			}
			if err != nil {
				return unwritableError(err)
			}
			_, err = f.WriteString(document)
			if err = errors.Join(err, f.Close()); err != nil {
				return unwritableError(err)
			}
			return c.printDone(object{"file": file}, "Wrote %s. Edit it, then: parley skills push %s", plainLine(file),
				plainLine(filepath.Dir(file)))
		},
	}
	cmd.Flags().StringVar(&in, "in", "", "the folder to create it in")
	return cmd
}

func (c *command) skillsLint() *cobra.Command {
	return &cobra.Command{
		Use:   "lint DIR…",
		Short: "check skills and exit with 2 on problems",
		Example: `  parley skills lint monthly_report
  parley skills lint skills`,
		Args: atLeast("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := c.skillFiles(args)
			if err != nil {
				return err
			}
			wrong := lintSkills(files)
			if len(wrong) == 0 {
				return c.printDone(object{"skills": len(files), "problems": []string{}}, "%d %s, nothing wrong.", len(files),
					pluralize(len(files), "skill", "skills"))
			}
			if c.json {
				return errors.Join(c.printData(object{"skills": len(files), "problems": wrong}), exitError(exitUsage))
			}
			for _, line := range wrong {
				fmt.Fprintln(c.Stdout, plainLine(line))
			}
			return exitError(exitUsage)
		},
	}
}

// skillFile is a SKILL.md in the file system.
type skillFile struct {
	path     string // as the user named it
	document string
	beside   []string // the other files of its folder
}

// skillFiles reads folders, each of which is a skill or contains skills.
func (c *command) skillFiles(dirs []string) ([]skillFile, error) {
	var files []skillFile
	for _, dir := range dirs {
		file, err := c.skillFile(dir)
		if err == nil {
			files = append(files, file)
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, unreadableError(err)
		}
		entries, err := os.ReadDir(c.resolvePath(dir))
		if err != nil {
			return nil, unreadableError(err)
		}
		before := len(files)
		for _, e := range entries {
			switch file, err := c.skillFile(filepath.Join(dir, e.Name())); {
			case err == nil:
				files = append(files, file)
			case e.IsDir() && !errors.Is(err, fs.ErrNotExist):
				return nil, unreadableError(err)
			}
		}
		if len(files) == before {
			return nil, &problem{Exit: exitUsage, Code: "USAGE", What: dir + " contains no skill.",
				Why: "Neither it nor a folder in it has a " + skill.File + ".", Do: "Make one: parley skills create NAME"}
		}
	}
	return files, nil
}

func (c *command) skillFile(dir string) (skillFile, error) {
	f := skillFile{path: filepath.Join(dir, skill.File)}
	info, err := os.Stat(c.resolvePath(f.path))
	if err != nil {
		return f, err
	}
	if info.Size() > 4*skill.MaxDocument {
		return f, fmt.Errorf("%s is larger than any skill", f.path)
	}
	text, err := os.ReadFile(c.resolvePath(f.path))
	if err != nil {
		return f, err
	}
	f.document = string(text)
	entries, err := os.ReadDir(c.resolvePath(dir))
	for _, e := range entries {
		if name := e.Name(); name != skill.File && !strings.HasPrefix(name, ".") {
			f.beside = append(f.beside, name)
		}
	}
	return f, err
}

// lintSkills lists the problems of skills, one per line. Identical problems are listed once.
func lintSkills(files []skillFile) []string {
	var lines []string
	seen := make(map[string]string)
	for _, f := range files {
		k, problems := skill.Parse(f.document)
		for _, p := range problems {
			lines = append(lines, fmt.Sprintf("%s:%d: %s", f.path, p.Line, p.Message))
		}
		fold, ok := skill.Fold(k.Name)
		if other := seen[fold]; ok && other != "" {
			lines = append(lines, fmt.Sprintf("%s:2: The name %s is that of %s: case does not count, nor does _ or -.", f.path, k.Name, other))
		}
		seen[fold] = f.path
	}
	return lines
}

// atLeast requires one argument or more.
func atLeast(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return exactArguments(name)(cmd, args)
	}
}

func unwritableError(err error) error {
	return &problem{Exit: exitUsage, Code: "USAGE", What: "The file cannot be written.", Why: errorSentence(err),
		Do: "Check its name and its rights."}
}
