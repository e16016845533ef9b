package app

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
)

// openDatabase returns the database: DATABASE_URL, or the private one of development mode.
func (s *service) openDatabase(ctx context.Context) (dsn Secret, release func(), err error) {
	s.banner.how = "at DATABASE_URL"
	if s.Config.DatabaseURL != "" {
		return s.Config.DatabaseURL, func() {}, nil
	}
	server, err := devdb.Start(ctx, s.Config.devOptions(s.DevDir, s.banner.printProgress))
	if err != nil {
		return "", nil, &StartError{Why: "The private PostgreSQL does not start:",
			Do: "Install PostgreSQL's programs, or set DATABASE_URL.", Err: err}
	}
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			s.Log.WarnContext(ctx, "stop the private PostgreSQL", "err", err)
		}
	}
	s.private = server
	s.banner.how = "started, private socket"
	if server.Joined {
		s.banner.how = "was running, private socket"
	}
	if err := makeDatabase(ctx, server.DSN(""), devDatabase); err != nil {
		release()
		return "", nil, err
	}
	return Secret(server.DSN(devDatabase)), release, nil
}

// watchPrivate reports the end of the private PostgreSQL, which this process cannot work without.
func (s *service) watchPrivate(ctx context.Context) error {
	err := s.private.Watch(ctx)
	if err == nil {
		return nil
	}
	return &StartError{Why: "The private PostgreSQL has ended:", Do: "Run parley serve --dev again; its data are kept.", Err: err}
}

// devOptions returns the options of the private PostgreSQL in a development directory.
func (c Config) devOptions(dir string, progress func(string)) devdb.Options {
	return devdb.Options{Dir: devPostgres(dir), Bin: c.PostgresBin, Repository: c.PostgresRepository.Reveal(), Progress: progress}
}

func makeDatabase(ctx context.Context, dsn, name string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return unreachableError(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	if pgerr.IsDuplicateObject(err) || pgerr.IsUniqueViolation(err) {
		return nil // it exists, or another process is creating it
	}
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return nil
}

const (
	demoWorkspace    = "demo"
	demoInstructions = "You help the people of Alder & Finch, a small company that makes desks. " +
		"Answer from the wiki and the files of this workspace, and say where you found it."
)

// createDemo creates the demo workspace, once, and a key for this machine.
func (s *service) createDemo(ctx context.Context, dsn Secret) error {
	w, err := s.workspaces.Find(ctx, demoWorkspace)
	if f := fault.From(err); f != nil && f.Code == fault.WorkspaceNotFound {
		w, err = s.workspaces.Create(ctx, demoWorkspace, "Demo", demoInstructions)
	}
	if err != nil {
		return fmt.Errorf("make the demo workspace: %w", err)
	}
	docs, err := s.wiki.List(ctx, w.ID, "")
	if err == nil && len(docs) == 0 {
		if err = s.fillDemo(ctx, w); err == nil {
			docs, err = s.wiki.List(ctx, w.ID, "")
		}
	}
	if err != nil {
		return fmt.Errorf("fill the demo workspace: %w", err)
	}
	skills, err := s.demoSkills(ctx, w)
	if err != nil {
		return fmt.Errorf("push the demo's skills: %w", err)
	}
	if err := s.demoTools(ctx, w); err != nil {
		return fmt.Errorf("add the demo's tools: %w", err)
	}
	pages := 0
	for _, d := range docs {
		if _, ok := wiki.PageOf(d.Path); ok {
			pages++
		}
	}
	s.banner.printStep("workspace", fmt.Sprintf("%s: %d skills, %d wiki pages, %d files", w.Slug, skills, pages, len(docs)-pages), 0)
	if s.server == nil {
		return nil
	}
	return s.devKey(ctx, w, dsn)
}

// fillDemo copies the demo's documents into its workspace.
func (s *service) fillDemo(ctx context.Context, w workspace.Workspace) error {
	return fs.WalkDir(demo.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := demo.Files.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = s.wiki.Put(ctx, w.ID, path, string(text))
		return err
	})
}

// demoSkills pushes the demo's skills into a workspace that never had any, and returns the number
// of active ones.
func (s *service) demoSkills(ctx context.Context, w workspace.Workspace) (active int, err error) {
	list, err := s.skills.List(ctx, w.ID)
	if err != nil {
		return 0, err
	}
	for _, k := range list {
		if k.Status == skill.Active {
			active++
		}
	}
	if len(list) > 0 {
		return active, nil
	}
	files, err := fs.Glob(demo.Skills, "skills/*/"+skill.File)
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		text, err := demo.Skills.ReadFile(file)
		if err != nil {
			return 0, err
		}
		if _, err := s.skills.Push(ctx, w.ID, skill.Upload{Document: string(text), By: "serve --dev"}); err != nil {
			return 0, err
		}
	}
	return len(files), nil
}

// devKey writes dev.env, with the key of the last start if it is still valid.
func (s *service) devKey(ctx context.Context, w workspace.Workspace, dsn Secret) error {
	env, err := ReadDevEnv(s.DevDir)
	if err != nil {
		return err
	}
	if !s.named {
		s.banner.printStep("api key", "in "+DevDir+"/dev.env, which still names "+env.URL, 0)
		return nil
	}
	p, err := s.keys.Authenticate(ctx, env.APIKey, netip.IPv6Loopback())
	if err != nil && fault.From(err) == nil {
		return err
	}
	if err != nil || p.Workspace != w.ID || len(p.Scopes) != len(apikey.All) {
		_, env.APIKey, err = s.keys.Create(ctx, apikey.Grant{Workspace: w.ID, Name: "serve --dev", Scopes: apikey.All, Loopback: true})
		if err != nil {
			return fmt.Errorf("make the development key: %w", err)
		}
	}
	env.URL, env.Workspace, env.DatabaseURL = s.url, w.Slug, dsn.Reveal()
	if err := env.writeFile(s.DevDir); err != nil {
		return err
	}
	s.banner.printStep("api key", "written to "+DevDir+"/dev.env (this key works only on 127.0.0.1)", 0)
	return nil
}

// sentenceOf returns an error's text with a full stop at its end.
func sentenceOf(err error) string { return strings.TrimSuffix(err.Error(), ".") + "." }
