package vault

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Registration describes a credential as an administrator registers it. Only its hosts may ever
// receive the value: in header values of https requests, and elsewhere only if the surfaces allow
// it.
type Registration struct {
	Name      string   // name in the sandbox's environment: GITHUB_TOKEN
	Hosts     []string // "api.github.com", "*.example.com", "example.com:8443"
	InQuery   bool     // also in query strings
	InBody    bool     // also in request bodies
	AllowHTTP bool     // also without TLS
	Value     Value    // the zero Value keeps the current one
}

// Credential is the public data of a credential.
type Credential struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	Hosts     []string  `json:"allowed_hosts"`
	InQuery   bool      `json:"in_query"`
	InBody    bool      `json:"in_body"`
	AllowHTTP bool      `json:"allow_http"`
	HasValue  bool      `json:"has_value"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`
}

// Opened is a credential for use. Its Value is zero until a value is set.
type Opened struct {
	Credential
	Value Value
}

// List returns a workspace's credentials by name.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Credential, error) {
	rows, err := s.q.Credentials(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list credentials: %w", err)
	}
	list := make([]Credential, len(rows))
	for i, row := range rows {
		list[i] = newCredential(row)
	}
	return list, nil
}

// Known fails with UNKNOWN_SECRET unless every name is registered.
func (s *Store) Known(ctx context.Context, workspace uuid.UUID, names []string) error {
	_, err := chooseCredential(ctx, s.q, workspace, names)
	return err
}

// Open returns the credentials with these names, each once and in their order, or fails with
// UNKNOWN_SECRET. It does not open a row that was changed without the service.
func (s *Store) Open(ctx context.Context, workspace uuid.UUID, names []string) ([]Opened, error) {
	rows, err := chooseCredential(ctx, s.q, workspace, names)
	if err != nil {
		return nil, err
	}
	list := make([]Opened, len(rows))
	for i, row := range rows {
		value, err := s.openValue(row)
		if err != nil {
			return nil, err
		}
		list[i] = Opened{newCredential(row), value}
	}
	return list, nil
}

// chooseCredential reads the rows of these names, each once and in their order.
func chooseCredential(ctx context.Context, q *db.Queries, workspace uuid.UUID, names []string) ([]db.Credential, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := q.Credentials(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	var chosen []db.Credential
	var missing []string
	for i, name := range names {
		at := slices.IndexFunc(rows, func(row db.Credential) bool { return row.Name == name })
		switch {
		case slices.Contains(names[:i], name):
		case at < 0:
			missing = append(missing, fmt.Sprintf("%.80q", name))
		default:
			chosen = append(chosen, rows[at])
		}
	}
	if len(missing) > 0 {
		return nil, unknownCredentials(rows, missing)
	}
	return chosen, nil
}

// unknownCredentials returns the fault for quoted names that are not registered.
func unknownCredentials(rows []db.Credential, missing []string) error {
	e := fault.New(fault.UnknownSecret, "No secret is registered as %s.", strings.Join(missing, ", "))
	e.Param = "secret_input"
	for _, row := range rows {
		e.Detail.AvailableKeys = append(e.Detail.AvailableKeys, row.Name)
	}
	if len(rows) > 0 {
		e.Message += " Registered are " + strings.Join(e.Detail.AvailableKeys, ", ") + "."
	}
	return e
}

const purpose = "credential"

// boundFields returns the fields that an envelope is bound to: all that decide where its value may
// be sent.
func boundFields(row db.Credential) []string {
	hosts := slices.Sorted(slices.Values(row.AllowedHosts))
	return append([]string{
		row.WorkspaceID.String(), row.Name, strconv.Itoa(int(row.Version)),
		fmt.Sprintf("query=%t body=%t http=%t", row.InQuery, row.InBody, row.AllowHTTP),
	}, hosts...)
}

// openValue decrypts the value of a row.
func (s *Store) openValue(row db.Credential) (Value, error) {
	if row.Value == nil {
		return Value{}, nil
	}
	plain, err := s.keys.Open(row.Value, purpose, boundFields(row)...)
	if err != nil {
		return Value{}, fmt.Errorf("open credential %s: %w", row.Name, err)
	}
	return NewValue(plain), nil
}

func newCredential(row db.Credential) Credential {
	return Credential{
		Name: row.Name, Version: int(row.Version), Hosts: row.AllowedHosts,
		InQuery: row.InQuery, InBody: row.InBody, AllowHTTP: row.AllowHTTP, HasValue: row.Value != nil,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, UpdatedBy: row.UpdatedBy,
	}
}
