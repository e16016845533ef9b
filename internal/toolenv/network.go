package toolenv

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/placeholder"
	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
)

// network holds the credentials and connections of a run.
type network struct {
	run     *egress.Run
	redact  *redact.Redactor  // redactor for the output of commands: without values that can be guessed
	records *redact.Redactor  // redactor for logs and records, which the agent does not read: with all values
	stands  map[string]string // placeholders of the run's credentials, by name
	missing []string          // credentials without a value
	env     []string          // for commands
}

// openNetwork opens the network of the run's own requests.
func (x *Run) openNetwork(ctx context.Context) (*network, error) {
	if x.net != nil {
		return x.net, nil
	}
	policy, err := x.r.Policy(ctx, x.t.Workspace)
	if err != nil {
		return nil, err
	}
	x.net, err = x.newNetwork(ctx, x.t.Credentials, policy, nil)
	return x.net, err
}

// newNetwork opens credentials. It fails if one does not open: a row that was changed without the
// service is not a credential. own are values that are not in the vault.
func (x *Run) newNetwork(ctx context.Context, names []string, policy Policy, own []vault.Opened) (*network, error) {
	list, err := x.r.cfg.Vault.List(ctx, x.t.Workspace)
	if err != nil {
		return nil, err
	}
	n := &network{stands: make(map[string]string)}
	var mine, others []string
	for _, c := range list {
		switch named := slices.Contains(names, c.Name); {
		case c.HasValue && named:
			mine = append(mine, c.Name)
		case c.HasValue:
			others = append(others, c.Name)
		case named:
			n.missing = append(n.missing, c.Name)
		}
	}
	opened, err := x.r.cfg.Vault.Open(ctx, x.t.Workspace, mine)
	if errors.Is(err, vault.ErrNotOpened) || errors.Is(err, vault.ErrUnknownKey) {
		x.log.ErrorContext(ctx, "a credential of the run does not open", "credentials", mine, "err", err)
		return nil, tool.Refusal("The credentials of this run cannot be opened. Ask the administrator to look into the server's log.")
	}
	if err != nil {
		return nil, err
	}
	opened = append(opened, own...)
	n.buildRedactors(slices.Concat(opened, x.openOthers(ctx, others)))

	credentials := make([]egress.Credential, len(opened))
	for i, o := range opened {
		stands := x.r.placeholderOf(x.t.Turn, o.Name)
		n.stands[o.Name] = stands
		n.env = append(n.env, o.Name+"="+stands)
		credentials[i] = egress.Credential{Name: o.Name, Version: o.Version, Placeholder: stands, Value: o.Value, Hosts: o.Hosts,
			InQuery: o.InQuery, InBody: o.InBody, AllowHTTP: o.AllowHTTP}
	}
	n.run, err = x.r.cfg.Guard.Run(egress.RunConfig{Credentials: credentials, Redact: n.redact, RedactRecords: n.records,
		Hosts: policy.Hosts, Public: policy.Public, Record: x.recordRequest})
	if err != nil {
		return nil, fmt.Errorf("set up the network of a run: %w", err)
	}
	return n, nil
}

// buildRedactors makes the redactors of a run. The output of commands is not searched for values
// that can be guessed: the mark in place of one would confirm the guess. Such a value is removed
// from the responses to requests that carried it, which is the only way for it to reach a command.
func (n *network) buildRedactors(all []vault.Opened) {
	n.records = redact.New(secretsOf(all)...)
	strong := slices.DeleteFunc(slices.Clone(all), func(o vault.Opened) bool { return o.Value.IsGuessable() })
	if n.redact = n.records; len(strong) < len(all) {
		n.redact = redact.New(secretsOf(strong)...)
	}
}

// openOthers opens the credentials that this run cannot send: another run has sent them before, and
// a server may echo them. A credential that does not open does not affect the others.
func (x *Run) openOthers(ctx context.Context, names []string) (list []vault.Opened) {
	if opened, err := x.r.cfg.Vault.Open(ctx, x.t.Workspace, names); err == nil {
		return opened
	}
	for _, name := range names {
		opened, err := x.r.cfg.Vault.Open(ctx, x.t.Workspace, []string{name})
		if err != nil {
			x.log.WarnContext(ctx, "a credential that the run does not use does not open; an answer that holds it shows it", "credential",
				name, "err", err)
			continue
		}
		list = append(list, opened...)
	}
	return list
}

// Redact removes the values of credentials from a text for the log. Before a run has opened its
// credentials, the texts of its process contain none. A nil run has no values.
func (x *Run) Redact(s string) string {
	if x == nil {
		return s
	}
	if x.net != nil {
		return x.net.records.String(s)
	}
	for _, n := range x.routes { // each has all values of the workspace
		return n.records.String(s)
	}
	return s
}

func secretsOf(opened []vault.Opened) []redact.Secret {
	list := make([]redact.Secret, len(opened))
	for i, o := range opened {
		list[i] = redact.Secret{Name: o.Name, Value: o.Value.Reveal()}
	}
	return list
}

// placeholderOf returns the placeholder of a credential in a turn, in all its attempts and on every
// replica. Without the master key, placeholders can neither be matched to names nor be made.
func (r *Runner) placeholderOf(turn uuid.UUID, name string) string {
	_, key := r.cfg.Vault.Keyring().Derive("credential placeholder")
	mac := hmac.New(sha256.New, key)
	mac.Write(turn[:])
	mac.Write([]byte(name))
	return placeholder.Prefix + strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)[:15]))
}

// Do sends a request of http_request.
func (x *Run) Do(call tool.Call, req *http.Request) (*http.Response, error) {
	x.call = call.ID
	n, err := x.openNetwork(req.Context())
	if err != nil {
		return nil, err
	}
	res, err := n.run.Do(req)
	if err != nil {
		return nil, describeFailure(req, err)
	}
	res.Body = &answer{res.Body, req}
	return res, nil
}

// describeFailure describes to the model why a request has no response, or a truncated one.
func describeFailure(req *http.Request, err error) error {
	if refused, ok := errors.AsType[*egress.Error](err); ok {
		return tool.Refusal(refused.Reason)
	}
	if failed, ok := errors.AsType[*egress.Unanswered](err); ok && req.Context().Err() == nil {
		return tool.Refusal(failed.Reason)
	}
	if errors.Is(err, egress.ErrTooLarge) {
		return tool.Refusal("The answer is too large.")
	}
	return err
}

// answer is a response body that describes its failures.
type answer struct {
	io.ReadCloser
	req *http.Request
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = describeFailure(a.req, err)
	}
	return n, err
}

// WriteTo makes redact pass marks separately to a redact.Marker.
func (a *answer) WriteTo(dst io.Writer) (int64, error) {
	n, err := io.Copy(dst, a.ReadCloser)
	if err != nil {
		err = describeFailure(a.req, err)
	}
	return n, err
}

// Placeholder returns the placeholder of a credential of the run.
func (x *Run) Placeholder(ctx context.Context, name string) (string, error) {
	n, err := x.openNetwork(ctx)
	if err != nil {
		return "", err
	}
	if stands, ok := n.stands[name]; ok {
		return stands, nil
	}
	if slices.Contains(n.missing, name) {
		return "", tool.Refusal(fmt.Sprintf("%s has no value yet. Ask for it with request_secret.", name))
	}
	known := strings.Join(slices.Sorted(maps.Keys(n.stands)), ", ")
	if known == "" {
		known = "none"
	}
	return "", tool.Refusal(fmt.Sprintf("This run has no credential %q. It has: %s. Ask for others with request_secret.", name, known))
}
