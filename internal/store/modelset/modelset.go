// Package modelset owns the providers of models that a workspace adds to the server's: each has a
// protocol, an address and, by the name of a credential, a key.
//
// It promises: a key is never stored here, only the name of a credential; a name is a valid first
// part of the names of models. It makes no requests.
package modelset

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Kind is the protocol of a provider.
type Kind string

const (
	OpenAI    Kind = "openai"    // of OpenAI and of compatible servers
	Anthropic Kind = "anthropic" // of Anthropic and of compatible servers
)

// Provider is a provider of a workspace.
type Provider struct {
	Name       string // first part of the names of its models
	Kind       Kind
	BaseURL    string        // as the protocol has it: with the version for OpenAI, without one for Anthropic
	Credential string        // name of the credential that is its key; "": no key
	Timeout    time.Duration // the longest silence of a reply, before it begins and within it
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// Names returns the names of providers.
func Names(list []Provider) []string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return names
}

// Store reads and writes providers.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
}

// New returns a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})} }

// List returns the providers of a workspace by name.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Provider, error) {
	return s.read(ctx, workspace, nil)
}

// Find returns a provider; found is false if there is none.
func (s *Store) Find(ctx context.Context, workspace uuid.UUID, name string) (p Provider, found bool, err error) {
	list, err := s.read(ctx, workspace, &name)
	if err != nil || len(list) == 0 {
		return p, false, err
	}
	return list[0], true, nil
}

func (s *Store) read(ctx context.Context, workspace uuid.UUID, name *string) ([]Provider, error) {
	rows, err := s.q.ModelProviders(ctx, workspace, name)
	if err != nil {
		return nil, fmt.Errorf("read the providers of models: %w", err)
	}
	list := make([]Provider, len(rows))
	for i, r := range rows {
		list[i] = providerOf(r)
	}
	return list, nil
}

// Check returns a provider with its defaults, or an INVALID_REQUEST with all violations.
func (s *Store) Check(p Provider) (Provider, error) {
	p = p.Complete()
	if vs := p.violations(); len(vs) > 0 {
		return p, fault.Invalid(vs...)
	}
	return p, nil
}

// Set adds or replaces a provider. It applies to turns within a second, and to running ones from
// their next attempt on.
func (s *Store) Set(ctx context.Context, workspace uuid.UUID, p Provider) (Provider, error) {
	p, err := s.Check(p)
	if err != nil {
		return p, err
	}
	var row db.ModelProvider
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		n, err := q.ModelProviderCount(ctx, workspace, p.Name)
		if err != nil {
			return fmt.Errorf("count the providers of models: %w", err)
		}
		if n >= MaxProviders {
			return fault.Invalid(fault.Violation{Param: "/name", Rule: "max_items",
				Message: fmt.Sprintf("A workspace has at most %d providers of models.", MaxProviders)})
		}
		row, err = q.ModelProviderPut(ctx, db.ModelProviderPutParams{WorkspaceID: workspace, Name: p.Name, Kind: string(p.Kind),
			BaseURL:    p.BaseURL,
			Credential: nilIfEmpty(p.Credential), TimeoutSeconds: int32(p.Timeout / time.Second)})
		if err != nil {
			return fmt.Errorf("store a provider of models: %w", err)
		}
		return nil
	})
	return providerOf(row), err
}

// Remove removes a provider, or fails with OBJECT_NOT_FOUND.
func (s *Store) Remove(ctx context.Context, workspace uuid.UUID, name string) error {
	n, err := s.q.ModelProviderDelete(ctx, workspace, name)
	if err != nil {
		return fmt.Errorf("remove a provider of models: %w", err)
	}
	if n == 0 {
		return errNoProvider(name)
	}
	return nil
}

func errNoProvider(name string) error {
	return fault.New(fault.ObjectNotFound, "The workspace has no provider of models %.80q.", name)
}

func providerOf(r db.ModelProvider) Provider {
	p := Provider{Name: r.Name, Kind: Kind(r.Kind), BaseURL: r.BaseURL, Timeout: time.Duration(r.TimeoutSeconds) * time.Second,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}
	if r.Credential != nil {
		p.Credential = *r.Credential
	}
	return p
}

func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
